"""A server on a crowded store, slice by slice in turns with one on a store where few jobs wait."""

import time
from functools import partial

import windlass
from benchmarks.measuring.contestant import Outcome, Trial
from benchmarks.measuring.workload import QUEUE, payload
from benchmarks.servers.app import BenchApp
from benchmarks.servers.store_urls import CROWDED, EMPTY, Url
from benchmarks.workloads import large

SHARE = 4
BEHIND = 5_000
"""Jobs that wait behind a slice at least: more than a server claims ahead.

Where a slice is all there is, its last few thousand jobs come without claims being made for those behind them, which
on a crowded store are made and given back.
"""


def waiting(number: int) -> windlass.NewJob:
    """Make a job for the handler that does nothing."""
    return windlass.NewJob(QUEUE, payload(number), kind="nothing")


CROWDS = {
    "large_waiting": large.Crowd(waiting),
    "large_finished": large.Crowd(waiting, finish=True),
}


async def compare(trial: Trial, *, url: Url) -> Outcome:
    """Return what `large.compare` does, for a server that is started for each slice and stopped after it.

    The store that is compared with is not empty either: as many jobs wait behind each slice as a server looks ahead.
    """
    crowded, empty = [BenchApp(url(trial.folder, name)) for name in (CROWDED, EMPTY)]
    size = max(1, trial.jobs // SHARE)
    async with crowded.app, empty.app:
        return await large.in_turns(partial(work_slice, crowded, size), partial(work_slice, empty, size))


async def work_slice(made: BenchApp, size: int) -> float:
    """Add `size` jobs, untimed, then return the rate at which a server that has started begins as many.

    It takes some jobs more before it stops: where few wait behind the slice, these are added too.
    """
    pending = (await made.client.stats(QUEUE)).pending
    await made.fill(made.nothing, max(size, size + BEHIND - pending))
    goal = made.count.begun + size
    async with windlass.Server(made.app):
        began = time.perf_counter()
        if not await made.count.wait(goal):
            message = f"{goal - made.count.begun} of {size} jobs were not begun in time"
            raise RuntimeError(message)
        return size / (time.perf_counter() - began)
