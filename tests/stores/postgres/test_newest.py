"""Which way the newest jobs are looked for: by an index where it leads to few records, else by a walk with an end."""

from collections.abc import AsyncIterator, Iterator
from typing import Final

import pytest

from tests.postgres.ready import ready_schema
from tests.stores.postgres.moves.moving import Counted, Mover
from windlass.core.filters import JobFilter
from windlass.core.store import JobPage
from windlass.stores.postgres.newest_looks import newest

# of 6,000 jobs the first are of a rare queue, and a few are running or dead
FILL: Final = """
insert into windlass_job (
    id, queue, kind, payload, codec, priority, state, max_attempts, created_at, run_at, lease_expires_at, finished_at
)
select
    gen_random_uuid(), case when n <= 4 then 'rare' else 'q' || n % 3 end, 'kind', '', 'raw', 1000, state, 3, now(),
    now(), case when state = 'running' then now() end, case when state in ('succeeded', 'dead') then now() end
from (
    select
        n,
        case when n in (1, 9, 99) then 'running' when n in (2, 8, 88, 888) then 'dead'
            when n % 2 = 0 then 'succeeded' else 'pending' end as state
    from generate_series(1, 6000) as n
) as given;
insert into windlass_count (minute, queue, kind, pending, running, succeeded, dead)
select
    'infinity', queue, '', count(*) filter (where state = 'pending'), count(*) filter (where state = 'running'),
    count(*) filter (where state = 'succeeded'), count(*) filter (where state = 'dead')
from windlass_job group by queue;
"""
MOST: Final = 1_000


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ready_schema() as url:
        Mover(url).run(FILL)
        yield url


@pytest.fixture
async def mover(url: str) -> AsyncIterator[Mover]:
    mover = Mover(url)
    yield mover
    await mover.connections.close()


async def look(mover: Mover, chosen: JobFilter, before: int | None = None) -> tuple[JobPage, list[str]]:
    """Return a page of up to three jobs, and the statements that it took."""
    counted = Counted()
    page = await mover.look(lambda: counted(newest(chosen, before, 3, MOST)))
    return page, counted.statements


@pytest.mark.parametrize(
    "chosen, statement, found",
    [
        (JobFilter(state="dead"), "newest_dead", [888, 88, 8]),
        (JobFilter(state="dead", queue="rare"), "newest_dead", [2]),
        (JobFilter(state="dead", kind="kind"), "newest_counted", [888, 88, 8]),
        (JobFilter(state="running"), "newest_counted", [99, 9, 1]),
        (JobFilter(state="running", queue="q0"), "newest_counted", [99, 9]),
        (JobFilter(queue="rare"), "newest_counted", [4, 3, 2]),
        (JobFilter(queue="rare", kind="other"), "newest_counted", []),
        (JobFilter(queue="rare", state="pending"), "newest_counted", [3]),
        (JobFilter(state="cancelled"), "newest_counted", []),
    ],
)
async def test_few_records_are_found_by_an_index_however_old_they_are(
    mover: Mover, chosen: JobFilter, statement: str, found: list[int]
) -> None:
    page, statements = await look(mover, chosen)

    assert [job.seq for job in page.jobs] == found
    assert statements == ["records", statement]


@pytest.mark.parametrize(
    "chosen, way", [(JobFilter(kind="other"), []), (JobFilter(queue="q0", kind="other"), ["records"])]
)
async def test_a_walk_for_what_is_not_there_ends_and_leads_on(mover: Mover, chosen: JobFilter, way: list[str]) -> None:
    page, statements = await look(mover, chosen)
    last, _ = await look(mover, chosen, before=MOST + 1)

    assert page == JobPage([], 6_000 - MOST + 1)
    assert statements == [*way, "newest", "newest_end"]
    # there may be more behind as many as were looked at, and there is nothing behind the last
    assert last == JobPage([], 1)
    assert (await look(mover, chosen, before=1))[0] == JobPage([], None)


@pytest.mark.parametrize("chosen", [JobFilter(), JobFilter(queue="q0"), JobFilter(state="pending")])
async def test_what_is_soon_found_is_not_looked_for_any_further(mover: Mover, chosen: JobFilter) -> None:
    page, statements = await look(mover, chosen)
    second, _ = await look(mover, chosen, page.next)

    assert len(page.jobs) == len(second.jobs) == 3
    assert page.next == page.jobs[-1].seq > second.jobs[0].seq
    assert statements[-1] == "newest"


async def test_a_look_without_an_end_finds_all(mover: Mover) -> None:
    page = await mover.look(newest, JobFilter(), None, 2**31 - 1, 2**31 - 1)

    assert (len(page.jobs), page.next) == (6_000, None)


async def test_as_many_as_are_wanted_and_no_more_are_the_last_page(mover: Mover) -> None:
    running, _ = await look(mover, JobFilter(state="running"))
    dead, _ = await look(mover, JobFilter(state="dead"))
    rest, _ = await look(mover, JobFilter(state="dead"), dead.next)

    assert (len(running.jobs), running.next) == (3, None)
    assert (len(dead.jobs), dead.next) == (3, 8)
    assert ([job.seq for job in rest.jobs], rest.next) == ([2], None)
