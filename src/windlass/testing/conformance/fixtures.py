"""What the behaviours are shown with: a clock that stands still, and clients on the store that is tested."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict
from typing import Any, Final, Protocol, TypeVar

import pytest

from windlass.app.app import App
from windlass.client.client import Client
from windlass.codec import JSON
from windlass.core.filters import JobFilter
from windlass.core.settings import QueueSettings, resolve
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.topics import Topic
from windlass.system import TaskSpawn
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.reach import Reach
from windlass.testing.conformance.stepped_clock import SteppedClock
from windlass.testing.conformance.watched_store import WatchedStore
from windlass.testing.rng import SeededRng

T = TypeVar("T")
POLL_INTERVAL: Final = 1.0


class OpenClient(Protocol):
    """Opens clients on the tested store; each is closed at the end of the test."""

    async def __call__(
        self, settings: QueueSettings | None = None, queues: Mapping[str, QueueSettings] | None = None
    ) -> Client:
        """Return an open client with these settings."""
        ...


class OpenApp(Protocol):
    """Makes apps on the tested store; each is closed at the end of the test."""

    def __call__(self, **settings: Any) -> App:  # noqa: ANN401 - whatever an app takes
        """Return an app with these settings."""
        ...


class Woken(Protocol):
    """Waits for what the store's news should wake, at once where the store can, else at the client's next look."""

    async def __call__(self, work: Awaitable[T]) -> T:
        """Return what `work` returns."""
        ...


@pytest.fixture
def clock() -> SteppedClock:
    """A clock that stands still until the test moves it."""
    return SteppedClock()


@pytest.fixture
async def store(new_store: Callable[[], Store]) -> AsyncIterator[Store]:
    """One open store, for what no client shows."""
    store = new_store()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def transactional(store: Store) -> Store:
    """One open store that has transactions; a test that needs them is skipped for others."""
    if not store.features.transactional:
        pytest.skip("this store has no transactions")
    return store


@pytest.fixture
def reach(store: Store) -> Reach:
    """How far one call of the store reaches."""
    return Reach(store.features.atomic_across_queues)


@pytest.fixture
async def open_client(new_store: Callable[[], Store], clock: FakeClock) -> AsyncIterator[OpenClient]:
    """How a test opens clients with settings of its own, each through a door of its own."""
    rng = SeededRng()
    async with AsyncExitStack() as stack:

        async def opened(
            settings: QueueSettings | None = None, queues: Mapping[str, QueueSettings] | None = None
        ) -> Client:
            client = Client(
                new_store(),
                resolve(settings or QueueSettings(), queues),
                codec=JSON,
                clock=clock,
                rng=rng,
                spawn=TaskSpawn(),
                poll_interval=POLL_INTERVAL,
                worker="tester",
            )
            return await stack.enter_async_context(client)

        yield opened


@pytest.fixture
async def client(open_client: OpenClient) -> Client:
    """A client with the default settings."""
    return await open_client()


@pytest.fixture
async def open_app(new_store: Callable[[], Store], clock: FakeClock) -> AsyncIterator[OpenApp]:
    """How a test makes apps with settings of its own, each through a door of its own."""
    # other chance than that of the clients: two jobs made at one time have not the same id
    rng = SeededRng(1)
    async with AsyncExitStack() as stack:

        def opened(**settings: Any) -> App:  # noqa: ANN401 - whatever an app takes
            all_of_them: dict[str, Any] = {"url": WatchedStore(new_store()), "clock": clock, "rng": rng, **settings}
            made = App(**all_of_them)
            stack.push_async_callback(made.close)
            return made

        yield opened


@pytest.fixture
def app(open_app: OpenApp) -> App:
    """An app with the default settings."""
    return open_app()


@pytest.fixture
def woken(store: Store, clock: FakeClock) -> Woken:
    """How a test waits for somebody who sleeps until there is news."""

    async def ended(work: Awaitable[T]) -> T:
        return await (soon(work) if store.features.wakes_waiters else outlast(clock, work))

    return ended


@pytest.fixture(autouse=True)
async def counts_add_up(store: Store) -> AsyncIterator[None]:
    """After each test the counts by state equal a full listing."""
    yield
    listed = await store.jobs(JobFilter(), after=None, limit=1_000_000)
    for row in await store.stats():
        here = [job for job in listed if job.queue == row.queue]
        counted = {state.value: sum(job.state is state for job in here) for state in State}
        assert {name: count for name, count in asdict(row).items() if name in counted} == counted
        waiting = [job.run_at for job in here if job.state is State.PENDING]
        assert row.oldest_waiting == min(waiting, default=None)
    assert {job.queue for job in listed} <= {row.queue for row in await store.stats()}


@contextmanager
def listening(store: Store, *topics: Topic) -> Generator[asyncio.Event]:
    """Give an event that is set by news on `topics`."""
    loop, rung = asyncio.get_running_loop(), asyncio.Event()

    def ring() -> None:
        loop.call_soon_threadsafe(rung.set)

    stop = store.listen(topics, ring)
    try:
        yield rung
    finally:
        stop()


async def soon(work: Awaitable[T]) -> T:
    """Return what `work` returns; a test that would hang fails instead."""
    async with asyncio.timeout(10):
        return await work


async def asleep(clock: FakeClock, work: Awaitable[T], *, timers: int = 1) -> asyncio.Future[T]:
    """Start `work` and return when it sleeps by the clock."""
    before = clock.waiting
    begun = asyncio.ensure_future(work)
    await soon(clock.timers(before + timers))
    return begun


async def rearmed(clock: FakeClock, timers: int) -> None:
    """Return when one of `timers` sleepers was woken and sleeps again."""
    # a store that begins to hear wakes everybody: the only sleeper may have been awake when they were counted
    timers = max(timers, 1)
    async with asyncio.timeout(10):
        while clock.waiting >= timers:  # noqa: ASYNC110 - what wakes it says so to nobody else
            await asyncio.sleep(0)
        await clock.timers(timers)


async def outlast(clock: FakeClock, work: Awaitable[T]) -> T:
    """Let the time go by, second by second, until `work` is done."""
    begun = asyncio.ensure_future(work)
    async with asyncio.timeout(10):
        while not begun.done():
            sleeping = asyncio.ensure_future(clock.timers(1))
            await asyncio.wait({begun, sleeping}, return_when=asyncio.FIRST_COMPLETED)
            sleeping.cancel()
            clock.advance(1)
            # what was woken goes to sleep again, or is done
            for _ in range(3):
                await asyncio.sleep(0)
    return begun.result()
