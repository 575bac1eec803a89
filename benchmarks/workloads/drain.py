"""A server that works until every job is marked as done in the store."""

from benchmarks.measuring.contestant import Outcome, Trial
from benchmarks.measuring.machine import peak_mib
from benchmarks.measuring.workload import Stopwatch
from benchmarks.servers.app import BenchApp

# by its name, so that it is loaded by now, as the workers of peers are: loading it is measured by itself
from windlass import Server


async def drain(made: BenchApp, trial: Trial) -> Outcome:
    """Measure from just before the start of the server."""
    watch = Stopwatch(trial.drain_seconds)
    async with Server(made.app):
        return await until_done(made, trial, watch)


async def until_done(made: BenchApp, trial: Trial, watch: Stopwatch) -> Outcome:
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
