"""A file that is left: the gate holds against transactions of callers, and parcel after parcel costs the same."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from windlass import StoreMoved, StoreUnavailable
from windlass.borrow import borrow
from windlass.connect import open_store
from windlass.core.moving import Moved, Parcel
from windlass.core.requests import RescueRequest
from windlass.core.retention import KEEP_ALL
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.stores.sqlite import packer
from windlass.stores.sqlite.statements import sql
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.given import HOUR, MINUTE, a_job, claim_one, wanting

AWAY = Moved("redis://other", "move-1")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(url: str, clock: FakeClock) -> AsyncIterator[Store]:
    store = open_store(url, clock=clock)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def connection(store: Store, path: Path) -> Iterator[sqlite3.Connection]:  # noqa: ARG001 - the store makes the file
    """A caller's own connection, with a table of his own."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("create table mine (name text)")
        yield connection


async def test_a_store_is_left_only_when_who_enqueued_in_a_transaction_has_committed(
    store: Store, connection: sqlite3.Connection
) -> None:
    job = a_job()
    connection.execute("begin")
    await store.join(borrow(connection)).enqueue([job])
    leaving = asyncio.ensure_future(store.set_moved(AWAY))
    await store.moved()
    assert not leaving.done()

    connection.execute("commit")
    await leaving

    assert [each.id for each in (await store.pack("default", limit=10)).jobs] == [job.id]


async def test_a_transaction_that_began_before_the_store_was_left_enqueues_nothing(
    store: Store, connection: sqlite3.Connection
) -> None:
    connection.execute("begin")
    connection.execute("select * from mine").fetchall()
    await store.set_moved(AWAY)

    with pytest.raises(StoreUnavailable, match="roll back"):
        await store.join(borrow(connection)).enqueue([a_job()])
    connection.execute("rollback")

    assert (await store.pack("default", limit=10)).jobs == []


async def test_an_enqueue_that_is_refused_leaves_the_rest_of_a_transaction_alone(
    store: Store, connection: sqlite3.Connection
) -> None:
    await store.set_moved(AWAY)
    connection.execute("begin")
    connection.execute("insert into mine values ('kept')")

    with pytest.raises(StoreMoved, match="redis://other"):
        await store.join(borrow(connection)).enqueue([a_job()])
    connection.execute("commit")

    assert connection.execute("select name from mine").fetchall() == [("kept",)]
    assert (await store.pack("default", limit=10)).jobs == []


async def test_calls_of_one_commit_meet_the_mark_in_one_order(store: Store, connection: sqlite3.Connection) -> None:
    await store.enqueue([a_job("other")])
    # until this ends, calls gather for one commit
    connection.execute("begin immediate")
    made = asyncio.ensure_future(store.enqueue([a_job()]))
    leaving = asyncio.ensure_future(store.set_moved(AWAY))
    claiming = asyncio.ensure_future(store.claim(wanting("other")))
    await store.moved()

    connection.execute("rollback")
    await leaving

    with pytest.raises(StoreMoved):
        await claiming
    assert [job.id for job in (await store.pack("default", limit=10)).jobs] == [each.id for each in await made]


async def _packed(store: Store, limit: int) -> list[int]:
    """Pack the next jobs and let go of them; return their sequence numbers."""
    packed = await store.pack("default", limit=limit)
    await store.let_go(jobs=[job.id for job in packed.jobs])
    return [job.seq for job in packed.jobs]


async def test_parcel_after_parcel_takes_the_oldest_and_chooses_seldom(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packer, "_CHOSEN", 8)
    ran: list[str] = []

    def traced(name: str) -> str:
        ran.append(name)
        return sql(name)

    monkeypatch.setattr(packer, "sql", traced)
    await store.enqueue([a_job()._replace(priority=20 - n) for n in range(20)])

    parcels = [await _packed(store, 2) for _ in range(11)]

    assert parcels == [*([n, n + 1] for n in range(1, 21, 2)), []]
    # eight at a time, and when none is left
    assert ran.count("oldest_waiting_seqs") == 4
    # of the last parcel and of this one
    assert ran.count("still_waiting") <= 2 * len(parcels)


async def test_a_parcel_is_of_its_queue_whichever_was_packed_before(store: Store) -> None:
    await store.enqueue([a_job("a"), a_job("a"), a_job("b"), a_job("b")])

    packed = [await store.pack(queue, limit=1) for queue in ("a", "b", "a")]

    assert [job.queue for each in packed for job in each.jobs] == ["a", "b", "a"]


async def test_a_job_that_waits_again_is_packed_however_old_it_is(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packer, "_CHOSEN", 4)
    await store.enqueue([a_job() for _ in range(8)])
    await claim_one(store)

    first = await _packed(store, 2)
    await store.cancel([job.id for job in (await store.pack("default", limit=1)).jobs], KEEP_ALL)
    await store.rescue(RescueRequest(force=True), KEEP_ALL)
    whole = await store.pack("default", limit=4)
    rest = [await _packed(store, 2) for _ in range(4)]

    assert first == [2, 3]
    assert [job.seq for job in whole.jobs] == [1, 5, 6, 7]
    assert sorted(seq for parcel in rest for seq in parcel) == [1, 5, 6, 7, 8]
    assert rest[-1] == []


async def test_a_key_is_packed_with_the_job_that_holds_it_now(store: Store, clock: FakeClock) -> None:
    before, now = (a_job(unique=Unique("k", until=MINUTE)) for _ in range(2))
    await store.enqueue([before])
    clock.advance(MINUTE)
    await store.enqueue([now])

    packed = await store.pack("default", limit=10)

    assert [job.id for job in packed.jobs] == [before.id, now.id]
    assert [key.job_id for key in packed.keys] == [now.id]


async def test_a_key_that_came_before_its_job_is_its_own(store: Store) -> None:
    job = a_job(unique=Unique("k", until=HOUR))
    await store.enqueue([job])
    packed = await store.pack("default", limit=10)
    await store.let_go(jobs=[job.id])

    await store.take_keys(packed.keys)
    await store.unpack(Parcel("move-1", "default", 1, packed))

    assert await store.pack("default", limit=10) == packed._replace(jobs=[packed.jobs[0]._replace(seq=2)])


async def test_a_job_that_came_due_on_its_way_waits_no_more(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job(delay=MINUTE), a_job(delay=HOUR)])
    packed = await store.pack("default", limit=10)
    await store.let_go(jobs=[job.id for job in packed.jobs])
    clock.advance(MINUTE)

    await store.unpack(Parcel("move-1", "default", 1, packed))

    [stats] = await store.stats()
    assert (stats.pending, stats.scheduled) == (1, 1)


async def test_the_doctor_tells_that_a_store_was_moved(store: Store) -> None:
    before = {finding.name for finding in await store.check()}
    await store.set_moved(AWAY)

    [moved] = [finding for finding in await store.check() if finding.name not in before]

    assert (moved.name, moved.level) == ("moved", "warning")
    assert AWAY.to in moved.message
    assert AWAY.to in (moved.advice or "")
