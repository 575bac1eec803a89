"""Windlass by its server in memory, which only its own process can fill."""

from datetime import timedelta
from functools import partial

from benchmarks.measuring.contestant import Contestant, Outcome, Role, Trial
from benchmarks.servers.app import KEPT, BenchApp
from benchmarks.servers.our_loop import on_our_loop
from benchmarks.workloads import in_process, on_schedule
from benchmarks.workloads.drain import drain

URL = "memory://"
AT_ONCE = timedelta(0)


def drained(trial: Trial, *, keep: timedelta) -> Outcome:
    """Drain a store that the same process has filled."""
    return on_our_loop(_drained(trial, keep))


async def _drained(trial: Trial, keep: timedelta) -> Outcome:
    made = BenchApp(URL, keep=keep)
    async with made.app:
        await made.fill(made.nothing, trial.jobs)
        return await drain(made, trial)


def delayed(trial: Trial) -> Outcome:
    """Enqueue jobs that come due one after the other to an idle server in the same process."""
    del trial
    return on_our_loop(in_process.delayed(URL))


def scheduled(trial: Trial) -> Outcome:
    """Let schedules make jobs on an idle server."""
    del trial
    return on_our_loop(on_schedule.measure(URL))


CONTESTANT = Contestant(
    name="windlass-server-memory",
    role=Role.MODEL,
    distribution="windlass",
    module="windlass",
    how="the same server on memory://, filled by its own process",
    durability=lambda _: "lives with its process",
    measures={
        "claim_deleted": partial(drained, keep=AT_ONCE),
        "claim_kept": partial(drained, keep=KEPT),
        "delayed": delayed,
        "on_schedule": scheduled,
    },
)
