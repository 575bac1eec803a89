"""A server on a crowded store, slice by slice in turns with one on an empty store."""

import time
from functools import partial

import windlass
from benchmarks import large
from benchmarks.app import BenchApp
from benchmarks.contestant import Outcome, Trial
from benchmarks.store_urls import CROWDED, EMPTY, Url
from benchmarks.workload import QUEUE, payload

SHARE = 4


def waiting(number: int) -> windlass.NewJob:
    """Make a job for the handler that does nothing."""
    return windlass.NewJob(QUEUE, payload(number), kind="nothing")


CROWDS = {
    "large_waiting": large.Crowd(waiting),
    "large_finished": large.Crowd(waiting, finish=True),
}


async def compare(trial: Trial, *, url: Url) -> Outcome:
    """Return what `large.compare` does, for a server that is started for each slice and stopped after it.

    A server takes some jobs more than a slice has before it stops: that many fewer wait in the next one.
    """
    crowded, empty = [BenchApp(url(trial.folder, name)) for name in (CROWDED, EMPTY)]
    size = max(1, trial.jobs // SHARE)
    async with crowded.app, empty.app:
        return await large.in_turns(partial(work_slice, crowded, size), partial(work_slice, empty, size))


async def work_slice(made: BenchApp, size: int) -> float:
    """Add `size` jobs, untimed, then return the rate at which a server that has started begins as many."""
    await made.fill(made.nothing, size)
    goal = made.count.begun + size
    async with windlass.Server(made.app):
        began = time.perf_counter()
        if not await made.count.wait(goal):
            message = f"{goal - made.count.begun} of {size} jobs were not begun in time"
            raise RuntimeError(message)
        return size / (time.perf_counter() - began)
