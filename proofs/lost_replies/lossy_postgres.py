"""A client on Postgres whose replies to commits get lost."""

from asyncio import Event
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, LiteralString

import psycopg

from proofs.lost_replies.lossy import Bench, Change
from tests.postgres.frames import Request
from tests.postgres.proxy import Proxy
from windlass import Client

MARKERS: Final[Mapping[Change, str]] = {
    "anything": "windlass_receipt",
    "enqueue": "insert into windlass_job",
    "claim": "attempt = least(attempt",
    "promote or claim": "windlass_job",
    "succeed": "state = 'succeeded'",
    "forget": "delete from windlass_job",
    "renew": "set lease_expires_at",
    "pause": "windlass_queue",
    "lock": "windlass_lock",
}
"""What is found in a statement that makes a change."""


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


class PostgresBench(Bench):
    """A bench whose second look is plain SQL, past the proxy."""

    def __init__(self, proxy: Proxy, client: Client, connection: psycopg.Connection) -> None:
        super().__init__(client)
        self._proxy = proxy
        self._connection = connection

    def lose(self, change: Change, *, twice: bool) -> tuple[Event, Event | None]:
        marker = MARKERS[change]
        first = self._proxy.drop_reply(Commit(marker))
        return first, self._proxy.drop_reply(AfterThat(first, AnyWith(marker))) if twice else None

    def lose_no_more(self) -> None:
        self._proxy.plans.clear()

    def jobs_in(self, queue: str) -> list[str]:
        rows = self._rows("select id::text from windlass_job where queue = %s order by seq", [queue])
        return [job for (job,) in rows]

    def payloads_in(self, queue: str) -> dict[str, bytes]:
        return dict(self._rows("select id::text, payload from windlass_job where queue = %s", [queue]))

    def held_in(self, queue: str) -> list[tuple[str, str, int, int]]:
        rows = self._rows(
            "select id::text, token::text, attempt, delivery from windlass_job"
            " where queue = %s and state = 'running' order by seq",
            [queue],
        )
        return [(job, token, attempt, delivery) for job, token, attempt, delivery in rows]

    def states_in(self, queue: str) -> dict[str, int]:
        return dict(self._rows("select state, count(*) from windlass_job where queue = %s group by state", [queue]))

    def parents_in(self, queue: str) -> list[str | None]:
        return [job for (job,) in self._rows("select parent_id::text from windlass_job where queue = %s", [queue])]

    def state(self, job: str) -> tuple[str, int, int] | None:
        for state, attempt, delivery in self._rows(
            "select state, attempt, delivery from windlass_job where id = %s", [job]
        ):
            return state, attempt, delivery
        return None

    def deliveries(self, job: str) -> list[tuple[int, str]]:
        rows = self._rows(
            "select d.delivery, outcome from windlass_delivery d join windlass_job using (seq)"
            " where id = %s order by 1",
            [job],
        )
        return [(delivery, outcome) for delivery, outcome in rows]

    def lease_end(self, job: str) -> datetime:
        [(at,)] = self._rows("select lease_expires_at from windlass_job where id = %s", [job])
        assert isinstance(at, datetime)
        return at

    def lock_holders(self, name: str) -> list[str]:
        return [holder for (holder,) in self._rows("select holder from windlass_lock where name = %s", [name])]

    def let_come_due(self, schedule: str) -> None:
        self._connection.execute(
            "update windlass_schedule set next_run_at = clock_timestamp() where id = %s", [schedule]
        )

    def _rows(self, statement: LiteralString, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()
