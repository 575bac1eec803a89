"""A list of jobs, the newest first, as far back as a short time allows."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from windlass.core.clock import Clock
from windlass.core.filters import JobFilter
from windlass.core.job import Job
from windlass.core.looks import JobPage
from windlass.core.store import Store

ENOUGH: Final = 0.2
"""Seconds after which a list is shown with what was found."""
LOOKED_AT: Final = 5_000
"""Records that one step looks at."""
READ: Final = 1_000
"""The most jobs that one step reads."""
FIRST: Final = 50
"""Jobs that are read before it is known how much they carry."""
AT_ONCE: Final = 8 * 1024 * 1024
"""Bytes of payloads and results that one step reads, if the jobs ahead are like those behind."""

Step: TypeAlias = Callable[[int | None, int], Awaitable[JobPage]]
"""Looks at jobs before a sequence number, for so many of them."""


def matching(store: Store, chosen: JobFilter) -> Step:
    """Return the step that looks for the jobs of a filter."""

    async def step(before: int | None, limit: int) -> JobPage:
        return await store.newest(chosen, before=before, limit=limit, most=LOOKED_AT)

    return step


async def look_back(step: Step, *, limit: int, before: int | None, clock: Clock, seconds: float) -> JobPage:
    """Return up to `limit` jobs, the newest first, and where to look on; it ends soon after `seconds`."""
    found: list[Job] = []
    over_at = clock.monotonic() + seconds
    while True:
        page = await step(before, min(limit - len(found), READ))
        found += page.jobs
        before = page.next
        if before is None or len(found) >= limit or clock.monotonic() > over_at:
            return JobPage(found, before)


async def look_through(step: Step, *, most: int, clock: Clock, seconds: float) -> AsyncGenerator[JobPage]:
    """Give up to `most` jobs, the newest first, some at a time; it ends soon after `seconds`.

    They are fewer at a time where they carry much: whoever forgets that with each page holds little.
    """
    over_at = clock.monotonic() + seconds
    before: int | None = None
    limit, count = FIRST, 0
    while True:
        page = await step(before, min(limit, most - count))
        yield page
        before, count = page.next, count + len(page.jobs)
        if before is None or count >= most or clock.monotonic() > over_at:
            return
        limit = _fitting(page.jobs, limit)


def _fitting(jobs: Sequence[Job], limit: int) -> int:
    """Return how many jobs the next step may read."""
    if not jobs:
        return limit
    size = sum(len(job.payload) + len(job.result or b"") for job in jobs) // len(jobs)
    return max(1, min(READ, AT_ONCE // max(1, size)))
