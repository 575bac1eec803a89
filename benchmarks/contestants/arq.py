"""arq on uvloop: its worker looks for jobs twice a second, takes and finishes one per round trip, many at once.

It has no call for many jobs: they are enqueued by 64 callers.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import QUEUE, Payload
from benchmarks.servers import redis_databases
from benchmarks.workloads import asynchronous

NAME = "arq"
FUNCTION = "nothing"
AT_ONCE = 200
"""Concurrent jobs; five times as many are read at a look."""
KEPT = 3600
"""Seconds that a result stays: its default."""

arq: Any = import_module("arq")
connections: Any = import_module("arq.connections")
workers: Any = import_module("arq.worker")


class Queue:
    """arq's pool and its worker."""

    def __init__(self, settings: Any, pool: Any, *, keep: bool) -> None:  # noqa: ANN401 - the peer is loaded by name
        """Use an opened pool, and the settings to open another one."""
        self._settings = settings
        self._pool = pool
        self._kept = KEPT if keep else 0

    async def put(self, value: Payload) -> None:
        """Enqueue one job."""
        await self._pool.enqueue_job(FUNCTION, **value)

    async def put_many(self, values: Sequence[Payload]) -> None:
        """Enqueue them by many callers."""
        await asynchronous.by_callers(self.put, values)

    def working(self, arrived: Arrived) -> AbstractAsyncContextManager[None]:
        """Run its worker."""
        return self._working(arrived)

    @asynccontextmanager
    async def _working(self, arrived: Arrived) -> AsyncGenerator[None]:
        async def nothing(context: object, **value: object) -> None:
            del context
            arrived(value)

        worker = workers.Worker(
            [workers.func(nothing, name=FUNCTION)],
            queue_name=QUEUE,
            redis_settings=self._settings,
            max_jobs=AT_ONCE,
            keep_result=self._kept,
            handle_signals=False,
        )

        def stop() -> None:
            # there is one when it runs
            worker.main_task.cancel()

        async with asynchronous.in_background(worker.async_run(), stop):
            yield
        await asyncio.gather(*worker.tasks.values())
        await worker.close()

    async def left(self) -> int:
        """Count what is in its queue: a job leaves it when it is finished."""
        left: int = await self._pool.zcard(QUEUE)
        return left


@asynccontextmanager
async def open_queue(folder: Path, *, keep: bool = False) -> AsyncGenerator[Queue]:
    """Open the database of a folder with arq's own settings."""
    settings = connections.RedisSettings.from_dsn(redis_databases.url_of(folder))
    pool = await arq.create_pool(settings, default_queue_name=QUEUE)
    yield Queue(settings, pool, keep=keep)
    await pool.aclose()


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="arq",
    module="arq",
    how=f"its worker on uvloop, {AT_ONCE} jobs at once, a look every 0.5 s, its default; one call for each job",
    durability=redis_databases.durability,
    measures={
        "enqueue_one": asynchronous.enqueue_one(open_queue),
        "enqueue_callers": asynchronous.enqueue_callers(open_queue),
        "enqueue_many": asynchronous.enqueue_many(open_queue),
        "claim_deleted": asynchronous.drain(NAME, open_queue, keep=False),
        "claim_kept": asynchronous.drain(NAME, open_queue, keep=True),
        "end_to_end": asynchronous.end_to_end(NAME, open_queue),
        "pickup": asynchronous.pickup(NAME, open_queue),
    },
    consume=asynchronous.worker_consumer(open_queue),
    produce=asynchronous.bulk_producer(open_queue),
)
