"""An app on a store in a database, for the time of a test: there code can enqueue in a transaction of its own."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from windlass.app.app import App
from windlass.connect import open_store
from windlass.core.errors import InvalidValue
from windlass.testing.app import TestApp
from windlass.testing.blocking_app import BlockingTestApp
from windlass.testing.clock import FakeClock
from windlass.testing.looking import DatabaseReader, StoreReader
from windlass.testing.rng import SteadyRng


@asynccontextmanager
async def in_database(
    app: App, store: str | Path | None = None, *, clock: FakeClock | None = None
) -> AsyncGenerator[TestApp, None]:
    """Put an app on a store in a database for the time of a block, as `in_memory` does on one in memory.

    `store` is the path of a SQLite file, or a URL: name the database of your own tables, so that code can enqueue in
    its own transaction. Without it the store is a SQLite file in a temporary folder. Jobs that are in the database
    already belong to the test too; what the test leaves there is yours to delete.

    ```python
    import sqlite3
    import windlass
    from windlass.testing import in_database

    app = windlass.App("sqlite:///jobs.db")

    @app.job
    async def send_receipt(order: int) -> None: ...

    async with in_database(app, "test.db") as test:
        db = sqlite3.connect("test.db")
        await send_receipt.options(connection=db).enqueue(7)
        test.assert_not_enqueued(send_receipt)
        db.commit()
        test.assert_enqueued(send_receipt, 7)
        db.close()
    ```
    """
    clock = clock or FakeClock()
    with moved_to_database(app, clock, store) as reader:
        test = TestApp(app, reader, clock)
        try:
            yield test
        finally:
            await test.close()


@contextmanager
def in_database_sync(
    app: App, store: str | Path | None = None, *, clock: FakeClock | None = None
) -> Generator[BlockingTestApp, None, None]:
    """Put an app on a store in a database, as `in_database` does, for tests without an event loop."""
    clock = clock or FakeClock()
    with moved_to_database(app, clock, store) as reader:
        test = BlockingTestApp(app, reader, clock)
        try:
            yield test
        finally:
            test.close()


@contextmanager
def moved_to_database(app: App, clock: FakeClock, place: str | Path | None) -> Generator[StoreReader, None, None]:
    """Put an app on a store in a database; the caller closes what the app opens there."""
    if place is None:
        with (
            TemporaryDirectory(prefix="windlass-") as folder,
            moved_to_database(app, clock, Path(folder, "jobs.db")) as it,
        ):
            yield it
        return
    url = f"sqlite:///{quote(str(place))}" if "://" not in str(place) else str(place)
    rng = SteadyRng()
    store = open_store(url, clock=clock, rng=rng)
    if not store.features.transactional:
        message = f"{url.partition('://')[0]}:// has no transactions: name a SQLite file, or a database of Postgres"
        raise InvalidValue(message)
    with closing(DatabaseReader(store)) as reader, app.on_store(store, clock=clock, rng=rng):
        yield reader
