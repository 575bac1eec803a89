"""streaQ on coredis and uvloop: read from a stream as many at a time as it may prefetch, finished one by one."""

import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import QUEUE, Payload
from benchmarks.servers import redis_databases
from benchmarks.workloads import asynchronous

NAME = "streaq"
AT_ONCE = 16
"""Concurrent jobs: its default, as many again are prefetched."""
KEPT = 300
"""Seconds that a result stays: its default."""

anyio: Any = import_module("anyio")
streaq: Any = import_module("streaq")


def _nobody(value: object) -> None:
    del value


def _worker(url: str, arrived: Arrived, *, keep: bool = False) -> tuple[Any, Any]:
    """Return a worker and its only function, which does nothing but tell that it runs."""
    worker = streaq.Worker(redis_url=url, queue_name=QUEUE, concurrency=AT_ONCE)

    async def nothing(**value: object) -> None:
        arrived(value)

    return worker, worker.task(name="nothing", ttl=KEPT if keep else 0)(nothing)


class Queue:
    """streaQ's worker as it enqueues, and another one while it works."""

    def __init__(self, url: str, *, keep: bool) -> None:
        """Open nothing."""
        self._url = url
        self._keep = keep
        self.worker, self._nothing = _worker(url, _nobody)

    async def put(self, value: Payload) -> None:
        """Enqueue one job."""
        await self._nothing.enqueue(**value)

    async def put_many(self, values: Sequence[Payload]) -> None:
        """Enqueue by its call for many."""
        await self.worker.enqueue_many([self._nothing.enqueue(**value) for value in values])

    def working(self, arrived: Arrived) -> AbstractAsyncContextManager[None]:
        """Run its worker."""
        return self._working(arrived)

    @asynccontextmanager
    async def _working(self, arrived: Arrived) -> AsyncGenerator[None]:
        worker, _ = _worker(self._url, arrived, keep=self._keep)
        async with anyio.create_task_group() as group:
            await group.start(worker.run_async)
            yield
            # what its command does at this signal is its only way to stop that lets running jobs be finished
            signal.raise_signal(signal.SIGTERM)

    async def left(self) -> int:
        """Count what is in its stream: a finished job is not."""
        left: int = await self.worker.queue_size()
        return left


@asynccontextmanager
async def open_queue(folder: Path, *, keep: bool = False) -> AsyncGenerator[Queue]:
    """Open the database of a folder."""
    queue = Queue(redis_databases.url_of(folder), keep=keep)
    async with queue.worker:
        yield queue


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="streaq",
    module="streaq",
    how=f"its worker on coredis and uvloop, {AT_ONCE} jobs at once",
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
