"""What looks cost: by what they are asked for, not by the number of jobs."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from windlass.client.upkeep import rescue_all
from windlass.connect import open_store
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Failure
from windlass.core.looks import DeadJob, Death, JobPage
from windlass.core.queries import GetPosition, ListDeadJobs, ListNewestJobs
from windlass.core.requests import RescueRequest
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToDead
from windlass.stores.sqlite.newest_queries import dead, newest
from windlass.stores.sqlite.queries import position
from windlass.stores.sqlite.reader import Snapshot
from windlass.testing.conformance.given import HOUR, a_job, claim_one, settlement, wanting

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MANY = 5_000
MOST = 200
PARENT = JobId("0199a3c2-7f4e-7000-8000-00000000000a")
CHOICES = [
    JobFilter(),
    *(JobFilter(state=state) for state in State),
    JobFilter(state=State.DEAD, queue="few"),
    JobFilter(queue="few"),
    JobFilter(queue="few", kind="x"),
    JobFilter(queue="many"),
    JobFilter(queue="many", kind="nobody"),
    JobFilter(text="nowhere"),
    JobFilter(kind="nobody"),
    JobFilter(tenant="acme"),
    JobFilter(unique_key="k"),
    JobFilter(parent_id=PARENT),
    JobFilter(error_type="Boom"),
    JobFilter(error_type="nobody"),
]
OWN = ("k", "l", "m", "n", "o", "p")


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    store = open_store(url)
    await store.open()
    yield store
    await store.close()


class Counted:
    """A look of one's own at the file, whose steps are counted."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._steps = 0
        connection.set_progress_handler(self._count, 10)

    def steps(self, look: Callable[[sqlite3.Cursor], object]) -> int:
        """Return how many tens of SQLite's own steps `look` takes."""
        self._steps = 0
        look(self._connection.cursor())
        return self._steps

    def cost(self, chosen: JobFilter) -> int:
        """Return what a page of the newest costs."""
        return self.steps(lambda cursor: newest(Snapshot(cursor, NOW), ListNewestJobs(chosen, None, 10, MOST)))

    def page(self, chosen: JobFilter, *, before: int | None = None, limit: int = 10, most: int = MOST) -> JobPage:
        return newest(Snapshot(self._connection.cursor(), NOW), ListNewestJobs(chosen, before, limit, most))

    def _count(self) -> int:
        self._steps += 1
        return 0


@pytest.fixture
def counted(store: Store, path: Path) -> Iterator[Counted]:  # noqa: ARG001 - the store makes the file
    with closing(sqlite3.connect(path)) as connection:
        yield Counted(connection)


async def _a_few_of_each(store: Store) -> None:
    """Enqueue jobs of which some run, are dead, cancelled, done and put off."""
    jobs = [a_job("few", kind="x", unique=Unique(key, until="finished")) for key in OWN]
    jobs = [job._replace(tenant="acme", parent_id=PARENT) for job in jobs]
    await store.enqueue([*jobs, a_job("few", delay=HOUR)])
    await store.claim(wanting("few"))
    await store.settle([settlement(await claim_one(store, "few"), ToDead(Failure("x", "Boom")))])
    await store.settle([settlement(await claim_one(store, "few"))])
    await store.cancel([jobs[5].id], KEEP_ALL)


async def test_a_look_for_the_newest_costs_the_same_however_many_jobs_there_are(store: Store, counted: Counted) -> None:
    await _a_few_of_each(store)
    await store.enqueue([a_job("many") for _ in range(MOST * 5)])
    before = list(map(counted.cost, CHOICES))

    await store.enqueue([a_job("many") for _ in range(MANY)])
    after = list(map(counted.cost, CHOICES))

    costs = zip(CHOICES, before, after, strict=True)
    assert [chosen for chosen, was, now in costs if not 0 < now <= was * 1.1 + 5] == []


async def test_jobs_that_an_index_leads_to_are_found_behind_all_others(store: Store, counted: Counted) -> None:
    await _a_few_of_each(store)
    await store.enqueue([a_job("many") for _ in range(MOST * 5)])

    by_state = {state: counted.page(JobFilter(state=state)) for state in State if state is not State.PENDING}
    by_queue = counted.page(JobFilter(queue="few"))

    assert {state: (len(page.jobs), page.next) for state, page in by_state.items()} == dict.fromkeys(
        by_state, (1, None)
    )
    assert ([job.seq for job in by_queue.jobs], by_queue.next) == ([7, 6, 5, 4, 3, 2, 1], None)
    assert counted.page(JobFilter(text="few"))[1] is not None


@pytest.mark.parametrize(
    "chosen, found",
    [
        (JobFilter(tenant="acme"), [6, 5, 4, 3, 2, 1]),
        (JobFilter(tenant="acme", kind="y"), []),
        (JobFilter(kind="x"), [6, 5, 4, 3, 2, 1]),
        (JobFilter(kind="x", state=State.DEAD), [2]),
        (JobFilter(kind="y"), []),
        (JobFilter(unique_key="o"), [5]),
        (JobFilter(parent_id=PARENT, state=State.CANCELLED), [6]),
        (JobFilter(error_type="Boom"), [2]),
        (JobFilter(error_type="Boo"), []),
    ],
)
async def test_what_a_field_leads_to_is_found_behind_all_others(
    store: Store, counted: Counted, chosen: JobFilter, found: list[int]
) -> None:
    await _a_few_of_each(store)
    await store.enqueue([a_job("many", kind="many") for _ in range(MOST * 2)])

    first = counted.page(chosen, limit=4)
    rest = counted.page(chosen, before=first.next, limit=4) if first.next is not None else JobPage([], None)

    assert [job.seq for job in (*first.jobs, *rest.jobs)] == found
    assert (first.next is None, rest.next) == (len(found) <= 4, None)


async def test_a_full_page_is_the_last_where_a_field_leads_no_further(store: Store, counted: Counted) -> None:
    await _a_few_of_each(store)

    assert counted.page(JobFilter(unique_key="o"), limit=1).next is None
    assert counted.page(JobFilter(tenant="acme"), limit=5).next == 2


async def test_many_that_a_field_leads_to_are_looked_at_up_to_an_end(store: Store, counted: Counted) -> None:
    await store.enqueue([a_job("many")._replace(tenant="acme") for _ in range(MOST * 2)])
    await store.enqueue([a_job("many") for _ in range(MOST)])

    page = counted.page(JobFilter(tenant="acme", text="nowhere"))
    rest = counted.page(JobFilter(tenant="acme", text="nowhere"), before=page.next)

    assert page == JobPage([], MOST + 1)
    assert counted.page(JobFilter(tenant="acme", text="nowhere"), before=rest.next) == JobPage([], None)


async def test_all_that_run_and_all_that_are_dead_are_found_with_a_look_at_few(store: Store, counted: Counted) -> None:
    """Also where there are many more of them than `most`, and more on other queues."""
    await store.enqueue([a_job(("a", "b")[n % 2]) for n in range(100)])
    claims = (await store.claim(wanting("a", "b", limit=100))).jobs
    await store.settle([settlement(claim, ToDead(Failure("boom"))) for claim in claims[::2]])
    dead = sorted((claim.job.seq for claim in claims[::2]), reverse=True)
    running = sorted((claim.job.seq for claim in claims[1::2]), reverse=True)
    await store.enqueue([a_job() for _ in range(100)])

    for state, seqs in ((State.DEAD, dead), (State.RUNNING, running)):
        first = counted.page(JobFilter(state=state), limit=30, most=1)
        rest = counted.page(JobFilter(state=state), before=first.next, limit=30, most=1)

        assert [job.seq for page in (first, rest) for job in page.jobs] == seqs
        assert rest.next is None


async def test_a_page_of_dead_jobs_costs_the_same_however_many_died_and_at_the_same_time(
    store: Store, counted: Counted
) -> None:
    def cost(queue: str | None, before: Death | None) -> int:
        return counted.steps(lambda cursor: dead(Snapshot(cursor, NOW), ListDeadJobs(queue, before, 10)))

    async def die(count: int) -> list[DeadJob]:
        await store.enqueue([a_job() for _ in range(count)])
        await store.claim(wanting("default", limit=count))
        await rescue_all(store, RescueRequest(force=True, to="dead"), KEEP_ALL)
        return await store.dead(None, before=None, limit=count)

    places = [None, (await die(MOST))[MOST // 2].death]
    before = [cost(queue, place) for queue in (None, "default") for place in places]
    places.append((await die(MANY))[MANY // 2].death)
    after = [cost(queue, place) for queue in (None, "default") for place in places[:2]]
    deep = [cost(queue, places[2]) for queue in (None, "default")]

    assert [now for was, now in zip(before, after, strict=True) if not 0 < now <= was * 1.1 + 5] == []
    assert max(deep) <= max(before) * 1.1 + 5


async def test_dead_jobs_without_a_time_of_death_come_last(store: Store, path: Path) -> None:
    await store.enqueue([a_job(("a", "b")[n % 2]) for n in range(6)])
    for claim in (await store.claim(wanting("a", "b", limit=6))).jobs:
        await store.settle([settlement(claim, ToDead(Failure("boom")))])
    latest = await store.dead(None, before=None, limit=10)
    with closing(sqlite3.connect(path)) as connection, connection:
        lost = [each.job.id for each in latest[:3]]
        connection.executemany("update windlass_job set finished_at = null where id = ?", [(each,) for each in lost])

    every = [job.job.id for job in await store.dead(None, before=None, limit=10)]
    one_by_one: list[JobId] = []
    before: Death | None = None
    while page := await store.dead(None, before=before, limit=1):
        one_by_one += [each.job.id for each in page]
        before = page[-1].death

    assert every[:3] == [each.job.id for each in latest[3:]]
    assert sorted(every[3:]) == sorted(lost)
    assert one_by_one == every


async def test_what_runs_of_a_queue_is_found_behind_all_that_runs_of_others(store: Store, counted: Counted) -> None:
    await store.enqueue([a_job("a"), *(a_job("b") for _ in range(20))])
    await store.claim(wanting("a", "b", limit=30))
    await store.enqueue([a_job() for _ in range(MOST)])

    page = counted.page(JobFilter(queue="a", state=State.RUNNING), limit=2)

    assert ([job.seq for job in page.jobs], page.next) == ([1], None)


async def test_a_look_that_takes_long_ends_sooner_and_leads_on(
    store: Store, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.stores.sqlite.newest_queries._ENOUGH", 0)
    oldest = a_job("many")._replace(tenant="long-ago")
    await store.enqueue([oldest, *(a_job("many") for _ in range(2_999))])

    pages = [counted.page(JobFilter(text="long-ago"), most=MANY)]
    while (before := pages[-1].next) is not None:
        pages.append(counted.page(JobFilter(text="long-ago"), before=before, most=MANY))

    assert len(pages) > 2
    assert [job.id for page in pages for job in page.jobs] == [oldest.id]


async def test_a_place_in_line_costs_the_same_however_long_the_line_is(store: Store, counted: Counted) -> None:
    jobs = [a_job() for _ in range(2_000)]
    await store.enqueue(jobs)

    def steps(job_id: JobId) -> int:
        return counted.steps(lambda cursor: position(Snapshot(cursor, NOW), GetPosition(job_id)))

    first, last = steps(jobs[0].id), steps(jobs[-1].id)
    await store.enqueue([a_job() for _ in range(MANY)])

    assert steps(jobs[0].id) <= first + 5
    assert steps(jobs[-1].id) <= last + 5
