"""What tests of a server begin with, and how they look on."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Final, TypeAlias

from windlass.app.app import App
from windlass.app.handle import Handle
from windlass.client.results import Completed
from windlass.core.errors import StoreUnavailable
from windlass.core.job import Job
from windlass.core.looks import SERVES, ServerRecord
from windlass.core.settings import Settings
from windlass.core.states import State
from windlass.core.store import Store
from windlass.engine.config import ServerConfig
from windlass.engine.server import Server
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import soon
from windlass.testing.conformance.watched_store import WatchedStore

_LOOKS: Final = 10
"""Turns of the event loop in which whoever was woken has begun what it does."""


Beside: TypeAlias = Callable[[ServerConfig, Settings], AbstractAsyncContextManager[WatchedStore]]
"""What runs the services of a store that is served, for a server of these settings on it; gives what they work on."""
_beside: list[Beside] = []
_behind: list[WatchedStore] = []


@contextmanager
def beside(services: Beside) -> Generator[None]:
    """Have `services` run beside each server of the tests in this block: for a store with `features.served`.

    A server on such a store only works. What the serving process does for it comes and goes with it here, so that
    nobody rescues in tests of a store alone.
    """
    _beside.append(services)
    try:
        yield
    finally:
        _beside.remove(services)


@asynccontextmanager
async def serving(app: App, **config: Any) -> AsyncGenerator[Server, None]:  # noqa: ANN401 - whatever a server takes
    """Run a server for the time of a block; what runs at its end has no grace."""
    given = ServerConfig(**config)
    server = Server(app, given)
    async with AsyncExitStack() as stack:
        await soon(server.start())
        stack.push_async_callback(lambda: soon(server.stop(grace=0)))
        for services in _beside:
            behind = await stack.enter_async_context(services(app.server_config(given), app.client.settings))
            _behind.append(behind)
            stack.callback(_behind.remove, behind)
        yield server


async def working(store: Store) -> list[ServerRecord]:
    """Return the servers, without whoever serves the store."""
    return [record for record in await store.servers() if SERVES not in record.details]


async def ended(handle: Handle[Any]) -> Job:
    """Return a job that has come to its end, and whose record was kept."""
    found = await soon(handle.wait())
    assert isinstance(found, Completed)
    assert found.job is not None
    return found.job


async def until(true: Callable[[], bool]) -> None:
    """Return when `true()`: for what says so to nobody else."""
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.001)


async def stands(handle: Handle[Any], state: State, **fields: object) -> Job:
    """Return a job when it is in `state` and has these fields."""
    async with asyncio.timeout(10):
        while True:
            job = await handle.job()
            if job.state is state and all(getattr(job, name) == value for name, value in fields.items()):
                return job
            await asyncio.sleep(0.001)


async def busy(server: Server, jobs: int = 1) -> None:
    """Return when `server` runs so many jobs; that the store says so may be known before the server has its reply."""
    await until(lambda: server.busy == jobs)


async def quiet(app: App) -> None:
    """Return when whoever was woken has done what it does: no call of the store is under way, nor begun after it."""
    store: Any = app.client.store
    async with asyncio.timeout(10):
        for _ in range(3):
            await app.client.kv.put("quiet", b"")
            for _ in range(_LOOKS):
                await asyncio.sleep(0)
            while store.calls or any(behind.calls for behind in _behind):  # noqa: ASYNC110 - nobody tells of every end
                await asyncio.sleep(0.001)


async def goes_by(app: App, clock: FakeClock, seconds: float, *, step: float = 1.0) -> None:
    """Let time go by, and whoever is woken do what it does, step by step."""
    for _ in range(round(seconds / step)):
        await quiet(app)
        clock.advance(step)
    await quiet(app)


class FailingStore:
    """A store in front of which calls fail by name, as often as it is told: the reply is an error, nothing is done."""

    def __init__(self, store: Store) -> None:
        """Let every call through."""
        self._store = WatchedStore(store)
        self.failing: dict[str, int] = {}
        self.failed: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        """Give what the store has, if it does not fail."""
        method = getattr(self._store, name)
        if self.failing.get(name, 0) <= 0:
            return method

        async def fail(*_: object, **__: object) -> None:
            self.failing[name] -= 1
            self.failed[name] = self.failed.get(name, 0) + 1
            raise StoreUnavailable(f"no {name} today", retryable=True)

        return fail


class SlowStore:
    """A store whose claims are on their way for as long as the test wants, once they are held up."""

    def __init__(self, store: Store) -> None:
        """Let every claim through."""
        self._store = WatchedStore(store)
        self.go = asyncio.Event()
        self.go.set()
        self.held_up = asyncio.Event()

    async def claim(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the store takes
        """Claim, and return when the test says so."""
        claims = await self._store.claim(*args, **kwargs)
        if not self.go.is_set():
            self.held_up.set()
            await self.go.wait()
        return claims

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        """Give what the store has."""
        return getattr(self._store, name)
