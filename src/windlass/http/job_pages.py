"""Pages of jobs, read a few at a time: how much they carry is known only when they are here."""

from collections.abc import Sequence
from typing import Final

from windlass.core.filters import JobFilter
from windlass.core.job import Job
from windlass.core.looks import DeadJob, Death, JobPage
from windlass.core.store import Inspector
from windlass.http.payload_reading import LARGEST_PAGE, Reading

FIRST: Final = 32
"""Jobs that are read before it is known how much they carry."""


def size_of(job: Job) -> int:
    """Return about how many bytes a job takes in memory and in a reply."""
    size = len(job.payload) + len(job.result or b"") + sum(len(line.text) for line in job.log)
    return size + sum(len(each.failure.traceback or "") for each in job.history if each.failure is not None)


def size_of_all(jobs: Sequence[Job | None]) -> int:
    """Return about how many bytes these jobs take."""
    return sum(size_of(job) for job in jobs if job is not None)


async def read_jobs(
    store: Inspector, chosen: JobFilter, *, after: int | None, limit: int, reading: Reading
) -> tuple[list[Job], int | None]:
    """Return a page of jobs in the order of their enqueue, and where the next one begins.

    It ends sooner where payloads are large: the caller holds all of them in memory.
    """
    found: list[Job] = []
    while True:
        asked = min(limit - len(found), fitting(len(found), reading.size))
        page = await store.jobs(chosen, after=after, limit=asked)
        found += page
        reading.took(size_of_all(page))
        if len(page) < asked:
            return found, None
        after = page[-1].seq
        if len(found) >= limit or reading.size > LARGEST_PAGE:
            return found, after


async def read_newest(
    store: Inspector, chosen: JobFilter, *, before: int | None, limit: int, most: int, reading: Reading
) -> JobPage:
    """Return a page of jobs as `Inspector.newest` does; it ends sooner where payloads are large."""
    found: list[Job] = []
    while True:
        asked = min(limit - len(found), fitting(len(found), reading.size))
        page = await store.newest(chosen, before=before, limit=asked, most=most)
        found += page.jobs
        reading.took(size_of_all(page.jobs))
        before, most = page.next, most - len(page.jobs)
        if before is None or len(page.jobs) < asked or most < 1:
            return JobPage(found, before)
        if len(found) >= limit or reading.size > LARGEST_PAGE:
            return JobPage(found, before)


async def read_dead(
    store: Inspector, queue: str | None, *, before: Death | None, limit: int, reading: Reading
) -> tuple[list[DeadJob], bool]:
    """Return a page of dead jobs, the last to die first, and whether there may be more.

    It ends sooner where payloads are large, as `read_jobs` does.
    """
    found: list[DeadJob] = []
    while True:
        asked = min(limit - len(found), fitting(len(found), reading.size))
        page = await store.dead(queue, before=before, limit=asked)
        found += page
        reading.took(size_of_all([dead.job for dead in page]))
        if len(page) < asked:
            return found, False
        before = page[-1].death
        if len(found) >= limit or reading.size > LARGEST_PAGE:
            return found, True


def fitting(count: int, size: int) -> int:
    """Return how many jobs to read next, if they carry as much as these did."""
    return FIRST if not count else max(1, (LARGEST_PAGE - size) // max(1, size // count))
