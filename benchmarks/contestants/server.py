"""Windlass by its server: an app with one handler that does nothing, default settings, one process."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec

import windlass
from benchmarks import large, large_server, on_schedule, two_processes
from benchmarks.app import KEPT, BenchApp
from benchmarks.contestant import Arrived, Contestant, Measure, Outcome, Role, Trial
from benchmarks.delay import DELAYED, run_times
from benchmarks.machine import peak_mib
from benchmarks.pickup import pick_up
from benchmarks.producer import fill_by_another, producer
from benchmarks.serving import serving
from benchmarks.workload import FIRST_NUMBER, TEXT, Stopwatch

NAME = "windlass-server"
IN_MEMORY = "memory://"
AT_ONCE = timedelta(0)
LONG = 60.0
COLD_ROWS = 20_000


def file_url(folder: Path) -> str:
    """Return the URL of a file in the folder, every option at its default."""
    return f"sqlite:///{folder / 'windlass.db'}"


def drain_file(trial: Trial, *, keep: timedelta) -> Outcome:
    """Drain a file that another process has filled."""
    fill_by_another(NAME, trial.folder, trial.jobs)
    return asyncio.run(_drain_file(trial, keep))


async def _drain_file(trial: Trial, keep: timedelta) -> Outcome:
    made = BenchApp(file_url(trial.folder), keep=keep)
    async with made.app:
        return await _drain(made, trial)


def drain_memory(trial: Trial, *, keep: timedelta) -> Outcome:
    """Drain a store in memory, which can only be filled by the same process."""
    return asyncio.run(_drain_memory(trial, keep))


async def _drain_memory(trial: Trial, keep: timedelta) -> Outcome:
    made = BenchApp(IN_MEMORY, keep=keep)
    async with made.app:
        await made.fill(made.nothing, trial.jobs)
        return await _drain(made, trial)


async def _drain(made: BenchApp, trial: Trial) -> Outcome:
    watch = Stopwatch(trial.drain_seconds)
    async with windlass.Server(made.app):
        return await _until_done(made, trial, watch)


async def _until_done(made: BenchApp, trial: Trial, watch: Stopwatch) -> Outcome:
    """Wait until every job is marked as done in the store, or time is up; what has begun is counted then."""
    if await made.count.wait(trial.jobs, trial.drain_seconds):
        await made.all_succeeded(trial.jobs)
    else:
        watch.is_over()
    figures = watch.figures(made.count.begun)
    if made.count.begun > trial.jobs:
        message = f"{made.count.begun} attempts of {trial.jobs} jobs"
        raise RuntimeError(message)
    return Outcome({**figures, "peak_mib": peak_mib()})


def end_to_end(trial: Trial) -> Outcome:
    """Work what another process enqueues meanwhile."""
    with producer(NAME, trial.folder, trial.jobs) as producing:
        return asyncio.run(_end_to_end(trial, producing.go))


async def _end_to_end(trial: Trial, go: Callable[[], None]) -> Outcome:
    made = BenchApp(file_url(trial.folder))
    async with made.app, windlass.Server(made.app):
        watch = Stopwatch(trial.drain_seconds)
        go()
        return await _until_done(made, trial, watch)


def produce(folder: Path, count: int, ready: Callable[[], None]) -> None:
    """Enqueue calls of the handler, 1,000 at once."""

    async def enqueue() -> None:
        made = BenchApp(file_url(folder))
        async with made.app:
            ready()
            await made.fill(made.nothing, count)

    asyncio.run(enqueue())


def pickup(trial: Trial) -> Outcome:
    """Enqueue to an idle server in another process."""
    return asyncio.run(_pickup(trial))


async def _pickup(trial: Trial) -> Outcome:
    made = BenchApp(file_url(trial.folder))
    async with made.app:
        with pick_up(NAME, trial.folder, trial.pickups) as run:
            for number, gap in run.turns():
                await asyncio.sleep(gap)
                run.sending(number)
                await made.arrive.enqueue(FIRST_NUMBER + number, TEXT)
            return Outcome(samples={"pickup": run.milliseconds()})


def consume(folder: Path, count: int, ready: Callable[[], None], arrived: Arrived) -> None:
    """Serve until `count` jobs have begun."""

    async def serve() -> None:
        made = BenchApp(file_url(folder), arrived=lambda number: arrived({"n": FIRST_NUMBER + number}))
        async with made.app, windlass.Server(made.app):
            ready()
            await made.count.wait(count, LONG)

    asyncio.run(serve())


def delayed_file(trial: Trial) -> Outcome:
    """Enqueue jobs that come due one after the other to an idle server in another process."""
    return asyncio.run(_delayed_file(trial))


async def _delayed_file(trial: Trial) -> Outcome:
    made = BenchApp(file_url(trial.folder))
    async with made.app:
        with pick_up(NAME, trial.folder, DELAYED) as run:
            times = dict(zip(run.numbers, run_times(len(run.numbers), datetime.now(UTC)), strict=True))
            await _enqueue_delayed(made, times)
            for number, at in times.items():
                run.due(number, at)
            return Outcome(samples={"late": run.milliseconds()})


def delayed_memory(trial: Trial) -> Outcome:
    """Enqueue jobs that come due one after the other to an idle server in the same process."""
    del trial
    return asyncio.run(_delayed_memory())


async def _delayed_memory() -> Outcome:
    arrivals: dict[int, float] = {}

    def arrived(number: int) -> None:
        arrivals[number] = time.time()

    made = BenchApp(IN_MEMORY, arrived=arrived)
    async with made.app, windlass.Server(made.app):
        times = dict(enumerate(run_times(DELAYED, datetime.now(UTC))))
        await _enqueue_delayed(made, times)
        await made.count.wait(DELAYED)
    return Outcome(samples={"late": [(arrivals[number] - at.timestamp()) * 1e3 for number, at in times.items()]})


async def _enqueue_delayed(made: BenchApp, times: dict[int, datetime]) -> None:
    calls = [made.arrive.options(run_at=at).call(FIRST_NUMBER + number, TEXT) for number, at in times.items()]
    await made.app.enqueue_many(calls)


def on_schedule_file(trial: Trial) -> Outcome:
    """Let schedules make jobs on an idle server."""
    return asyncio.run(on_schedule.measure(file_url(trial.folder)))


def on_schedule_memory(trial: Trial) -> Outcome:
    """Do the same in memory."""
    del trial
    return asyncio.run(on_schedule.measure(IN_MEMORY))


def compare_processes(trial: Trial) -> Outcome:
    """Measure one process of `windlass worker` and two on busy jobs."""
    return asyncio.run(two_processes.compare(trial, url=file_url(trial.folder)))


def prepare_cold(trial: Trial) -> None:
    """Leave a file with finished jobs."""
    large.prepare(msgspec.structs.replace(trial, rows=COLD_ROWS), crowd=large_server.CROWDS["large_finished"])


def cold_open(trial: Trial) -> Outcome:
    """Time a server process on that file from its very start to the return of `Server.start`."""
    began = time.perf_counter()
    with serving(large.url(trial.folder, "crowded")):
        return Outcome({"ready": (time.perf_counter() - began) * 1e3})


def compare_large(trial: Trial) -> Outcome:
    """Measure a server on a crowded file beside one on an empty file."""
    return asyncio.run(large_server.compare(trial))


_MEASURES: dict[str, Measure] = {
    "claim_deleted": partial(drain_file, keep=AT_ONCE),
    "claim_kept": partial(drain_file, keep=KEPT),
    "end_to_end": end_to_end,
    "two_processes": compare_processes,
    "pickup": pickup,
    "delayed": delayed_file,
    "on_schedule": on_schedule_file,
    "cold_open": cold_open,
}
_MEASURES.update(dict.fromkeys(large_server.CROWDS, compare_large))

SQLITE = Contestant(
    name=NAME,
    role=Role.OURS,
    distribution="windlass",
    module="windlass",
    how="windlass.Server(app) in one process, one async handler that does nothing; filled by another process",
    durability=lambda _: "FULL",
    measures=_MEASURES,
    first_use="windlass.Server(windlass.App('memory://'))",
    prepare={name: partial(large.prepare, crowd=crowd) for name, crowd in large_server.CROWDS.items()}
    | {"cold_open": prepare_cold},
    consume=consume,
    produce=produce,
)

MEMORY = Contestant(
    name="windlass-server-memory",
    role=Role.MODEL,
    distribution="windlass",
    module="windlass",
    how="the same server on memory://, filled by its own process",
    durability=lambda _: "lives with its process",
    measures={
        "claim_deleted": partial(drain_memory, keep=AT_ONCE),
        "claim_kept": partial(drain_memory, keep=KEPT),
        "delayed": delayed_memory,
        "on_schedule": on_schedule_memory,
    },
)
