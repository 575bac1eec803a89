"""PgQueuer on asyncpg and uvloop, as its own benchmark runs it: a finished job goes from its table into a log."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import Payload
from benchmarks.servers import postgres_databases
from benchmarks.workloads import asynchronous

NAME = "pgqueuer"
ENTRYPOINT = "nothing"
BATCH = 200
"""Jobs of one claim: its default of 10 is far slower; which of 200 to 1,000 is best was within the noise."""

asyncpg: Any = import_module("asyncpg")
pgqueuer: Any = import_module("pgqueuer")


class Queue:
    """PgQueuer's producer, and its worker on a connection of its own."""

    def __init__(self, url: str, connection: Any, driver: Any) -> None:  # noqa: ANN401 - the peer is loaded by name
        """Use a connection or a pool of them, to a database with its tables, and the driver for it."""
        self._url = url
        self._connection = connection
        self._queries = pgqueuer.Queries(driver)

    async def put(self, value: Payload) -> None:
        """Enqueue one job."""
        await self._queries.enqueue(ENTRYPOINT, msgspec.json.encode(value))

    async def put_many(self, values: Sequence[Payload]) -> None:
        """Enqueue by its call for lists."""
        encoded = [msgspec.json.encode(value) for value in values]
        await self._queries.enqueue([ENTRYPOINT] * len(values), encoded, [0] * len(values))

    def working(self, arrived: Arrived) -> AbstractAsyncContextManager[None]:
        """Run its queue manager."""
        return _working(self._url, arrived)

    async def left(self) -> int:
        """Count what is in its table: a finished job is only in the log."""
        left: int = await self._connection.fetchval("select count(*) from pgqueuer")
        return left


@asynccontextmanager
async def _working(url: str, arrived: Arrived) -> AsyncGenerator[None]:
    connection = await asyncpg.connect(url)
    manager = pgqueuer.PgQueuer(pgqueuer.AsyncpgDriver(connection))

    async def nothing(job: Any) -> None:  # noqa: ANN401 - the peer is loaded by name
        arrived(job.payload)

    manager.entrypoint(ENTRYPOINT)(nothing)
    async with asynchronous.in_background(manager.run(batch_size=BATCH), manager.shutdown.set):
        yield
    await connection.close()


@asynccontextmanager
async def open_pool(folder: Path, *, keep: bool = False) -> AsyncGenerator[Queue]:
    """Open it as a program with many callers would."""
    async with open_queue(folder, keep=keep), asyncpg.create_pool(postgres_databases.url_of(folder)) as pool:
        yield Queue(postgres_databases.url_of(folder), pool, pgqueuer.AsyncpgPoolDriver(pool))


@asynccontextmanager
async def open_queue(folder: Path, *, keep: bool = False) -> AsyncGenerator[Queue]:
    """Open the database of a folder with PgQueuer's own settings."""
    del keep
    url = postgres_databases.url_of(folder)
    connection = await asyncpg.connect(url)
    driver = pgqueuer.AsyncpgDriver(connection)
    queries = pgqueuer.Queries(driver)
    if not await queries.has_table("pgqueuer"):
        await queries.install()
    yield Queue(url, connection, driver)
    await connection.close()


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="pgqueuer",
    module="pgqueuer",
    how=f"its worker on asyncpg and uvloop, {BATCH} jobs at a time; a finished job is deleted and logged",
    durability=postgres_databases.durability,
    measures={
        "enqueue_one": asynchronous.enqueue_one(open_queue),
        "enqueue_callers": asynchronous.enqueue_callers(open_pool),
        "enqueue_many": asynchronous.enqueue_many(open_queue),
        "claim_deleted": asynchronous.drain(NAME, open_queue, keep=False),
        "end_to_end": asynchronous.end_to_end(NAME, open_queue),
        "pickup": asynchronous.pickup(NAME, open_queue),
    },
    consume=asynchronous.worker_consumer(open_queue),
    produce=asynchronous.bulk_producer(open_queue),
)
