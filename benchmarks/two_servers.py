"""What a second server process brings when jobs take processor time."""

import asyncio
import time
from contextlib import ExitStack
from statistics import median

from benchmarks.app import BenchApp
from benchmarks.contestant import Outcome, Trial
from benchmarks.serving import serving
from benchmarks.workload import QUEUE

ROUNDS = ((1, 2), (2, 1))
SHARE = 8


async def compare(trial: Trial, *, url: str) -> Outcome:
    """Return the rates of one server and of two on a queue of busy jobs, and how many times the one is the other."""
    made = BenchApp(url)
    rates: dict[int, list[float]] = {1: [], 2: []}
    async with made.app:
        for servers in (count for order in ROUNDS for count in order):
            rates[servers].append(await _rate(made, url, servers, max(1, trial.jobs // SHARE)))
    one, two = median(rates[1]), median(rates[2])
    return Outcome({"rate_one": one, "rate_two": two, "gain": two / one})


async def _rate(made: BenchApp, url: str, servers: int, jobs: int) -> float:
    """Let servers that idle begin together, at the end of a pause, and return their rate until all is succeeded."""
    before = (await made.client.stats(QUEUE)).totals.succeeded
    with ExitStack() as stack:
        for _ in range(servers):
            await asyncio.to_thread(stack.enter_context, serving(url))
        await made.client.pause(QUEUE)
        await made.fill(made.busy, jobs)
        began = time.perf_counter()
        await made.client.resume(QUEUE)
        await made.all_succeeded(before + jobs)
        return jobs / (time.perf_counter() - began)
