"""A client whose replies get lost: what it wants is done for good, and it is not told."""

from abc import ABC, abstractmethod
from asyncio import Event
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import count
from typing import Any, Literal, TypeAlias

from windlass import Claim, Client
from windlass.core.store import Store

Change: TypeAlias = Literal[
    "anything", "enqueue", "claim", "promote or claim", "succeed", "forget", "renew", "pause", "lock"
]
"""What a call changes, by which its request is known."""


class Bench(ABC):
    """A client through a proxy, a second look at the server beside it, and what was not right."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.lost = 0
        self.lost_again = 0
        self.wrong: list[str] = []
        self.case = ""
        self.enqueued = 0
        """Jobs that were asked for, all in all."""
        self.succeeded = 0
        """Jobs that were acked, all in all."""
        self._numbers = count()

    @property
    def store(self) -> Store:
        return self.client.store

    def new_name(self) -> str:
        """Return a name that nobody has used."""
        return f"{self.case.replace(' ', '-').replace(',', '')}-{next(self._numbers)}"

    @asynccontextmanager
    async def losing(self, change: Change = "anything", *, twice: bool = False) -> AsyncGenerator[None]:
        """Lose the reply to what is done within, and `twice` also the reply to what is asked next."""
        first, second = self.lose(change, twice=twice)
        try:
            yield
        finally:
            self.lose_no_more()
        self.lost += first.is_set()
        self.lost_again += second is not None and second.is_set()
        if not first.is_set():
            self.wrong.append(f"{self.case}: no reply was lost")

    @abstractmethod
    def lose(self, change: Change, *, twice: bool) -> tuple[Event, Event | None]:
        """Let the reply be lost that tells of a change, and `twice` the next one; the events tell when."""

    @abstractmethod
    def lose_no_more(self) -> None: ...

    @abstractmethod
    def jobs_in(self, queue: str) -> list[str]:
        """Return the jobs of a queue in the order of their enqueue."""

    @abstractmethod
    def payloads_in(self, queue: str) -> dict[str, bytes]: ...

    @abstractmethod
    def held_in(self, queue: str) -> list[tuple[str, str, int, int]]:
        """Return the running jobs of a queue in the order of their enqueue: id, token, attempt and delivery."""

    @abstractmethod
    def states_in(self, queue: str) -> dict[str, int]:
        """Return how many jobs of a queue are in each state."""

    @abstractmethod
    def parents_in(self, queue: str) -> list[str | None]: ...

    @abstractmethod
    def state(self, job: str) -> tuple[str, int, int] | None:
        """Return where a job stands: its state, attempt and delivery."""

    @abstractmethod
    def deliveries(self, job: str) -> list[tuple[int, str]]:
        """Return how the deliveries of a job ended, by number."""

    @abstractmethod
    def lease_end(self, job: str) -> datetime: ...

    @abstractmethod
    def lock_holders(self, name: str) -> list[str]: ...

    @abstractmethod
    def let_come_due(self, schedule: str) -> None: ...

    def right(self, what: str, found: object, wanted: object) -> None:
        """Note when something is not as it must be."""
        if found != wanted:
            self.wrong.append(f"{self.case}: {what}: {found!r}, and not {wanted!r}")

    def holds(self, what: str, true: bool) -> None:  # noqa: FBT001 - it is what is looked at
        """Note when something is not true."""
        self.right(what, found=true, wanted=True)

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
