"""Jobs found by a text in their payload, for those who see payloads with what is secret hidden.

The store is not asked for the text, which would be found in secrets too: neither the jobs on a page, nor where it ends,
nor how long it took tell anything of what is hidden.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from windlass.core.filters import JobFilter
from windlass.core.job import Job
from windlass.core.looks import JobPage
from windlass.core.store import Inspector
from windlass.http.job_pages import fitting, size_of
from windlass.http.payload_reading import Reading
from windlass.http.shown import still_found

CHUNK: Final = 250
"""Jobs that are held at a time."""
MOST_LOOKED: Final = 10_000
MOST_BYTES: Final = 16 * 1024 * 1024
"""Jobs and bytes of payloads that are looked at for one page."""


async def newest_seen(
    store: Inspector, chosen: JobFilter, *, before: int | None, limit: int, most: int, reading: Reading
) -> JobPage:
    """Return a page as `Inspector.newest` does; it ends sooner where payloads are large."""
    look, others = _Look(chosen, limit, reading), replace(chosen, payload_text=None)
    most = min(most, MOST_LOOKED)
    while True:
        asked = min(look.next, most)
        page = await store.newest(others, before=before, limit=asked, most=most)
        last = await look.at(page.jobs)
        if last is not None:
            return JobPage(look.found, last)
        before, most = page.next, most - len(page.jobs)
        if before is None or most < 1 or len(page.jobs) < asked:
            return JobPage(look.found, before)


async def jobs_seen(
    store: Inspector, chosen: JobFilter, *, after: int | None, limit: int, reading: Reading
) -> tuple[list[Job], int | None]:
    """Return a page as `Inspector.jobs` does, of a bounded look, and where to look on; None when all was looked at."""
    look, others = _Look(chosen, limit, reading), replace(chosen, payload_text=None)
    while look.count < MOST_LOOKED:
        asked = look.next
        jobs = await store.jobs(others, after=after, limit=asked)
        last = await look.at(jobs)
        if last is not None:
            return look.found, last
        if len(jobs) < asked:
            return look.found, None
        after = jobs[-1].seq
    return look.found, after


class _Look:
    """A page on its way."""

    def __init__(self, chosen: JobFilter, limit: int, reading: Reading) -> None:
        self.found: list[Job] = []
        self.count = 0
        """Jobs that were looked at."""
        self._text = chosen.payload_text or ""
        self._limit = limit
        self._reading = reading
        self._bytes = 0

    @property
    def next(self) -> int:
        """How many jobs to look at next: they are held while they are looked at."""
        return min(CHUNK, fitting(self.count, self._bytes))

    async def at(self, jobs: Sequence[Job]) -> int | None:
        """Look at some more jobs; return the number of the last one when that is enough for a page."""
        seen = await self._reading.each(jobs, _payload_of, lambda job: still_found(job, self._text))
        self.count += len(jobs)
        for job, is_found in zip(jobs, seen, strict=True):
            if is_found:
                self.found.append(job)
                self._reading.took(size_of(job))
            self._bytes += len(job.payload)
            if len(self.found) >= self._limit or self._bytes > MOST_BYTES:
                return job.seq
        return None


def _payload_of(job: Job) -> int:
    return len(job.payload)
