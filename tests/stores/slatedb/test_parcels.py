"""Jobs that go to another store, or come from one: what outlives an owner, and what a look for them costs."""

from typing import Final

import pytest

from tests.stores.slatedb.counted import Counted
from tests.stores.slatedb.lived import LARGE, job, numbered
from tests.stores.slatedb.opened import database_of, new_address, opened, table_of
from windlass.core.commands import UnpackJobs
from windlass.core.errors import StoreMoved
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.moving import Moved, Parcel, Unpacked
from windlass.core.requests import ClaimRequest, RescueRequest
from windlass.core.retention import KEEP_ALL
from windlass.core.store import Store
from windlass.stores.slatedb.moves import parcels
from windlass.testing.conformance.given import MINUTE

AWAY: Final = Moved("redis://other", "move")


async def _packed(store: Store, limit: int) -> list[JobId]:
    return [job.id for job in (await store.pack("email", limit=limit)).jobs]


def _numbered(*numbers: int) -> list[JobId]:
    return [numbered(number) for number in numbers]


async def test_the_next_owner_knows_that_the_jobs_have_gone() -> None:
    address = new_address()
    async with opened(address) as store:
        await store.set_moved(AWAY)

    async with opened(address) as store:
        with pytest.raises(StoreMoved) as refused:
            await store.enqueue([job(1)])
        assert (refused.value.to, await store.moved()) == (AWAY.to, AWAY)
        await store.set_moved(None)

    async with opened(address) as store:
        assert await store.moved() is None
        await store.enqueue([job(1)])


async def test_a_parcel_whose_reply_was_lost_gets_its_first_reply_from_the_next_owner_too() -> None:
    address = new_address()
    async with opened(address) as store:
        await store.enqueue([job(1)])
        packed = await store.pack("email", limit=10)
        await store.let_go(jobs=[each.id for each in packed.jobs])
        unpack = UnpackJobs(Parcel("move", "email", 1, packed))
        assert await store.do(unpack, request_id="r")

    async with opened(address) as store:
        assert await store.do(unpack, request_id="r")
        assert not await store.do(unpack, request_id="another")
        assert await _packed(store, 10) == _numbered(1)


async def test_the_next_owner_knows_which_parcel_came_last() -> None:
    address = new_address()
    async with opened(address) as store:
        await store.enqueue([job(1, payload=LARGE), job(2)])
        packed = await store.pack("email", limit=10)
        await store.let_go(jobs=[each.id for each in packed.jobs])
        assert await store.unpack(Parcel("move", "email", 1, packed))

    async with opened(address) as store:
        assert await store.unpacked("move", "email") == Unpacked(1, _numbered(1, 2))
        assert not await store.unpack(Parcel("move", "email", 1, packed))
        again = await store.pack("email", limit=10)
        assert [each._replace(seq=0) for each in again.jobs] == [each._replace(seq=0) for each in packed.jobs]


async def test_a_job_that_comes_to_wait_again_is_packed_before_later_ones() -> None:
    async with opened() as store:
        await store.enqueue([job(number) for number in range(5)])
        await store.claim(ClaimRequest(["email"], 2, MINUTE))
        assert await _packed(store, 2) == _numbered(2, 3)
        await store.let_go(jobs=_numbered(2))

        await store.rescue(RescueRequest(force=True), KEEP_ALL)

        assert await _packed(store, 2) == _numbered(0, 1)
        assert await _packed(store, 10) == _numbered(0, 1, 3, 4)


async def test_jobs_that_are_as_urgent_keep_their_order_over_parcels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcels, "WINDOW", 4)
    async with opened() as store:
        jobs = [job(number, kind="abc"[number * 7 % 3], priority=number * 5 % 3) for number in range(40)]
        await store.enqueue([*jobs, *(job(number, delay=MINUTE) for number in range(40, 45))])
        expected = [claimed.id for claimed in sorted(jobs, key=lambda each: each.priority)]
        gone: list[Job] = []

        while (packed := await store.pack("email", limit=3)).jobs:
            assert [each.seq for each in packed.jobs] == sorted(each.seq for each in packed.jobs)
            await store.let_go(jobs=[each.id for each in packed.jobs])
            gone += packed.jobs

        in_turn = sorted(gone, key=lambda each: each.priority)
        assert [each.id for each in in_turn if each.run_at == each.created_at] == expected
        assert len(gone) == 45


async def test_a_parcel_is_read_without_a_look_at_what_went_or_stands_before_it() -> None:
    async with opened() as store:
        await store.enqueue([job(number, "sms") for number in range(1_500)])
        await store.enqueue([job(number) for number in range(1_500, 3_500)])
        for _ in range(2):
            await store.let_go(jobs=await _packed(store, 500))
        database = database_of(store)
        view = vars(table_of(store))["_database"] = Counted(database)

        assert await _packed(store, 500) == _numbered(*range(2_500, 3_000))
        vars(table_of(store))["_database"] = database

        # some places of the line, and the records
        assert view.rows <= 1_000 + 500
        assert view.got == []
