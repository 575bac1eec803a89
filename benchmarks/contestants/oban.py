"""Oban for Python on psycopg and uvloop: claimed as many at a time as its queue allows, finished one by one."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import QUEUE, Payload
from benchmarks.servers import postgres_databases
from benchmarks.workloads import asynchronous

NAME = "oban"
LIMIT = 200
"""Concurrent jobs."""

oban: Any = import_module("oban")
schema: Any = import_module("oban.schema")


_listeners: list[Arrived] = []
"""Whom the worker tells of a job: Oban makes the worker itself, by the name that is in the store."""


class Nothing:
    """A job that does nothing."""

    async def process(self, job: Any) -> None:  # noqa: ANN401 - the peer is loaded by name
        """Tell that it runs."""
        _listeners[-1](job.args)


worker: Any = oban.worker(queue=QUEUE)(Nothing)


class Queue:
    """Oban as a client, and as a server while it works."""

    def __init__(self, pool: Any) -> None:  # noqa: ANN401 - the peer is loaded by name
        """Use an opened pool."""
        self._pool = pool
        self._client = oban.Oban(pool=pool)

    async def put(self, value: Payload) -> None:
        """Enqueue one job."""
        await self._client.enqueue(worker.new(value))

    async def put_many(self, values: Sequence[Payload]) -> None:
        """Enqueue by its call for many."""
        await self._client.enqueue_many([worker.new(value) for value in values])

    def working(self, arrived: Arrived) -> AbstractAsyncContextManager[None]:
        """Run it in server mode."""
        _listeners.append(arrived)
        server: AbstractAsyncContextManager[None] = oban.Oban(pool=self._pool, queues={QUEUE: LIMIT})
        return server

    async def left(self) -> int:
        """Count what is not finished."""
        async with self._pool.connection() as connection:
            rows = await connection.execute("select count(*) from oban_jobs where state <> 'completed'")
            [left] = await rows.fetchone()
            return int(left)


@asynccontextmanager
async def open_queue(folder: Path, *, keep: bool = True) -> AsyncGenerator[Queue]:
    """Open the database of a folder with Oban's own pool."""
    del keep
    pool = await oban.Oban.create_pool(postgres_databases.url_of(folder))
    async with pool.connection() as connection:
        rows = await connection.execute("select to_regclass('oban_jobs')")
        [known] = await rows.fetchone()
    if known is None:
        await schema.install(pool)
    yield Queue(pool)
    await pool.close()


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="oban",
    module="oban",
    how=f"its server mode on psycopg and uvloop, {LIMIT} jobs at once; finished jobs stay for a day",
    durability=postgres_databases.durability,
    measures={
        "enqueue_one": asynchronous.enqueue_one(open_queue),
        "enqueue_callers": asynchronous.enqueue_callers(open_queue),
        "enqueue_many": asynchronous.enqueue_many(open_queue),
        "claim_kept": asynchronous.drain(NAME, open_queue, keep=True),
        "end_to_end": asynchronous.end_to_end(NAME, open_queue),
        "pickup": asynchronous.pickup(NAME, open_queue),
    },
    consume=asynchronous.worker_consumer(open_queue),
    produce=asynchronous.bulk_producer(open_queue),
)
