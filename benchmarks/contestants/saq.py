"""SAQ on Redis and on Postgres, both on uvloop: its worker takes and finishes one job per round trip, many at once.

It has no call for many jobs: they are enqueued by 64 callers.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import QUEUE, Payload
from benchmarks.servers import postgres_databases, redis_databases
from benchmarks.workloads import asynchronous

FUNCTION = "nothing"
AT_ONCE = 20
"""Concurrent jobs."""
AT_ONCE_GONE = -1
"""How long a finished job stays, in its seconds; its default is ten minutes."""

saq: Any = import_module("saq")


class Queue:
    """SAQ's queue and its worker."""

    def __init__(self, queue: Any, *, keep: bool) -> None:  # noqa: ANN401 - the peer is loaded by name
        """Use a queue that is connected."""
        self._queue = queue
        self._keep = keep

    async def put(self, value: Payload) -> None:
        """Enqueue one job."""
        await self._queue.enqueue(FUNCTION, **value)

    async def put_many(self, values: Sequence[Payload]) -> None:
        """Enqueue them by many callers."""
        await asynchronous.by_callers(self.put, values)

    def working(self, arrived: Arrived) -> AbstractAsyncContextManager[None]:
        """Run its worker; what stays of a job is the job's own setting, which may change while it runs."""

        async def nothing(context: Any, **value: object) -> None:  # noqa: ANN401 - as above
            if not self._keep:
                context["job"].ttl = AT_ONCE_GONE
            arrived(value)

        worker = saq.Worker(self._queue, [(FUNCTION, nothing)], concurrency=AT_ONCE)

        def stop() -> None:
            # looked up when it is time: the worker has made another one by then
            worker.event.set()

        return asynchronous.in_background(worker.start(), stop)

    async def left(self) -> int:
        """Count what is not finished."""
        left: int = await self._queue.count("incomplete")
        return left


def _opening(url_of: Callable[[Path], str]) -> asynchronous.Open:
    @asynccontextmanager
    async def open_queue(folder: Path, *, keep: bool = False) -> AsyncGenerator[Queue]:
        """Open the database of a folder with SAQ's own settings."""
        queue = saq.Queue.from_url(url_of(folder), name=QUEUE)
        await queue.connect()
        yield Queue(queue, keep=keep)
        await queue.disconnect()

    return open_queue


def _contestant(
    name: str, module: str, driver: str, open_queue: asynchronous.Open, durability: Callable[[Path], str]
) -> Contestant:
    return Contestant(
        name=name,
        role=Role.PEER,
        distribution="saq",
        module=module,
        how=f"its worker on {driver}uvloop, {AT_ONCE} jobs at once, finished one by one; one call for each job",
        durability=durability,
        measures={
            "enqueue_one": asynchronous.enqueue_one(open_queue),
            "enqueue_callers": asynchronous.enqueue_callers(open_queue),
            "enqueue_many": asynchronous.enqueue_many(open_queue),
            "claim_deleted": asynchronous.drain(name, open_queue, keep=False),
            "claim_kept": asynchronous.drain(name, open_queue, keep=True),
            "end_to_end": asynchronous.end_to_end(name, open_queue),
            "pickup": asynchronous.pickup(name, open_queue),
        },
        consume=asynchronous.worker_consumer(open_queue),
        produce=asynchronous.bulk_producer(open_queue),
    )


REDIS = _contestant("saq", "saq.queue.redis", "", _opening(redis_databases.url_of), redis_databases.durability)
POSTGRES = _contestant(
    "saq-postgres",
    "saq.queue.postgres",
    "psycopg and ",
    _opening(postgres_databases.url_of),
    postgres_databases.durability,
)
