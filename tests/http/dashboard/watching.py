"""Browsers that watch pages, without a server and by the time of a test, and what it costs the store."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import msgspec

from tests.http.dashboard.given_dashboard import GivenDashboard
from tests.http.streams import Stream, read_by
from windlass.api.roles import Role
from windlass.client.client import Client
from windlass.codec import JSON
from windlass.connect import open_store
from windlass.core.errors import StoreUnavailable
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.joined_transaction import BorrowedConnection, JoinedTransaction
from windlass.core.requests import Claimed, ClaimRequest, Settlement, SettleResult
from windlass.core.settings import QueueSettings, resolve
from windlass.core.store import Features, Store
from windlass.core.store_calls import Command, Query
from windlass.core.topics import Topic
from windlass.http.dashboard.endpoints import LIVE
from windlass.http.dashboard.pages.table import VIEWS
from windlass.system import TaskSpawn
from windlass.testing import FakeClock, SeededRng

T = TypeVar("T")

PATHS = tuple(view.path for view in VIEWS)
"""Of all pages; that of one job has a gap in it."""


class CountedStore(Store):
    """Lets every call through, counted by its kind; or none, while it is away."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls = Counter[str]()
        self.away = False

    @property
    def features(self) -> Features:
        return self._store.features

    async def open(self) -> None:
        await self._store.open()

    async def close(self) -> None:
        await self._store.close()

    def sibling(self) -> Store:
        return self._store.sibling()

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        return self._store.listen(topics, ring)

    def join(self, borrowed: BorrowedConnection) -> JoinedTransaction:
        return self._store.join(borrowed)

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return self._store.transaction()

    async def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> list[Enqueued]:
        self._count("EnqueueJobs")
        return await self._store.enqueue(jobs, request_id=request_id)

    async def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> Claimed:
        self._count("ClaimJobs")
        return await self._store.claim(request, request_id=request_id)

    async def settle(self, settlements: Sequence[Settlement], *, request_id: str | None = None) -> list[SettleResult]:
        self._count("SettleClaims")
        return await self._store.settle(settlements, request_id=request_id)

    async def do(self, command: Command[T], *, request_id: str | None = None) -> T:
        self._count(type(command).__name__)
        return await self._store.do(command, request_id=request_id)

    async def ask(self, query: Query[T]) -> T:
        self._count(type(query).__name__)
        return await self._store.ask(query)

    def _count(self, call: str) -> None:
        self.calls[call] += 1
        if self.away:
            raise StoreUnavailable("the store is away: start it again", retryable=True)


class Watching(Stream):
    """A browser that reads all that it is told at once; one that is a `Stream` alone is slow."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = asyncio.Queue()

    def told(self) -> list[Any]:
        """Return the changes that have come since it was asked."""
        told = [self.parts.get_nowait() for _ in range(self.parts.qsize())]
        return [change_in(part) for part in told if part.startswith(b"data:")]

    async def change(self) -> Any:  # noqa: ANN401 - the JSON edge
        """Return the next change when it comes: a large payload is read in a thread, which no clock of a test moves."""
        async with asyncio.timeout(10):
            while not (part := await self.parts.get()).startswith(b"data:"):
                pass
        return change_in(part)


class WatchedDashboard(GivenDashboard):
    """A dashboard on a store whose calls are counted, by a clock that a test moves."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = CountedStore(open_store("memory://", clock=self.clock, rng=SeededRng()))
        super().__init__(
            Client(
                self.store,
                resolve(QueueSettings(), None),
                codec=JSON,
                clock=self.clock,
                rng=SeededRng(),
                spawn=TaskSpawn(),
                poll_interval=1.0,
                worker="dashboard",
            )
        )

    def watch(self, path: str, *, who: str = Role.ADMIN) -> AbstractAsyncContextManager[Watching]:
        """Let a browser watch a page."""
        return watch(self, Watching(), path, who=who)

    async def interval(self) -> Counter[str]:
        """Let a second pass; return what the store was asked meanwhile."""
        before = self.store.calls.copy()
        await self.clock.let_pass(1.0)
        return self.store.calls - before


@asynccontextmanager
async def watch(given: GivenDashboard, stream: T, path: str, *, who: str = Role.ADMIN) -> AsyncGenerator[T]:
    """Let `stream` read what changes on a page."""
    assert isinstance(stream, Stream)
    async with read_by(stream, given.app, LIVE + path, who):
        yield stream


def change_in(part: bytes) -> Any:  # noqa: ANN401 - the JSON edge
    """Return what an event of a stream tells."""
    return msgspec.json.decode(part.removeprefix(b"data: "))


@asynccontextmanager
async def a_watched_dashboard() -> AsyncGenerator[WatchedDashboard]:
    given = WatchedDashboard()
    async with given.client:
        try:
            yield given
        finally:
            await given.app.close()
