"""Which way the newest jobs are looked for: by an index where it leads to few records, else by a walk with an end."""

from collections.abc import AsyncIterator, Iterator
from typing import Final

import psycopg
import pytest
from psycopg.types.string import TextLoader

from tests.postgres.cluster import dsn_of, schema_of
from tests.postgres.ready import ready_schema
from tests.stores.postgres.moves.moving import Counted, Mover
from windlass.core.filters import JobFilter
from windlass.core.looks import NO_TIME, DeadJob, JobPage
from windlass.core.queries import ListDeadJobs, ListNewestJobs
from windlass.stores.postgres import newest_queries
from windlass.stores.postgres.newest_queries import dead, newest
from windlass.stores.postgres.statements import statement

PARENT: Final = "0199a3c2-7f4e-7000-8000-00000000000a"
# of 6,000 jobs the first are of a rare queue, a few run, are dead or scheduled, four are a tenant's, some of a kind
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
            when n in (10, 20) then 'scheduled' when n % 2 = 0 then 'succeeded' else 'pending' end as state
    from generate_series(1, 6000) as n
) as given;
insert into windlass_count (minute, queue, kind, scheduled, pending, running, succeeded, dead)
select
    'infinity', queue, '', count(*) filter (where state = 'scheduled'), count(*) filter (where state = 'pending'),
    count(*) filter (where state = 'running'), count(*) filter (where state = 'succeeded'),
    count(*) filter (where state = 'dead')
from windlass_job group by queue;
update windlass_job
set tenant = 'acme', unique_key = 'k', parent_id = '0199a3c2-7f4e-7000-8000-00000000000a',
    last_error = case seq when 2 then 'Boom: no ' || repeat('x', 100000) when 12 then 'Boomerang: x' else 'Boom' end
where seq in (2, 11, 12, 99);
update windlass_job set kind = 'mixed' where seq in (2, 3, 5, 6, 10, 11, 12, 14, 16, 18, 99);
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
    page = await mover.look(lambda changes: counted(newest(changes, ListNewestJobs(chosen, before, 3, MOST))))
    return page, counted.statements


@pytest.mark.parametrize(
    "chosen, statement, found",
    [
        (JobFilter(state="dead"), "newest_dead", [888, 88, 8]),
        (JobFilter(state="dead", queue="rare"), "newest_dead", [2]),
        (JobFilter(state="dead", kind="kind"), "newest_counted", [888, 88, 8]),
        (JobFilter(state="scheduled", kind="mixed"), "newest_counted", [10]),
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


async def test_dead_jobs_are_found_by_the_time_of_their_death_and_last_those_without_one() -> None:
    with ready_schema() as url:
        mover = Mover(url)
        mover.run(FILL)
        mover.run("""
            update windlass_job set finished_at = '2025-01-01 00:00:00.000001+00' where seq = 8;
            update windlass_job set finished_at = '9999-12-31 23:59:59.999999+00' where seq = 2;
            update windlass_job set finished_at = null where seq in (88, 888);
        """)
        counted = Counted()
        every = await mover.look(lambda changes: counted(dead(changes, ListDeadJobs(None, None, 2))))
        one_by_one: list[DeadJob] = []
        while page := await mover.look(dead, ListDeadJobs(None, one_by_one[-1].death if one_by_one else None, 1)):
            one_by_one += page
        of_one = await mover.look(dead, ListDeadJobs("rare", None, 10))
        await mover.connections.close()

    assert counted.statements == ["records", "deaths"]
    assert [each.job.seq for each in one_by_one] == [2, 8, 888, 88]
    assert [each.death.at for each in one_by_one] == [253402300799999999, 1735689600000001, NO_TIME, NO_TIME]
    assert every == one_by_one[:2]
    assert of_one == one_by_one[:1]


@pytest.mark.parametrize("at, found", [("infinity", [8]), ("20000-01-01 00:00:00.000007+00", [8]), ("-infinity", [])])
def test_a_time_of_death_that_no_datetime_can_hold_is_a_position_too(at: str, found: list[int]) -> None:
    """A page leads on from such a job, as from any other."""

    text, values = statement("deaths")

    def page(place: int, seq: int) -> list[tuple[int, int]]:
        given = values({"queues": "array['q2']", "at": str(place), "before": str(seq), "limit": "10"})
        rows = connection.execute(f"execute deaths({', '.join(map(str, given))})".encode())
        return [(place, seq) for place, seq, *_ in rows]

    with ready_schema() as url, psycopg.connect(dsn_of(url), options=f"-c search_path={schema_of(url)}") as connection:
        connection.adapters.register_loader("timestamptz", TextLoader)
        connection.execute(FILL.encode())
        connection.execute("update windlass_job set queue = 'q2', finished_at = %s where seq = 2", [at])
        connection.execute(f"prepare deaths as {text}".encode())
        places = {seq: place for place, seq in page(9223372036854775807, 9223372036854775807)}
        rest = page(places[2], 2)

    assert places.keys() == {2, 8}
    assert [seq for _, seq in rest] == found


@pytest.mark.parametrize(
    "chosen, way, found",
    [
        (JobFilter(tenant="acme"), ["newest_of_tenant", "newest_these"], [99, 12, 11, 2]),
        (JobFilter(tenant="acme", kind="other"), ["newest_of_tenant", "newest_these"], []),
        (JobFilter(tenant="nobody"), ["newest_of_tenant", "newest_these"], []),
        (JobFilter(unique_key="k"), ["newest_of_key", "newest_these"], [99, 12, 11, 2]),
        (JobFilter(parent_id=PARENT, state="dead"), ["newest_of_parent", "newest_these"], [2]),
        (JobFilter(error_type="Boom"), ["newest_of_error", "newest_these"], [99, 11, 2]),
        (JobFilter(error_type="Boom", queue="rare"), ["newest_of_error", "newest_these"], [2]),
    ],
)
async def test_what_a_field_leads_to_is_all_found_however_old_it_is(
    mover: Mover, chosen: JobFilter, way: list[str], found: list[int]
) -> None:
    first, statements = await look(mover, chosen)
    rest, _ = await look(mover, chosen, first.next) if first.next is not None else (JobPage([], None), [])

    assert [job.seq for job in (*first.jobs, *rest.jobs)] == found
    assert statements == way
    assert (first.next is None, rest.next) == (len(found) <= 3, None)


async def test_many_that_a_field_leads_to_are_looked_at_up_to_an_end(
    mover: Mover, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest_queries, "FEW", 1)
    counted = Counted()
    chosen = JobFilter(tenant="acme", error="no x")
    page = await mover.look(lambda changes: counted(newest(changes, ListNewestJobs(chosen, None, 1, 3))))
    rest = await mover.look(newest, ListNewestJobs(chosen, page.next, 1, 3))

    assert counted.statements == ["newest_of_tenant", "newest_these"] * 2
    assert page == JobPage([], 11)
    assert ([job.seq for job in rest.jobs], rest.next) == ([2], None)


BEGUN: Final = ["newest", "newest_end"]
MERGED: Final = [*BEGUN, "records", "newest_pending_or_running", "newest_of_kind", "newest_these"]
MIXED: Final = [99, 18, 16, 14, 12, 11, 10, 6, 5, 3, 2]


@pytest.mark.parametrize(
    "chosen, way, found",
    [
        (JobFilter(kind="mixed"), MERGED, MIXED),
        (JobFilter(kind="mixed", text="nowhere"), MERGED, []),
        (JobFilter(kind="mixed", text="Boom"), MERGED, [99, 12, 11, 2]),
        (JobFilter(kind="mixed", queue="q0"), ["records", *MERGED], [99, 18, 12, 6]),
        (JobFilter(kind="mixed", state="succeeded"), ["records", *MERGED], [18, 16, 14, 12, 6]),
        (JobFilter(kind="mixed", state="pending"), ["records", *MERGED[:-2], "newest_these"], [11, 5, 3]),
        (JobFilter(kind="mixed", state="pending", queue="q2"), ["records", *MERGED[:-2], "newest_these"], [11, 5]),
        (JobFilter(kind="other"), MERGED, []),
    ],
)
async def test_a_kind_is_all_found_however_old_it_is_and_whatever_its_jobs_are_doing(
    mover: Mover, chosen: JobFilter, way: list[str], found: list[int]
) -> None:
    page, statements = await look(mover, chosen)
    pages = [page]
    while pages[-1].next is not None:
        pages.append((await look(mover, chosen, pages[-1].next))[0])

    assert [job.seq for page in pages for job in page.jobs] == found
    assert len(pages) == max(1, -(-len(found) // 3))
    assert statements == way


@pytest.mark.parametrize("most", [1, 4, 5, 6, 7, 12])
@pytest.mark.parametrize(
    "chosen, wanted", [(JobFilter(kind="mixed"), MIXED), (JobFilter(kind="mixed", error="no x"), [2])]
)
async def test_a_kind_is_found_exactly_with_looks_at_however_few(
    mover: Mover, monkeypatch: pytest.MonkeyPatch, chosen: JobFilter, wanted: list[int], most: int
) -> None:
    """Where those that are not finished are too many for so short a look, and where all of them are known."""
    monkeypatch.setattr(newest_queries, "FEW", 1)
    before: int | None = 110
    found: list[int] = []
    while before is not None:
        page = await mover.look(newest, ListNewestJobs(chosen, before, 2, most))
        assert page.next is None or page.next < before
        before = page.next
        found += [job.seq for job in page.jobs]

    assert found == wanted


@pytest.mark.parametrize(
    "most, way",
    [
        (2, [*BEGUN, "records", *BEGUN]),
        (3, [*BEGUN, "records", "newest_pending_or_running", *BEGUN]),
        (4, MERGED),
    ],
)
async def test_all_that_runs_is_looked_at_where_it_is_few(mover: Mover, most: int, way: list[str]) -> None:
    """Three run; of the kind, one of these is, and three that are pending."""
    counted = Counted()
    await mover.look(lambda changes: counted(newest(changes, ListNewestJobs(JobFilter(kind="mixed"), 90, 3, most))))

    assert counted.statements == way


async def test_a_kind_of_which_too_many_wait_is_walked_for(mover: Mover) -> None:
    page, statements = await look(mover, JobFilter(kind="kind", text="nowhere"))

    assert page == JobPage([], 6_000 - MOST + 1)
    assert statements == [*BEGUN, "records", "newest_pending_or_running", *BEGUN]


@pytest.mark.parametrize(
    "chosen, way", [(JobFilter(text="nowhere"), []), (JobFilter(queue="q0", text="nowhere"), ["records"])]
)
async def test_a_walk_for_what_is_not_there_ends_and_leads_on(mover: Mover, chosen: JobFilter, way: list[str]) -> None:
    page, statements = await look(mover, chosen)
    last, _ = await look(mover, chosen, before=MOST + 1)

    assert page == JobPage([], 6_000 - MOST + 1)
    assert statements == [*way, "newest", "newest_end"]
    # there may be more behind as many as were looked at, and there is nothing behind the last
    assert last == JobPage([], 1)
    assert (await look(mover, chosen, before=1))[0] == JobPage([], None)


@pytest.mark.parametrize(
    "chosen", [JobFilter(), JobFilter(queue="q0"), JobFilter(state="pending"), JobFilter(kind="kind")]
)
async def test_what_is_soon_found_is_not_looked_for_any_further(mover: Mover, chosen: JobFilter) -> None:
    page, statements = await look(mover, chosen)
    second, _ = await look(mover, chosen, page.next)

    assert len(page.jobs) == len(second.jobs) == 3
    assert page.next == page.jobs[-1].seq > second.jobs[0].seq
    assert statements[-1] == "newest"


async def test_a_look_without_an_end_finds_all(mover: Mover) -> None:
    page = await mover.look(newest, ListNewestJobs(JobFilter(), None, 2**31 - 1, 2**31 - 1))

    assert (len(page.jobs), page.next) == (6_000, None)


async def test_as_many_as_are_wanted_and_no_more_are_the_last_page(mover: Mover) -> None:
    running, _ = await look(mover, JobFilter(state="running"))
    dead, _ = await look(mover, JobFilter(state="dead"))
    rest, _ = await look(mover, JobFilter(state="dead"), dead.next)

    assert (len(running.jobs), running.next) == (3, None)
    assert (len(dead.jobs), dead.next) == (3, 8)
    assert ([job.seq for job in rest.jobs], rest.next) == ([2], None)
