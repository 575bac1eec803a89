"""Jobs that a text leads to: by index those that are named so, by looking those that have it somewhere."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from windlass.client.job_ids import WHOLE, beginning_of, near_its_place
from windlass.client.look_back import LOOKED_AT, Step
from windlass.core.errors import InvalidValue
from windlass.core.filters import JobFilter
from windlass.core.ids import job_id
from windlass.core.job import Job
from windlass.core.looks import JobPage
from windlass.core.store import Inspector, Store
from windlass.http.job_pages import read_newest, size_of
from windlass.http.payload_reading import Reading
from windlass.http.scope_rules import merged
from windlass.http.seen_payloads import newest_seen
from windlass.http.shown import still_found

NEWEST: Final = 10_000
"""How many of the newest jobs are looked at for a text that no index leads to."""
MASKED: Final = 2_000
"""How many payloads are looked at for those who see them without their secrets alone: each is read whole for that."""
_BY_INDEX: Final = ("kind", "tenant", "unique_key", "error_type")
_NOWHERE: Final = "\x01 in no job \x01"
"""A text that no job has: who looks for it learns only how far a look leads."""


class Reach(NamedTuple):
    """How far back a text is looked for that no index leads to: sequence numbers, None for all jobs."""

    anywhere: int | None
    carried: int | None
    reads: bool
    """Whether it is for somebody who may read payloads as they are, by the API."""


async def reach_of(store: Store, chosen: JobFilter, *, reads: bool) -> Reach:
    """Return how far back a look at the newest of the chosen jobs leads, now."""
    nowhere = replace(chosen, text=_NOWHERE)
    anywhere = (await store.newest(nowhere, before=None, limit=1, most=NEWEST)).next
    if reads:
        return Reach(anywhere, anywhere, reads)
    return Reach(anywhere, (await store.newest(nowhere, before=None, limit=1, most=MASKED)).next, reads)


def having(store: Store, chosen: JobFilter, text: str, reach: Reach, reading: Reading) -> Step:
    """Return the step that looks for chosen jobs with a text.

    Among all of them it is found as an id or the beginning of one, and as a kind, tenant, unique key or type of error;
    within `reach` also anywhere in these, in errors and in payloads. What is secret in a payload is not found; and who
    may not read it learns nothing of it, not even by where a page ends.
    """

    async def step(before: int | None, limit: int) -> JobPage:
        pages = [JobPage(await _by_id(store, chosen, text, before), None)]
        pages += [
            await store.newest(wanted, before=before, limit=limit, most=LOOKED_AT) for wanted in _named_so(chosen, text)
        ]
        if _is_within(before, reach.anywhere):
            page = await store.newest(replace(chosen, text=text), before=before, limit=limit, most=NEWEST)
            pages.append(_down_to(reach.anywhere, page))
        if _is_within(before, reach.carried):
            wanted = replace(chosen, payload_text=text)
            look = _carrying if reach.reads else newest_seen
            most = NEWEST if reach.reads else MASKED
            page = await look(store, wanted, before=before, limit=limit, most=most, reading=reading)
            pages.append(_down_to(reach.carried, page))
        return merged(_once_each(pages), limit)

    return step


async def _by_id(store: Store, chosen: JobFilter, text: str, before: int | None) -> list[Job]:
    beginning = beginning_of(text)
    if beginning is None:
        return []
    if len(beginning) < WHOLE:
        found = await near_its_place(store, chosen, beginning)
    else:
        [job] = await store.get((job_id(beginning),))
        found = [] if job is None else await _if_chosen(store, chosen, job)
    return [job for job in found if before is None or job.seq < before]


async def _if_chosen(store: Store, chosen: JobFilter, job: Job) -> list[Job]:
    # the store itself judges: it is let look at this record alone
    wanted = replace(chosen, text=job.id, queue=chosen.queue or job.queue)
    page = await store.newest(wanted, before=job.seq + 1, limit=1, most=1)
    return page.jobs


def _named_so(chosen: JobFilter, text: str) -> Iterator[JobFilter]:
    for field in _BY_INDEX:
        named: dict[str, Any] = {field: text}
        if getattr(chosen, field) in (None, text):
            try:
                yield replace(chosen, **named)
            except InvalidValue:
                # nothing can have such a name
                continue


async def _carrying(
    store: Inspector, chosen: JobFilter, *, before: int | None, limit: int, most: int, reading: Reading
) -> JobPage:
    page = await read_newest(store, chosen, before=before, limit=limit, most=most, reading=reading)
    text = chosen.payload_text or ""
    seen = await reading.each(page.jobs, size_of, lambda job: still_found(job, text))
    return JobPage([job for job, is_found in zip(page.jobs, seen, strict=True) if is_found], page.next)


def _is_within(before: int | None, floor: int | None) -> bool:
    return floor is None or before is None or before > floor


def _down_to(floor: int | None, page: JobPage) -> JobPage:
    if floor is None or (page.next is not None and page.next > floor):
        return page
    return JobPage([job for job in page.jobs if job.seq >= floor], None)


def _once_each(pages: Sequence[JobPage]) -> list[JobPage]:
    met: set[str] = set()
    single: list[JobPage] = []
    for page in pages:
        jobs = [job for job in page.jobs if job.id not in met]
        met.update(job.id for job in jobs)
        single.append(JobPage(jobs, page.next))
    return single
