"""An app on a store in memory, for the time of a test."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

from windlass.app.app import App
from windlass.stores.memory import MemoryStore
from windlass.testing.app import TestApp
from windlass.testing.blocking_app import BlockingTestApp
from windlass.testing.clock import FakeClock
from windlass.testing.looking import StoreReader
from windlass.testing.rng import SteadyRng


@asynccontextmanager
async def in_memory(app: App, *, clock: FakeClock | None = None) -> AsyncGenerator[TestApp, None]:
    """Put an app on an empty store in memory, and on a clock that stands still, for the time of a block.

    Nothing of what the app has elsewhere is touched, and after the block it is as before. Nothing runs by itself: the
    test says when, by `drain`, `advance` or `server`. Chance takes the middle, so that a retry comes exactly when its
    policy says.

    ```python
    import windlass
    from windlass.testing import in_memory

    app = windlass.App("sqlite:///jobs.db")

    @app.job
    async def remind(name: str) -> str:
        return f"wake up, {name}"

    async with in_memory(app) as test:
        handle = await remind.options(delay=3600).enqueue("ada")
        test.assert_enqueued(remind, name="ada")
        print(await test.advance(3600))
        print(await handle.result())
    ```
    """
    clock = clock or FakeClock()
    with moved_to_memory(app, clock) as reader:
        test = TestApp(app, reader, clock)
        try:
            yield test
        finally:
            await test.close()


@contextmanager
def in_memory_sync(app: App, *, clock: FakeClock | None = None) -> Generator[BlockingTestApp, None, None]:
    """Put an app on an empty store in memory, as `in_memory` does, for tests without an event loop.

    ```python
    import windlass
    from windlass.testing import in_memory_sync

    app = windlass.App("sqlite:///jobs.db")

    @app.job
    def resize(path: str, *, width: int = 800) -> str:
        return f"{path} at {width}"

    with in_memory_sync(app) as test:
        handle = resize.enqueue_sync("cat.png", width=400)
        test.drain()
        print(handle.result())
    ```
    """
    clock = clock or FakeClock()
    with moved_to_memory(app, clock) as reader:
        test = BlockingTestApp(app, reader, clock)
        try:
            yield test
        finally:
            test.close()


@contextmanager
def moved_to_memory(app: App, clock: FakeClock) -> Generator[StoreReader, None, None]:
    """Put an app on an empty store in memory; the caller closes what the app opens there."""
    store, rng = MemoryStore(clock=clock, rng=SteadyRng()), SteadyRng()
    with app.on_store(store, clock=clock, rng=rng):
        yield StoreReader(store)
