"""honker: claimed and acked 32 at a time by a loop, as a user in need of throughput would."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import QUEUE, Payload
from benchmarks.servers.durability import name_of
from benchmarks.workloads import blocking

NAME = "honker"
BATCH = 32
WORKER = "worker-1"

honker: Any = import_module("honker")


class Queue:
    """honker's queue by its batch calls."""

    def __init__(self, database: Any) -> None:  # noqa: ANN401 - the peer ships no types
        """Use an opened database."""
        self._database = database
        self._queue = database.queue(QUEUE)

    def put(self, value: Payload) -> None:
        """Enqueue one job."""
        self._queue.enqueue(value)

    def put_many(self, values: Sequence[Payload]) -> None:
        """Enqueue in one transaction."""
        with self._database.transaction() as transaction:
            for value in values:
                self._queue.enqueue(value, tx=transaction)

    def take(self, *, keep: bool) -> int:
        """Claim and ack one batch; honker deletes at the ack."""
        if keep:
            message = "honker keeps no finished jobs"
            raise ValueError(message)
        claimed = self.claim(BATCH)
        self.ack(claimed)
        return len(claimed)

    def claim(self, limit: int) -> list[int]:
        """Claim up to `limit` jobs."""
        return [job.id for job in self._queue.claim_batch(WORKER, limit)]

    def ack(self, claimed: list[int]) -> None:
        """Ack them in one commit."""
        self._queue.ack_batch(claimed, WORKER)


@contextmanager
def open_queue(folder: Path) -> Generator[Queue]:
    """Open the queue of a folder with honker's own settings."""
    with closing(honker.open(str(folder / "honker.db"))) as database:
        yield Queue(database)


def durability(folder: Path) -> str:
    """Read the setting from honker's connection."""
    with closing(honker.open(str(folder / "honker.db"))) as database:
        [row] = database.query("PRAGMA synchronous")
        return name_of(row["synchronous"])


def consume(folder: Path, count: int, ready: Callable[[], None], arrived: Arrived) -> None:
    """Iterate over the queue as honker's README shows; it wakes on commits of other processes."""

    async def iterate() -> None:
        with closing(honker.open(str(folder / "honker.db"))) as database:
            jobs = database.queue(QUEUE).claim(WORKER)
            ready()
            for _ in range(count):
                job = await anext(jobs)
                arrived(job.payload)
                job.ack()

    asyncio.run(iterate())


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="honker",
    module="honker",
    how="claimed and acked 32 at a time by a loop; pick-up by its async iterator, which wakes on commits",
    durability=durability,
    measures={
        "enqueue_one": blocking.enqueue_one(open_queue),
        "enqueue_callers": blocking.enqueue_callers(open_queue),
        "enqueue_many": blocking.enqueue_many(open_queue),
        "claim_deleted": blocking.claim_loop(open_queue, keep=False),
        "claim_latency": blocking.claim_latency(open_queue),
        "end_to_end": blocking.end_to_end(NAME, open_queue),
        "pickup": blocking.pickup(NAME, open_queue),
    },
    consume=consume,
    produce=blocking.bulk_producer(open_queue),
)
