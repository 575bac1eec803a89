"""The producers of the fleet: they enqueue one by one, by key and in batches, and repeat what they are not sure of."""

import asyncio
import itertools
import random
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.sharedctypes import Synchronized
from typing import Final
from uuid import uuid4

import windlass
from proofs.ledger import Ledger
from proofs.serving import QUEUE
from windlass import Client, Enqueued, NewJob, OutcomeUnknown, StoreUnavailable, Unique

CALLERS: Final = 4
BATCH: Final = 20
KINDS: Final = ("on_the_loop", "in_a_thread")
NUMBER: Final = "number"
"""The header by which a job is known, whatever id it has."""
HELD_FOR: Final = timedelta(hours=1)


@dataclass(frozen=True)
class Order:
    """What one producer brings."""

    jobs: int
    longest: float
    processes_every: int
    seed: int
    pause: float = 0.0
    """Seconds between two calls of one of its tasks, on average."""
    queues: tuple[str, ...] = (QUEUE,)


async def produce(ledger: Ledger, url: str, order: Order, allowed: "Synchronized[int]") -> None:
    """Bring jobs, each noted before and after; however often a call is repeated, each is wanted once.

    No more are brought than `allowed`, which rises as faults are delivered, so that every fault meets work.
    """
    async with windlass.connect(url, max_attempts=50) as client, asyncio.TaskGroup() as group:
        producer = Producer(ledger, client, order, allowed)
        for caller in range(CALLERS):
            share = order.jobs // CALLERS + (caller < order.jobs % CALLERS)
            group.create_task(producer.bring(share, caller))
    ledger.write("done")


class Producer:
    """Everything that the tasks of one producing process do."""

    def __init__(self, ledger: Ledger, client: Client, order: Order, allowed: "Synchronized[int]") -> None:
        self._allowed = allowed
        self._brought = 0
        self._ledger = ledger
        self._client = client
        self._order = order
        self._chance = random.Random(order.seed)
        self._numbers = itertools.count()

    async def bring(self, share: int, caller: int) -> None:
        ways = (self._one, self._keyed, self._batch)
        left = share
        for turn in itertools.count(caller):
            if left <= 0:
                return
            if self._order.pause:
                await asyncio.sleep(self._chance.uniform(0, 2 * self._order.pause))
            while self._brought >= self._allowed.value:  # noqa: ASYNC110 - another process raises it
                await asyncio.sleep(0.02)
            brought = await ways[turn % len(ways)](left)
            left -= brought
            self._brought += brought

    async def _one(self, _: int) -> int:
        """Without an id: a repeated call must not make a second job."""
        return await self._until_done([self._new_job(self._queue())])

    async def _keyed(self, _: int) -> int:
        """With a key that is held: a repeated call must find the first one's job."""
        job = self._new_job(self._queue())
        return await self._until_done([job._replace(unique=Unique(_key(job), until=HELD_FOR))])

    async def _batch(self, left: int) -> int:
        """All or none, each with an id of the caller's own; in one queue, as it must be where queues are spread."""
        queue = self._queue()
        return await self._until_done([self._new_job(queue)._replace(id=uuid4()) for _ in range(min(BATCH, left))])

    async def _until_done(self, jobs: list[NewJob]) -> int:
        """Call until it is answered; what may have been done is asked for again under the id that the error names."""
        for job in jobs:
            self._ledger.write("invoked", note=_number(job))
        while not (done := await self._enqueue(jobs)):
            pass
        for job, one in zip(jobs, done, strict=True):
            self._ledger.write("ok", one.id, note=_number(job))
        return len(jobs)

    async def _enqueue(self, jobs: list[NewJob]) -> list[Enqueued]:
        try:
            if len(jobs) > 1:
                return await self._client.enqueue_many(jobs)
            job = jobs[0]
            return [
                await self._client.enqueue(
                    job.queue, job.payload, kind=job.kind, headers=job.headers, unique=job.unique, id=job.id
                )
            ]
        except OutcomeUnknown as unknown:
            self._ledger.write("fault", unknown.job_id, note=type(unknown).__name__)
            if len(jobs) == 1 and jobs[0].unique is None:
                jobs[0] = jobs[0]._replace(id=unknown.job_id)
        except StoreUnavailable as error:
            self._ledger.write("fault", note=f"{type(error).__name__}: {error}")
        return []

    def _queue(self) -> str:
        return self._chance.choice(self._order.queues)

    def _new_job(self, queue: str) -> NewJob:
        number = next(self._numbers)
        seconds = self._chance.uniform(0, self._order.longest)
        kind = "in_a_process" if number % self._order.processes_every == 7 else KINDS[number % 2]
        name = f"{self._ledger.process}: {number}"
        return NewJob(queue, {"seconds": round(seconds, 6)}, kind=kind, headers={NUMBER: name})


def _key(job: NewJob) -> str:
    return _number(job).replace(" ", "-")


def _number(job: NewJob) -> str:
    return (job.headers or {})[NUMBER]
