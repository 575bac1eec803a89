"""A client whose replies get lost: what it wants is done and committed, and it is not told."""

from asyncio import Event
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, LiteralString

import psycopg

from tests.postgres.frames import Request
from tests.postgres.proxy import Proxy
from windlass import Claim, Client
from windlass.core.store import Store

RECEIPT = "windlass_receipt"


class Commit:
    """Meets the request that commits the first change with `marker` among its statements.

    That is a `commit`, or the statement itself where there is no transaction.
    """

    def __init__(self, marker: str) -> None:
        self._marker = marker
        self._begun: dict[int, list[str]] = {}
        """The statements of the transactions under way, by connection."""

    def __call__(self, request: Request) -> bool:
        text = request.text.lower().lstrip()
        if text.startswith("begin"):
            self._begun[request.client] = []
        elif text.startswith(("commit", "rollback")):
            statements = self._begun.pop(request.client, [])
            return text.startswith("commit") and any(self._marker in each for each in statements)
        elif request.client in self._begun:
            self._begun[request.client].append(text)
        else:
            return self._marker in text
        return False


class AnyWith:
    """Meets the first request with `marker`, whether it is done or refused."""

    def __init__(self, marker: str) -> None:
        self._marker = marker

    def __call__(self, request: Request) -> bool:
        return self._marker in request.text.lower()


class AfterThat:
    """Meets what another predicate meets, but only once an event has happened."""

    def __init__(self, event: Event, then: AnyWith) -> None:
        self._event = event
        self._then = then

    def __call__(self, request: Request) -> bool:
        return self._event.is_set() and self._then(request)


@dataclass
class Bench:
    """A client through the proxy, a second look at the database beside it, and what was not right."""

    proxy: Proxy
    client: Client
    connection: psycopg.Connection
    lost: int = 0
    lost_again: int = 0
    wrong: list[str] = field(default_factory=list[str])
    case: str = ""
    enqueued: int = 0
    """Jobs that were asked for, all in all."""
    succeeded: int = 0
    """Jobs that were acked, all in all."""
    numbers: "count[int]" = field(default_factory=count)

    @property
    def store(self) -> Store:
        return self.client.store

    def new_name(self) -> str:
        """Return a name that nobody has used."""
        return f"{self.case.replace(' ', '-').replace(',', '')}-{next(self.numbers)}"

    @asynccontextmanager
    async def losing(self, marker: str = RECEIPT, *, twice: bool = False) -> AsyncGenerator[None]:
        """Lose the reply to the commit of what is done within, and `twice` also the reply to what is asked next."""
        first = self.proxy.drop_reply(Commit(marker))
        second = self.proxy.drop_reply(AfterThat(first, AnyWith(marker))) if twice else None
        try:
            yield
        finally:
            self.proxy.plans.clear()
        self.lost += first.is_set()
        self.lost_again += second is not None and second.is_set()
        if not first.is_set():
            self.wrong.append(f"{self.case}: no reply was lost")

    def right(self, what: str, found: object, wanted: object) -> None:
        """Note when something is not as it must be."""
        if found != wanted:
            self.wrong.append(f"{self.case}: {what}: {found!r}, and not {wanted!r}")

    def holds(self, what: str, true: bool) -> None:  # noqa: FBT001 - it is what is looked at
        """Note when something is not true."""
        self.right(what, found=true, wanted=True)

    def rows(self, statement: LiteralString, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Look by plain SQL, past the proxy."""
        return self.connection.execute(statement, values).fetchall()

    def state(self, job: str) -> tuple[Any, ...] | None:
        """Return where a job stands: its state, attempt and delivery."""
        found = self.rows("select state, attempt, delivery from windlass_job where id = %s", [job])
        return found[0] if found else None

    def deliveries(self, job: str) -> list[tuple[Any, ...]]:
        """Return how the deliveries of a job ended, by number."""
        return self.rows(
            "select d.delivery, outcome from windlass_delivery d join windlass_job using (seq)"
            " where id = %s order by 1",
            [job],
        )

    async def a_job(self, queue: str, **options: Any) -> str:  # noqa: ANN401 - what enqueue takes
        """Enqueue without any loss."""
        self.enqueued += 1
        return (await self.client.enqueue(queue, b"", **options)).id

    async def a_claim(self, queue: str, **options: Any) -> Claim:  # noqa: ANN401 - what enqueue takes
        """Enqueue and claim without any loss."""
        await self.a_job(queue, **options)
        claim = await self.client.claim(queue, lease=600)
        assert claim is not None
        return claim
