"""Docket on uvloop: read from a stream as many at a time as it may run, finished one by one."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import QUEUE, Payload
from benchmarks.servers import redis_databases
from benchmarks.workloads import asynchronous

NAME = "docket"
AT_ONCE = 50
"""Concurrent jobs: each may need a connection, and there are at most 100."""
LOOK_EVERY = timedelta(milliseconds=5)
"""How long it sleeps when as many run as may: with its default of 250 ms it does 50 jobs four times a second."""
KEPT = timedelta(minutes=15)
"""How long a finished job stays: its default."""

docket: Any = import_module("docket")


def _nobody(value: object) -> None:
    del value


class Queue:
    """A docket with one function that does nothing but tell that it runs."""

    def __init__(self, opened: Any) -> None:  # noqa: ANN401 - the peer is loaded by name
        """Use an opened docket."""
        self._docket = opened
        self._arrived: Arrived = _nobody

        async def nothing(**value: object) -> None:
            self._arrived(value)

        self._nothing = nothing
        opened.register(nothing)

    async def put(self, value: Payload) -> None:
        """Add one job."""
        await self._docket.add(self._nothing)(**value)

    async def put_many(self, values: Sequence[Payload]) -> None:
        """Add by its call for many."""
        await self._docket.add_many([self._docket.call(self._nothing)(**value) for value in values])

    def working(self, arrived: Arrived) -> AbstractAsyncContextManager[None]:
        """Run its worker."""
        self._arrived = arrived
        return self._working()

    @asynccontextmanager
    async def _working(self) -> AsyncGenerator[None]:
        worker = docket.Worker(self._docket, concurrency=AT_ONCE, minimum_check_interval=LOOK_EVERY)
        # the worker ends when it is closed
        async with asyncio.TaskGroup() as group, worker:
            group.create_task(worker.run_forever())
            yield

    async def left(self) -> int:
        """Count what is in its stream: a finished job is not."""
        async with self._docket.redis() as store:
            left: int = await store.xlen(self._docket.stream_key)
            return left


@asynccontextmanager
async def open_queue(folder: Path, *, keep: bool = False) -> AsyncGenerator[Queue]:
    """Open the database of a folder."""
    kept = KEPT if keep else timedelta()
    async with docket.Docket(name=QUEUE, url=redis_databases.url_of(folder), execution_ttl=kept) as opened:
        yield Queue(opened)


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="pydocket",
    module="docket",
    how=f"its worker on uvloop, {AT_ONCE} jobs at once, a look every {LOOK_EVERY / timedelta(milliseconds=1):.0f} ms",
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
