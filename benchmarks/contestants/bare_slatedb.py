"""The bare engine: jobs as keys of a SlateDB in a folder, with one flush for all who wait for one.

It has no leases, tokens, retries or counts, and keeps no records beside the payload: what a queue costs over it is what
the queue gives.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.measuring.contestant import Arrived, Contestant, Outcome, Role, Trial
from benchmarks.measuring.workload import BULK, Payload, chunks, payloads
from benchmarks.servers.our_loop import run_on_ours
from benchmarks.workloads import asynchronous
from benchmarks.workloads.latency import LIMIT, claim_figures
from windlass.stores.slatedb.fast_bytes import batch_of, next_pairs
from windlass.stores.slatedb.fast_calls import speed_up

NAME = "bare-slatedb"
BATCH = 100
LOOK_EVERY = 0.001
READY, RUNNING, FINISHED = b"a", b"b", b"c"
"""What keys begin with; the time of the enqueue follows, and the value is the payload."""

driver: Any = import_module("slatedb.uniffi")

Claimed = list[tuple[bytes, bytes]]
"""Keys, or what follows in them, and payloads."""


class Flushing:
    """Flushes for whoever waits: one flush at a time, and all who came before it began share it."""

    def __init__(self, database: Any) -> None:  # noqa: ANN401 - loaded by name
        """Flush nothing yet."""
        self._database = database
        self._waiters: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None

    async def flush(self) -> None:
        """Return when all that was written before is durable."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        if self._task is None:
            self._task = asyncio.create_task(self._flush())
        await waiter

    async def _flush(self) -> None:
        while self._waiters:
            waiters, self._waiters = self._waiters, []
            await self._database.flush_with_options(driver.FlushOptions(flush_type=driver.FlushType.WAL))
            for waiter in waiters:
                waiter.set_result(None)
        self._task = None


class Queue:
    """Three families of keys."""

    def __init__(self, database: Any, *, keep: bool) -> None:  # noqa: ANN401 - as above
        """Use an opened database."""
        self._database = database
        self._flushing = Flushing(database)
        self._keep = keep
        self._last = time.time_ns()
        self._front = READY
        """Behind which the ready ones are: a scan from the beginning would walk over all that were deleted."""

    async def put(self, value: Payload) -> None:
        """Write one job."""
        await self._write({self._next(): msgspec.json.encode(value)})

    async def put_many(self, values: Sequence[Payload]) -> None:
        """Write all jobs at once."""
        await self._write({self._next(): msgspec.json.encode(value) for value in values})

    async def claim(self, limit: int) -> Claimed | None:
        """Claim up to `limit` jobs."""
        found = await self._scan(self._front, RUNNING, limit)
        if not found:
            return None
        self._front = found[-1][0] + b"\0"
        claimed = [(key[1:], payload) for key, payload in found]
        taken = dict.fromkeys((key for key, _ in found), None)
        await self._write({**taken, **{RUNNING + place: payload for place, payload in claimed}})
        return claimed

    async def ack(self, claimed: Claimed) -> None:
        """Delete the claimed jobs, or keep them as finished ones."""
        done = dict.fromkeys((RUNNING + place for place, _ in claimed), None)
        kept = {FINISHED + place: payload for place, payload in claimed} if self._keep else {}
        await self._write({**done, **kept})

    async def left(self) -> int:
        """Tell whether any is not finished: 1, or 0."""
        return len(await self._scan(self._front, FINISHED, 1))

    def _next(self) -> bytes:
        self._last += 1
        return READY + self._last.to_bytes(8, "big")

    async def _write(self, changes: Mapping[bytes, bytes | None]) -> None:
        await self._database.write(batch_of(changes))
        await self._flushing.flush()

    async def _scan(self, start: bytes, end: bytes, limit: int) -> Claimed:
        between = driver.KeyRange(start=start, start_inclusive=True, end=end, end_inclusive=False)
        return await next_pairs(await self._database.scan(between), limit)

    def working(self, arrived: Arrived) -> AbstractAsyncContextManager[None]:
        """Claim and ack in a loop, with a look every millisecond when there is nothing."""
        return self._working(arrived)

    @asynccontextmanager
    async def _working(self, arrived: Arrived) -> AsyncGenerator[None]:
        stopped = asyncio.Event()
        async with asynchronous.in_background(self._work(arrived, stopped), stopped.set):
            yield

    async def _work(self, arrived: Arrived, stopped: asyncio.Event) -> None:
        while not stopped.is_set():
            claimed = await self.claim(BATCH)
            if claimed is None:
                await asyncio.sleep(LOOK_EVERY)
                continue
            await self.ack(claimed)
            for _, payload in claimed:
                arrived(payload)


@asynccontextmanager
async def open_queue(folder: Path, *, keep: bool = False) -> AsyncGenerator[Queue]:
    """Open the database of the folder; it flushes only when it is told to."""
    speed_up()
    local = driver.ObjectStoreBuilder(driver.ObjectStoreType.LOCAL)
    local.with_config("local_path", str(folder))
    builder = driver.DbBuilder(NAME, local.build())
    settings = driver.Settings.default()
    settings.set("flush_interval", '"60s"')
    builder.with_settings(settings)
    database = await builder.build()
    yield Queue(database, keep=keep)
    await database.shutdown()


def claim_latency(trial: Trial) -> Outcome:
    """Measure each claim of up to 20 jobs of a drain, the acks outside."""
    return run_on_ours(_claim_latency(trial))


async def _claim_latency(trial: Trial) -> Outcome:
    milliseconds: list[float] = []
    async with open_queue(trial.folder) as queue:
        for numbers in chunks(trial.jobs, BULK):
            await queue.put_many(payloads(numbers))
        while True:
            began = time.perf_counter()
            claimed = await queue.claim(LIMIT)
            ended = time.perf_counter()
            if claimed is None:
                return Outcome(claim_figures(milliseconds))
            milliseconds.append((ended - began) * 1e3)
            await queue.ack(claimed)


CONTESTANT = Contestant(
    name=NAME,
    role=Role.ENGINE,
    distribution="slatedb",
    module="slatedb.uniffi",
    how=f"puts and deletes with one flush for all who wait, claimed and acked {BATCH} at a time; no leases, no tokens",
    durability=lambda _: "survives processes, not power",
    measures={
        "enqueue_one": asynchronous.enqueue_one(open_queue, by=run_on_ours),
        "enqueue_callers": asynchronous.enqueue_callers(open_queue, by=run_on_ours),
        "enqueue_many": asynchronous.enqueue_many(open_queue, by=run_on_ours),
        "claim_deleted": asynchronous.drain(NAME, open_queue, keep=False, by=run_on_ours),
        "claim_kept": asynchronous.drain(NAME, open_queue, keep=True, by=run_on_ours),
        "claim_latency": claim_latency,
    },
    produce=asynchronous.bulk_producer(open_queue, by=run_on_ours),
)
