"""Taskiq on a Redis stream, the only one of its brokers that acks, and on uvloop.

It has no call for many jobs: they are enqueued by 64 callers. An acked job stays in its stream, so that it has no drain
whose records are deleted.
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

NAME = "taskiq"
AT_ONCE = 100
"""Concurrent jobs: the default of its command."""

brokers: Any = import_module("taskiq_redis")
receivers: Any = import_module("taskiq.receiver")
driver: Any = import_module("redis.asyncio")


def _nobody(value: object) -> None:
    del value


class Queue:
    """Taskiq's broker with one function that does nothing but tell that it runs."""

    def __init__(self, broker: Any) -> None:  # noqa: ANN401 - the peer is loaded by name
        """Use a broker that was started."""
        self._broker = broker
        self._store = driver.Redis(connection_pool=broker.connection_pool)
        self._arrived: Arrived = _nobody

        async def nothing(**value: object) -> None:
            self._arrived(value)

        self._nothing = broker.register_task(nothing, "nothing")

    async def put(self, value: Payload) -> None:
        """Kick one job."""
        await self._nothing.kiq(**value)

    async def put_many(self, values: Sequence[Payload]) -> None:
        """Kick them by many callers."""
        await asynchronous.by_callers(self.put, values)

    def working(self, arrived: Arrived) -> AbstractAsyncContextManager[None]:
        """Run its receiver."""
        self._arrived = arrived
        stopped = asyncio.Event()
        receiver = receivers.Receiver(self._broker, max_async_tasks=AT_ONCE)
        return asynchronous.in_background(receiver.listen(stopped), stopped.set)

    async def left(self) -> int:
        """Count what its group has not read or not acked."""
        [group] = await self._store.xinfo_groups(QUEUE)
        left: int = group["lag"] + group["pending"]
        return left


@asynccontextmanager
async def open_queue(folder: Path, *, keep: bool = True) -> AsyncGenerator[Queue]:
    """Open the database of a folder with Taskiq's own settings."""
    del keep
    broker = brokers.RedisStreamBroker(redis_databases.url_of(folder), queue_name=QUEUE)
    await broker.startup()
    yield Queue(broker)
    await broker.shutdown()


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="taskiq-redis",
    module="taskiq_redis",
    how=f"its receiver on a stream and uvloop, {AT_ONCE} jobs at once, no results; one call for each job",
    durability=redis_databases.durability,
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
