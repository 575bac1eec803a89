"""The newest jobs first, page by page, however many there are and however few match."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from windlass.core.filters import JobFilter
from windlass.core.job import Failure, Job
from windlass.core.looks import JobPage
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.verdict import ToDead
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.given import HOUR, MINUTE, a_job, claim_one, enqueue_each, settlement
from windlass.testing.conformance.reach import Reach

ALL: Final = 1_000_000
PAGES: Final = 1_000


async def _pages(store: Store, chosen: JobFilter, *, limit: int, most: int) -> list[JobPage]:
    """Return every page to the last one; each leads further back."""
    pages = [await store.newest(chosen, before=None, limit=limit, most=most)]
    while (before := pages[-1].next) is not None:
        assert len(pages) < PAGES
        page = await store.newest(chosen, before=before, limit=limit, most=most)
        assert page.next is None or page.next < before
        pages.append(page)
    assert max(len(page.jobs) for page in pages) <= limit
    return pages


async def _walked(store: Store, chosen: JobFilter, *, limit: int = 3, most: int = 10) -> list[Job]:
    return [job for page in await _pages(store, chosen, limit=limit, most=most) for job in page.jobs]


async def test_the_newest_job_comes_first(store: Store) -> None:
    jobs = [a_job() for _ in range(5)]
    await store.enqueue(jobs)

    first = await store.newest(JobFilter(), before=None, limit=3, most=ALL)
    rest = await store.newest(JobFilter(), before=first.jobs[-1].seq, limit=3, most=ALL)

    assert [job.id for job in first.jobs] == [job.id for job in jobs[:1:-1]]
    assert [job.id for job in rest.jobs] == [job.id for job in jobs[1::-1]]
    assert rest.next is None


async def test_where_nothing_is_all_was_looked_at(store: Store) -> None:
    assert await store.newest(JobFilter(), before=None, limit=10, most=10) == JobPage([], None)
    assert await store.newest(JobFilter(queue="nobody"), before=None, limit=10, most=10) == JobPage([], None)
    assert await store.newest(JobFilter(), before=1, limit=10, most=10) == JobPage([], None)


async def _many(store: Store, clock: FakeClock) -> timedelta:
    """Enqueue jobs that differ in all that a filter asks for; return how long it took."""
    begun = clock.now()
    for n in range(20):
        queue, kind = ("email", "sms")[n % 2], (None, "x", "y")[n % 3]
        job = a_job(queue, kind=kind, delay=HOUR if n % 5 == 0 else None, schedule_id="nightly" if n % 4 == 0 else None)
        await store.enqueue([job._replace(tenant="acme" if n % 3 == 0 else None, priority=1000 - n)])
        clock.advance(MINUTE)
    for queue in ("email", "sms"):
        await claim_one(store, queue)
        await store.settle([settlement(await claim_one(store, queue), ToDead(Failure("boom", "ValueError")))])
        gone = await claim_one(store, queue)
        await store.settle([settlement(gone)])
        await store.delete([gone.job.id])
    return clock.now() - begun


@pytest.mark.parametrize("state", [None, State.PENDING, State.SCHEDULED, State.RUNNING, State.DEAD])
async def test_the_newest_jobs_are_all_that_match(store: Store, clock: FakeClock, state: State | None) -> None:
    middle = clock.now() + await _many(store, clock) / 2
    choices = [
        JobFilter(),
        JobFilter(queue="email"),
        JobFilter(kind="x"),
        JobFilter(queue="sms", kind="y"),
        JobFilter(tenant="acme"),
        JobFilter(schedule_id="nightly"),
        JobFilter(since=middle),
        JobFilter(queue="email", until=middle),
        JobFilter(error="boom"),
        JobFilter(text="acme"),
    ]
    for chosen in [replace(choice, state=state) for choice in choices]:
        expected = await store.jobs(chosen, after=None, limit=ALL)

        assert await _walked(store, chosen) == expected[::-1], chosen
        assert await _walked(store, chosen, limit=ALL, most=ALL) == expected[::-1], chosen


async def test_a_look_for_the_newest_ends_at_its_most_and_leads_on(store: Store) -> None:
    oldest = a_job()._replace(tenant="long-ago")
    await store.enqueue([oldest, *(a_job() for _ in range(199))])

    pages = await _pages(store, JobFilter(text="long-ago"), limit=10, most=20)

    # what is looked at is counted by the store in its own way: about so many
    assert 5 <= len(pages) <= 40
    assert [job.id for page in pages for job in page.jobs] == [oldest.id]


async def test_a_page_of_the_newest_goes_on_where_jobs_have_gone(store: Store) -> None:
    jobs = [a_job() for _ in range(60)]
    await store.enqueue(jobs)
    gone = jobs[5:55]
    await store.cancel([job.id for job in gone], KEEP_ALL)
    await store.delete([job.id for job in gone])

    left = await _walked(store, JobFilter(), limit=4, most=7)

    assert [job.id for job in left] == [job.id for job in (*jobs[:5], *jobs[55:])][::-1]


async def test_a_job_that_comes_meanwhile_is_on_no_later_page(store: Store, reach: Reach) -> None:
    jobs = [a_job() for _ in range(4)]
    await store.enqueue(jobs)
    first = await store.newest(JobFilter(), before=None, limit=2, most=ALL)

    await enqueue_each(store, a_job(), a_job(reach.queue("sms")))
    rest = await store.newest(JobFilter(), before=first.next, limit=10, most=ALL)

    assert [job.id for job in rest.jobs] == [jobs[1].id, jobs[0].id]
