"""An idle server and the program that enqueues to it in one process, for stores that no other process can open."""

import asyncio
import time
from datetime import UTC, datetime

import windlass
from benchmarks.measuring.contestant import Outcome
from benchmarks.measuring.workload import FIRST_NUMBER, TEXT
from benchmarks.servers.app import BenchApp
from benchmarks.workloads.delay import DELAYED, run_times
from benchmarks.workloads.pickup import WARM_UP, turns


async def pickup(url: str, count: int) -> Outcome:
    """Enqueue to an idle server, one job after the other; a few that are not counted go first."""
    sent: dict[int, float] = {}
    arrivals: dict[int, float] = {}

    def arrived(number: int) -> None:
        arrivals[number] = time.perf_counter()

    made = BenchApp(url, arrived=arrived)
    async with made.app, windlass.Server(made.app):
        for number, gap in turns(range(WARM_UP + count)):
            await asyncio.sleep(gap)
            sent[number] = time.perf_counter()
            await made.arrive.enqueue(FIRST_NUMBER + number, TEXT)
        await made.count.wait(WARM_UP + count)
    return Outcome(
        samples={"pickup": [(arrivals[number] - sent[number]) * 1e3 for number in range(WARM_UP, len(sent))]}
    )


async def delayed(url: str) -> Outcome:
    """Enqueue jobs that come due one after the other to an idle server."""
    arrivals: dict[int, float] = {}

    def arrived(number: int) -> None:
        arrivals[number] = time.time()

    made = BenchApp(url, arrived=arrived)
    async with made.app, windlass.Server(made.app):
        times = dict(enumerate(run_times(DELAYED, datetime.now(UTC))))
        await made.enqueue_for(times)
        await made.count.wait(DELAYED)
    return Outcome(samples={"late": [(arrivals[number] - at.timestamp()) * 1e3 for number, at in times.items()]})
