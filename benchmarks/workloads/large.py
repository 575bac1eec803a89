"""The claim loop on a crowded store, slice by slice in turns with one on an empty store.

Both are worked by one process, some thousand jobs on the one, then as many on the other: what disturbs the
machine for longer than a slice disturbs both, so that a difference of a few per cent can be seen.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median

import windlass
from benchmarks.measuring.contestant import Outcome, Trial
from benchmarks.measuring.workload import QUEUE, Stopwatch, chunks, payload
from benchmarks.servers.store_urls import CROWDED, EMPTY, Url
from benchmarks.workloads.loops import drain

FILL = 10_000
SETTLE = 1_000
SLICES = 10
FAR_AWAY = timedelta(days=30)
WANTED = "wanted"
OTHER_KINDS = 10


@dataclass(frozen=True, slots=True)
class Crowd:
    """What fills the store: the job of each number; `finish` works them off and keeps them; `kinds` are claimed."""

    job: Callable[[int], windlass.NewJob]
    finish: bool = False
    kinds: Sequence[str] | None = None


def waiting(number: int) -> windlass.NewJob:
    """Make a job that can be claimed at once."""
    return windlass.NewJob(QUEUE, payload(number))


def scheduled(number: int) -> windlass.NewJob:
    """Make a job for another day."""
    return windlass.NewJob(QUEUE, payload(number), run_at=datetime.now(UTC) + FAR_AWAY)


def of_another_kind(number: int) -> windlass.NewJob:
    """Make a job that can be claimed at once, but is of a kind that nobody here asks for."""
    return windlass.NewJob(QUEUE, payload(number), kind=f"other-{number % OTHER_KINDS}")


CROWDS = {
    "large_waiting": Crowd(waiting),
    "large_scheduled": Crowd(scheduled),
    "large_finished": Crowd(waiting, finish=True),
    "large_kinds": Crowd(of_another_kind, kinds=[WANTED]),
}


def prepare(trial: Trial, *, crowd: Crowd, url: Url) -> None:
    """Fill the crowded store of the folder with `trial.rows` jobs."""
    asyncio.run(_prepare(trial, crowd, url))


async def _prepare(trial: Trial, crowd: Crowd, url: Url) -> None:
    async with windlass.connect(url(trial.folder, CROWDED), keep_succeeded=None) as client:
        for numbers in chunks(trial.rows, FILL):
            await client.enqueue_many([crowd.job(number) for number in numbers])
            if crowd.finish:
                await drain(client, len(numbers), watch=Stopwatch(), limit=SETTLE)


async def compare(trial: Trial, *, crowd: Crowd, url: Url) -> Outcome:
    """Return the rate on the crowded store, on the empty one, and the median ratio of neighbouring slices.

    It leaves the crowd as it was: each slice adds as many jobs as it takes.
    """
    size = max(1, trial.jobs // SLICES)
    at_once = timedelta(0)
    async with (
        windlass.connect(url(trial.folder, CROWDED), keep_succeeded=at_once) as crowded,
        windlass.connect(url(trial.folder, EMPTY), keep_succeeded=at_once) as empty,
    ):
        return await in_turns(partial(work_slice, crowded, size, crowd), partial(work_slice, empty, size, crowd))


Rate = Callable[[], Awaitable[float]]


async def in_turns(crowded: Rate, empty: Rate) -> Outcome:
    """Take slices of the one and of the other in turns, after one of each that is not counted."""
    await crowded()
    await empty()
    pairs = await pairs_of(crowded, empty, SLICES)
    return Outcome(
        {
            "rate": median(on_crowded for on_crowded, _ in pairs),
            "rate_empty": median(on_empty for _, on_empty in pairs),
            "kept": median(on_crowded / on_empty for on_crowded, on_empty in pairs),
        }
    )


async def pairs_of(one: Rate, other: Rate, count: int) -> list[tuple[float, float]]:
    """Return the rates of so many slices of the one, each with that of a neighbouring slice of the other."""
    return [await _pair(one, other, second_first=bool(number % 2)) for number in range(count)]


async def _pair(one: Rate, other: Rate, *, second_first: bool) -> tuple[float, float]:
    if second_first:
        of_other = await other()
        return await one(), of_other
    return await one(), await other()


async def work_slice(client: windlass.Client, size: int, crowd: Crowd) -> float:
    """Add `size` jobs, untimed, then return the rate at which as many are claimed and acked."""
    kind = None if crowd.kinds is None else crowd.kinds[0]
    await client.enqueue_many([windlass.NewJob(QUEUE, payload(number), kind=kind) for number in range(size)])
    watch = Stopwatch()
    acked = await drain(client, size, watch=watch, kinds=crowd.kinds)
    if acked != size:
        message = f"{acked} of {size} jobs were claimed"
        raise RuntimeError(message)
    return watch.figures(acked)["rate"]
