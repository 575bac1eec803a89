"""What looks read of the database, and what they leave unread."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Final, TypeVar

import pytest

from tests.stores.slatedb.counted import Counted
from tests.stores.slatedb.lived import LARGE, TRACEBACK, job, numbered
from windlass.core import looks as core
from windlass.core.filters import JobFilter
from windlass.core.job import Failure, PreparedJob
from windlass.core.looks import JobPage
from windlass.core.queries import (
    CountStranded,
    GetGlances,
    GetJobs,
    GetPosition,
    GetStats,
    ListDeadJobs,
    ListJobs,
    ListKinds,
    ListNewestJobs,
)
from windlass.core.requests import ClaimRequest, Settlement
from windlass.core.states import State
from windlass.core.store_calls import Query
from windlass.core.verdict import ToDead, ToSucceeded, Verdict
from windlass.kit.moves import looking
from windlass.stores.slatedb import SlateStore, job_pages, keys, loading
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.database import Database
from windlass.stores.slatedb.doors import open_database
from windlass.stores.slatedb.loading import load_records
from windlass.stores.slatedb.queries import QUERIES
from windlass.stores.slatedb.view import ReadState, View
from windlass.testing import FakeClock, SeededRng

R = TypeVar("R")

MINUTE: Final = timedelta(minutes=1)
_numbers: Final = count()


class Place:
    """A database in memory: jobs come into it by the store, and are then looked at without."""

    def __init__(self) -> None:
        self._address = Address("memory", f"costs-{next(_numbers)}", "")
        self.clock = FakeClock()
        self.database: Database | None = None

    def store(self) -> SlateStore:
        return SlateStore(self._address, clock=self.clock, rng=SeededRng())

    async def has(self, jobs: Sequence[PreparedJob]) -> None:
        store = self.store()
        await store.open()
        await store.enqueue(jobs)
        await store.close()

    async def ends(self, *, queue: str = "email", dead: int = 0, large: bool = False) -> None:
        """Let the first jobs of a queue end: `dead` of them, and one that succeeded."""
        store = self.store()
        await store.open()
        claims = (await store.claim(ClaimRequest([queue], dead + 1, MINUTE))).jobs
        failure = Failure("boom", "ValueError", TRACEBACK if large else None)
        verdicts: list[Verdict] = [*[ToDead(failure)] * dead, ToSucceeded(LARGE if large else None)]
        await store.settle(
            [Settlement(c.job.id, c.token, verdict) for c, verdict in zip(claims, verdicts, strict=True)]
        )
        await store.close()

    async def view(self) -> Counted:
        self.database = await open_database(self._address)
        return Counted(self.database)

    async def ask(self, view: View, query: Query[R], now: datetime | None = None) -> R:
        """Execute a query through a view."""
        state = ReadState(view, now or self.clock.now(), self._address)
        reply: R = await QUERIES[type(query)](state, query)
        return reply


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    place = Place()
    yield place
    if place.database is not None:
        await place.database.close()


async def test_a_small_job_is_one_get(place: Place) -> None:
    await place.has([job(1), job(2)])
    view = await place.view()

    [found] = await place.ask(view, GetJobs([numbered(1)]))

    assert found is not None
    assert (view.got, view.scans) == ([keys.job(numbered(1))], 0)


async def test_jobs_that_lie_together_are_one_scan(place: Place) -> None:
    await place.has([job(number) for number in range(100)])
    view = await place.view()

    found = await load_records(view, [numbered(number) for number in range(20, 60)])

    assert len(found) == 40
    assert (view.got, view.scans, view.rows) == ([], 1, 40)


async def test_jobs_of_which_each_second_is_wanted_are_scanned(place: Place) -> None:
    await place.has([job(number) for number in range(200)])
    view = await place.view()

    found = await load_records(view, [numbered(number) for number in range(0, 200, 2)])

    assert sorted(found) == [numbered(number) for number in range(0, 200, 2)]
    assert len(view.got) <= loading.FEW
    assert view.rows <= 200


async def test_a_scan_over_jobs_that_lie_apart_is_given_up_for_gets(place: Place) -> None:
    await place.has([job(number) for number in range(1000)])
    view = await place.view()
    wanted = [numbered(number) for number in range(0, 1000, 50)]

    found = await load_records(view, wanted)

    assert sorted(found) == wanted
    assert (view.scans, view.rows) == (1, len(wanted))
    assert len(view.got) == len(wanted) - 1


async def test_ids_that_are_new_cost_one_scan_that_finds_nothing(place: Place) -> None:
    await place.has([job(number) for number in range(10)])
    view = await place.view()

    assert await load_records(view, [numbered(number) for number in range(100, 2000)]) == {}

    assert (view.got, view.scans, view.rows) == ([], 1, 0)


async def test_no_more_than_64_gets_are_under_way(place: Place) -> None:
    await place.has([job(number) for number in range(5)])
    view = await place.view()

    assert len(await loading.gets(view, [keys.job(numbered(number)) for number in range(200)])) == 200

    assert view.most_under_way == loading.AT_ONCE


async def test_history_is_read_for_a_whole_job_alone(place: Place) -> None:
    await place.has([job(1, payload=LARGE), job(2)])
    await place.ends(dead=1, large=True)
    view = await place.view()

    await place.ask(view, GetGlances([numbered(1), numbered(2)]))
    glanced = _parts_read(view)
    [listed, _] = await place.ask(view, ListJobs(JobFilter(), None, 10))
    shown = _parts_read(view)
    [whole] = await place.ask(view, GetJobs([numbered(1)]))
    read = _parts_read(view)

    assert (glanced, shown, read) == ([], [b"p", b"r"], [b"h", b"p"])
    assert listed.payload == LARGE
    assert whole is not None
    assert [ended.failure and ended.failure.traceback for ended in whole.history] == [TRACEBACK]


def _parts_read(view: Counted) -> list[bytes]:
    """Return which parts were read since the last time."""
    read = sorted(key[-1:] for key in view.got if key.startswith(keys.PARTS))
    view.got.clear()
    return read


async def test_a_page_of_all_jobs_reads_no_more_than_the_page(place: Place) -> None:
    await place.has([job(number) for number in range(500)])
    view = await place.view()

    page = await place.ask(view, ListJobs(JobFilter(), 100, 50))

    assert [found.id for found in page] == [numbered(number) for number in range(100, 150)]
    assert (view.got, view.rows) == ([], 100)


async def test_few_jobs_behind_many_others_are_found_by_their_index(place: Place) -> None:
    await place.has([job(number) for number in range(2000)])
    await place.has([job(number, "sms") for number in range(2000, 2004)])
    await place.ends(queue="sms", dead=3)
    view = await place.view()

    page = await place.ask(view, ListJobs(JobFilter(state=State.DEAD), None, 10))

    assert [found.id for found in page] == [numbered(number) for number in range(2000, 2003)]
    assert view.rows + len(view.got) < 100


async def test_jobs_that_ended_in_another_order_are_listed_in_that_of_their_enqueue(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.has([job(number) for number in range(30)])
    store = place.store()
    await store.open()
    await store.enqueue([job(number, "ab"[number % 2]) for number in range(30, 42)])
    claims = (await store.claim(ClaimRequest(["a", "b"], 12, MINUTE))).jobs
    for claim in sorted(claims, key=lambda claim: claim.job.seq * 5 % 13):
        place.clock.advance(1)
        await store.settle([Settlement(claim.job.id, claim.token, ToDead(Failure("boom")))])
    await store.close()
    view = await place.view()
    monkeypatch.setattr(job_pages, "PAGE", 1)
    monkeypatch.setattr(job_pages, "LISTED", 2)

    page = await place.ask(view, ListJobs(JobFilter(state=State.DEAD), None, 12))

    assert [found.id for found in page] == [numbered(number) for number in range(30, 42)]


async def test_many_jobs_are_found_in_order_without_reading_their_index(place: Place) -> None:
    await place.has([job(number) for number in range(2000)])
    view = await place.view()

    page = await place.ask(view, ListJobs(JobFilter(queue="email", state=State.PENDING), None, 10))

    assert [found.id for found in page] == [numbered(number) for number in range(10)]
    assert view.rows < 100


async def test_a_page_of_the_newest_jobs_reads_no_more_than_the_page(place: Place) -> None:
    await place.has([job(number) for number in range(500)])
    view = await place.view()

    page = await place.ask(view, ListNewestJobs(JobFilter(), 401, 50, 1_000))

    assert [found.id for found in page.jobs] == [numbered(number) for number in range(399, 349, -1)]
    assert (view.got, view.rows) == ([], 100)


async def test_a_look_for_the_newest_that_match_is_bounded_however_few_do(place: Place) -> None:
    await place.has([job(number, tenant="rare" if number == 0 else None) for number in range(2000)])
    view = await place.view()

    page = await place.ask(view, ListNewestJobs(JobFilter(queue="email", tenant="rare"), None, 10, 300))

    assert page == JobPage([], 1_701)
    # the queue, and of each job its place in the order and its record
    assert (view.got, view.rows) == ([], 1 + 2 * 300)


async def test_the_newest_of_few_are_all_found_by_their_index_behind_many_others(place: Place) -> None:
    await place.has([job(number, "sms") for number in range(4)])
    await place.has([job(number) for number in range(4, 2000)])
    await place.ends(queue="sms", dead=3)
    view = await place.view()

    page = await place.ask(view, ListNewestJobs(JobFilter(state=State.DEAD), None, 10, 300))

    assert [found.id for found in page.jobs] == [numbered(number) for number in (2, 1, 0)]
    assert page.next is None
    assert view.rows + len(view.got) < 20


async def test_a_page_of_dead_jobs_reads_no_more_than_the_page_of_each_queue(place: Place) -> None:
    await place.has([job(number, "sms") for number in range(300)])
    await place.has([job(number) for number in range(300, 600)])
    await place.ends(queue="email", dead=200)
    place.clock.advance(1)
    await place.ends(queue="sms", dead=200)
    view = await place.view()

    page = await place.ask(view, ListDeadJobs(None, None, 10))
    rows, gets = view.rows, len(view.got)
    deep = await place.ask(view, ListDeadJobs(None, page[-1].death._replace(seq=100), 10))

    assert [found.job.id for found in page] == [numbered(number) for number in range(199, 189, -1)]
    assert [found.job.id for found in deep] == [numbered(number) for number in range(98, 88, -1)]
    # the two queues, the heads of both, and the records
    assert rows + gets <= 2 + 2 * 10 + 10
    assert view.rows + len(view.got) <= 2 * (2 + 2 * 10 + 10)


async def test_those_ahead_of_a_job_are_counted_up_to_a_thousand_rows(place: Place) -> None:
    await place.has([job(number, kind="ab"[number % 2]) for number in range(3000)])
    view = await place.view()

    found = await place.ask(view, GetPosition(numbered(2999)))

    assert found == core.Place(place.clock.now(), 1_000, None)
    assert view.rows == 1_000
    assert len(view.got) == 2


async def test_a_state_that_no_job_is_in_costs_a_look_at_the_queues(place: Place) -> None:
    await place.has([job(number) for number in range(2000)])
    view = await place.view()

    assert await place.ask(view, ListJobs(JobFilter(state=State.CANCELLED), None, 10)) == []

    assert (view.got, view.rows) == ([], 1)


async def test_the_oldest_that_waits_is_found_by_a_row_for_each_priority(place: Place) -> None:
    await place.has([job(number, kind="ab"[number % 2], priority=number % 5) for number in range(1000)])
    view = await place.view()

    [row] = await place.ask(view, GetStats("email"))

    assert row.oldest_waiting == place.clock.now()
    assert view.rows == 10


async def test_kinds_cost_one_get(place: Place) -> None:
    await place.has([job(number, kind=f"k{number}") for number in range(100)])
    view = await place.view()

    found = await place.ask(view, ListKinds("email", ["k1"]))

    assert len(found) == 99

    assert (len(view.got), view.rows) == (1, 0)


async def test_leases_of_idle_queues_are_not_looked_for(place: Place) -> None:
    await place.has([job(number, f"q{number}") for number in range(50)])
    view = await place.view()

    assert await place.ask(view, CountStranded(MINUTE)) == 0

    assert view.rows == 50


async def test_leases_are_stranded_from_their_last_moment_on_and_counted_up_to_a_bound(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.has([job(number, "abc"[number % 3]) for number in range(9)])
    store = place.store()
    await store.open()
    await store.claim(ClaimRequest(["a", "b", "c"], 9, MINUTE))
    await store.close()
    view = await place.view()
    end = place.clock.now() + MINUTE

    before = await place.ask(view, CountStranded(MINUTE), end - timedelta(microseconds=1))
    at_the_end = await place.ask(view, CountStranded(MINUTE), end)
    monkeypatch.setattr(looking, "STRANDED_MOST", 4)
    bounded = await place.ask(view, CountStranded(MINUTE), end)

    assert (before, at_the_end, bounded) == (0, 9, 4)


async def test_a_record_that_lacks_its_part_is_shown_with_the_damage(place: Place) -> None:
    await place.has([job(1, payload=LARGE)])
    view = await place.view()
    assert place.database is not None
    await place.database.write({keys.part(numbered(1), b"p"): None})

    [found] = await place.ask(view, GetJobs([numbered(1)]))

    assert found is not None
    assert (found.payload, found.damage) == (b"", "payload is missing")


async def test_a_job_that_is_deleted_while_a_reader_looks_is_not_there(place: Place) -> None:
    await place.has([job(1, payload=LARGE), job(2, payload=LARGE)])
    view = await place.view()
    database = place.database
    assert database is not None
    kept = await loading.load_kept(view, [numbered(1), numbered(2)])
    await database.write({keys.part(numbered(1), b"p"): None, keys.job(numbered(1)): None})

    found = await loading.load_parts(view, kept, job_pages.SHOWN)

    assert {job_id: loaded.record.payload for job_id, loaded in found.items()} == {numbered(2): LARGE}
