"""The measurements of a queue with a worker on an event loop, written once for all peers on a server."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Protocol

from benchmarks.measuring.contestant import Arrived, Consume, Measure, Outcome, Produce, Trial
from benchmarks.measuring.machine import peak_mib
from benchmarks.measuring.workload import BULK, CALLERS, Payload, Stopwatch, chunks, payload, payloads
from benchmarks.workloads.count import PATIENCE, Count
from benchmarks.workloads.pickup import pick_up
from benchmarks.workloads.producer import fill_by_another, producer

LOOK_EVERY = 0.001
LONG = 60.0


class AsyncQueue(Protocol):
    """One peer, opened on a database that has its tables."""

    async def put(self, value: Payload) -> None:
        """Enqueue one job."""
        ...

    async def put_many(self, values: Sequence[Payload]) -> None:
        """Enqueue in one call of the peer's own, or by as many callers as it bears."""
        ...

    def working(self, arrived: Arrived) -> AbstractAsyncContextManager[None]:
        """Run the peer's own worker in this process while the block lasts; each job calls `arrived` and is done."""
        ...

    async def left(self) -> int:
        """Return how many jobs are not yet marked as done in the store."""
        ...


class Open(Protocol):
    """Opens a peer on the database of a folder and makes its tables unless they are there."""

    def __call__(self, folder: Path, *, keep: bool = False) -> AbstractAsyncContextManager[AsyncQueue]:
        """With `keep` its worker leaves finished jobs in the store, where the peer has a choice."""
        ...


Run = Callable[[Coroutine[object, object, Outcome | None]], Outcome]


def run(main: Coroutine[object, object, Outcome | None]) -> Outcome:
    """Run on uvloop, as the peers' own commands do."""
    outcome: Outcome | None = import_module("uvloop").run(main)
    return outcome or Outcome()


def enqueue_one(open_queue: Open, *, by: Run = run) -> Measure:
    """Measure one call after the other."""

    async def measure(trial: Trial) -> Outcome:
        values = payloads(range(trial.jobs))
        async with open_queue(trial.folder) as queue:
            done = 0
            watch = Stopwatch(trial.seconds)
            for value in values:
                await queue.put(value)
                done += 1
                if watch.is_over():
                    break
            return Outcome(watch.figures(done))

    return lambda trial: by(measure(trial))


def enqueue_callers(open_queue: Open, *, by: Run = run) -> Measure:
    """Measure many coroutines on one opened queue, each making one call after the other."""

    async def measure(trial: Trial) -> Outcome:
        share = max(1, trial.jobs // CALLERS)
        async with open_queue(trial.folder) as queue:
            watch = Stopwatch(trial.seconds)

            async def call(caller: int) -> int:
                for done in range(share):
                    if watch.is_over():
                        return done
                    await queue.put(payload(caller * share + done))
                return share

            done = await asyncio.gather(*[call(caller) for caller in range(CALLERS)])
            return Outcome(watch.figures(sum(done)))

    return lambda trial: by(measure(trial))


def enqueue_many(open_queue: Open, *, by: Run = run) -> Measure:
    """Measure batches of 1,000."""

    async def measure(trial: Trial) -> Outcome:
        batches = [payloads(numbers) for numbers in chunks(trial.jobs, BULK)]
        async with open_queue(trial.folder) as queue:
            done = 0
            watch = Stopwatch(trial.seconds)
            for batch in batches:
                await queue.put_many(batch)
                done += len(batch)
                if watch.is_over():
                    break
            return Outcome(watch.figures(done))

    return lambda trial: by(measure(trial))


def drain(name: str, open_queue: Open, *, keep: bool, by: Run = run) -> Measure:
    """Measure the peer's worker on a queue that another process has filled, until every job is marked as done."""

    async def measure(trial: Trial) -> Outcome:
        async with open_queue(trial.folder, keep=keep) as queue:
            return await _worked(queue, trial, lambda: None)

    def filled(trial: Trial) -> Outcome:
        fill_by_another(name, trial.folder, trial.jobs)
        return by(measure(trial))

    return filled


def end_to_end(name: str, open_queue: Open) -> Measure:
    """Measure the peer's worker while another process enqueues."""

    async def measure(trial: Trial, go: Callable[[], None]) -> Outcome:
        async with open_queue(trial.folder) as queue:
            return await _worked(queue, trial, go)

    def beside(trial: Trial) -> Outcome:
        with producer(name, trial.folder, trial.jobs) as producing:
            return run(measure(trial, producing.go))

    return beside


async def _worked(queue: AsyncQueue, trial: Trial, go: Callable[[], None]) -> Outcome:
    count = Count()
    watch = Stopwatch(trial.drain_seconds)
    async with queue.working(lambda _: count.add()):
        go()
        if await count.wait(trial.jobs, trial.drain_seconds):
            await _until_none_is_left(queue)
        else:
            watch.is_over()
        figures = watch.figures(count.begun)
        if count.begun > trial.jobs:
            message = f"{count.begun} attempts of {trial.jobs} jobs"
            raise RuntimeError(message)
        return Outcome({**figures, "peak_mib": peak_mib()})


async def _until_none_is_left(queue: AsyncQueue) -> None:
    async with asyncio.timeout(PATIENCE):
        # the peer has no event for it
        while await queue.left():  # noqa: ASYNC110
            await asyncio.sleep(LOOK_EVERY)


def pickup(name: str, open_queue: Open) -> Measure:
    """Measure the time to an idle worker in another process."""

    async def measure(trial: Trial) -> Outcome:
        async with open_queue(trial.folder) as queue:
            with pick_up(name, trial.folder, trial.pickups) as picked:
                for number, gap in picked.turns():
                    await asyncio.sleep(gap)
                    value = payload(number)
                    picked.sending(number)
                    await queue.put(value)
                return Outcome(samples={"pickup": await asyncio.to_thread(picked.milliseconds)})

    return lambda trial: run(measure(trial))


def worker_consumer(open_queue: Open) -> Consume:
    """Let the peer's worker wait for jobs."""

    def consume(folder: Path, count: int, ready: Callable[[], None], arrived: Arrived) -> None:
        async def work() -> None:
            begun = Count()

            def arrive(value: object) -> None:
                arrived(value)
                begun.add()

            async with open_queue(folder) as queue, queue.working(arrive):
                ready()
                await begun.wait(count, LONG)

        run(work())

    return consume


def bulk_producer(open_queue: Open, *, by: Run = run) -> Produce:
    """Enqueue in batches of 1,000."""

    def produce(folder: Path, count: int, ready: Callable[[], None]) -> None:
        async def enqueue() -> None:
            async with open_queue(folder) as queue:
                ready()
                for numbers in chunks(count, BULK):
                    await queue.put_many(payloads(numbers))

        by(enqueue())

    return produce


async def by_callers(put: Callable[[Payload], Awaitable[None]], values: Sequence[Payload]) -> None:
    """Enqueue many by a peer that has no call for it: 64 callers share the work, as many as connections bear."""
    left = iter(values)

    async def call() -> None:
        for value in left:
            await put(value)

    await asyncio.gather(*[call() for _ in range(CALLERS)])


@asynccontextmanager
async def in_background(main: Coroutine[object, object, object], stop: Callable[[], None]) -> AsyncGenerator[None]:
    """Run a worker's own endless call beside the block, and tell it to stop at the end; its failure ends the block."""
    async with asyncio.TaskGroup() as group:
        group.create_task(main)
        yield
        stop()
