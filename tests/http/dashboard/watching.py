"""Browsers that watch pages, without a server and by the time of a test, and what it costs the store."""

import asyncio
import inspect
from collections import Counter
from collections.abc import AsyncGenerator
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
from windlass.core.settings import QueueSettings, resolve
from windlass.http.dashboard.endpoints import LIVE
from windlass.http.dashboard.pages.table import VIEWS
from windlass.http.scoped import ScopedStore
from windlass.system import TaskSpawn
from windlass.testing import FakeClock, SeededRng

T = TypeVar("T")

PATHS = tuple(view.path for view in VIEWS)
"""Of all pages; that of one job has a gap in it."""
_LOOKS = frozenset(name for name, _ in inspect.getmembers(ScopedStore, inspect.iscoroutinefunction))


class CountedStore:
    """Lets every call through, counted by its name; or none, while it is away."""

    def __init__(self, store: Any) -> None:  # noqa: ANN401 - it stands for any
        self._store = store
        self.calls = Counter[str]()
        self.away = False

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        method = getattr(self._store, name)
        return self._counted(name, method) if name in _LOOKS - {"open", "close"} else method

    def _counted(self, name: str, method: Any) -> Any:  # noqa: ANN401 - whatever the store has
        async def counted(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the store takes
            self.calls[name] += 1
            if self.away:
                raise StoreUnavailable("the store is away: start it again", retryable=True)
            return await method(*args, **kwargs)

        return counted


class Watching(Stream):
    """A browser that reads all that it is told at once; one that is a `Stream` alone is slow."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = asyncio.Queue()

    def told(self) -> list[Any]:
        """Return the changes that have come since it was asked."""
        told = [self.parts.get_nowait() for _ in range(self.parts.qsize())]
        return [change_in(part) for part in told if part.startswith(b"data:")]


class WatchedDashboard(GivenDashboard):
    """A dashboard on a store whose calls are counted, by a clock that a test moves."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = CountedStore(open_store("memory://", clock=self.clock, rng=SeededRng()))
        store: Any = self.store
        super().__init__(
            Client(
                store,
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
