"""What a second process of `windlass worker` brings when jobs take processor time."""

import asyncio
import time
from contextlib import ExitStack
from statistics import median

from benchmarks.measuring.contestant import Outcome, Trial
from benchmarks.measuring.workload import QUEUE
from benchmarks.servers.app import BenchApp
from benchmarks.servers.working import working

ROUNDS = ((1, 2), (2, 1))
SHARE = 4
LOOK_EVERY = 0.01


async def compare(trial: Trial, *, url: str) -> Outcome:
    """Return the rates of one process and of two on a queue of busy jobs, and how many times the one is the other."""
    made = BenchApp(url)
    rates: dict[int, list[float]] = {1: [], 2: []}
    async with made.app:
        for processes in (count for order in ROUNDS for count in order):
            rates[processes].append(await _rate(made, url, processes, max(1, trial.jobs // SHARE)))
    one, two = median(rates[1]), median(rates[2])
    return Outcome({"rate_one": one, "rate_two": two, "gain": two / one})


async def _rate(made: BenchApp, url: str, processes: int, jobs: int) -> float:
    """Let processes that idle begin together, at the end of a pause, and return their rate until all is succeeded."""
    before = (await made.client.stats(QUEUE)).totals.succeeded
    with ExitStack() as stack:
        await asyncio.to_thread(stack.enter_context, working(url, processes=processes))
        await made.client.pause(QUEUE)
        await made.fill(made.busy, jobs)
        began = time.perf_counter()
        await made.client.resume(QUEUE)
        await made.all_succeeded(before + jobs, look_every=LOOK_EVERY)
        return jobs / (time.perf_counter() - began)
