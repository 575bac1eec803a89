"""Taking what waits from one store to another."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.client.given_moves import GONE, TO, everything, filled, in_memory, told
from tests.each_store import STORES, new_url
from windlass import InvalidValue, NewJob, StoreMoved, connect
from windlass.client.mover import move, undo
from windlass.core.moving import Moved
from windlass.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def test_all_that_waits_is_in_the_other_store_and_nothing_is_left(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        await filled(source, clock)
        before = await everything(source)
        kept = await source.schedules.get("often")

        carried = await move(source, target, to=TO, wait=0, told=told)

        assert (carried.jobs, carried.schedules, carried.kv, carried.left) == (len(before), 1, 1, [])
        assert sorted(await everything(target)) == sorted(before)
        assert (await everything(source), await source.store.timed_keys(limit=10)) == ([], [])
        assert (await target.stats("b")).paused
        assert not (await target.enqueue("c", unique=GONE)).created
        assert await target.kv.get("name") == b"value"
        schedule = await target.schedules.get("often")
        assert kept is not None
        assert schedule is not None
        assert schedule.next_run_at == kept.next_run_at


@pytest.mark.parametrize("store", STORES)
async def test_jobs_go_to_every_store_and_come_back_as_they_were(store: str, tmp_path: Path) -> None:
    # one that is served goes by its own clock
    clock = FakeClock(datetime.now(UTC))
    with new_url(store) as url:
        async with connect(f"sqlite:///{tmp_path}/jobs.db", clock=clock) as source, connect(url, clock=clock) as target:
            await filled(source, clock)
            before = await everything(source)

            await move(source, target, to=TO, wait=0, told=told)
            there = await everything(target)
            await move(target, source, to="sqlite:///back.db", wait=0, told=told)

            assert sorted(there) == sorted(before)
            assert sorted(await everything(source)) == sorted(before)


async def test_clients_of_the_old_store_are_told_where_the_jobs_are(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        await move(source, target, to=TO, wait=0, told=told)

        with pytest.raises(StoreMoved, match=TO) as caught:
            await source.enqueue("a")
        assert caught.value.to == TO
        with pytest.raises(StoreMoved):
            await source.claim("a")

        await undo(source)
        assert (await source.enqueue("a")).created


async def test_large_jobs_go_over_in_parcels_that_can_be_carried(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        await source.enqueue_many([NewJob("a", bytes(900_000), unique=f"k{n}") for n in range(9)])
        sizes: list[int] = []

        await move(source, target, to=TO, wait=0, told=lambda carried: sizes.append(carried.jobs))

        assert sizes == [4, 8, 9]
        assert [job.unique_key for job in await target.jobs()] == [f"k{n}" for n in range(9)]


async def test_jobs_that_run_have_time_to_end_and_go_over_if_they_wait_again(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        await source.enqueue("a", b"fails")
        claim = await source.claim("a")
        assert claim is not None

        async with asyncio.TaskGroup() as tasks:
            moving = tasks.create_task(move(source, target, to=TO, wait=10, told=told))
            await clock.timers(1)
            await source.nack(claim, "not yet", delay=60)
            await clock.let_pass(1)

        assert (moving.result().jobs, moving.result().left) == (1, [])
        [job] = await everything(target)
        assert (job.payload, job.attempt, job.last_error) == (b"fails", 1, "not yet")


async def test_jobs_that_still_run_are_left_out_and_told(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        await source.enqueue("a", b"slow")
        claim = await source.claim("a")
        assert claim is not None

        left_out = await move(source, target, to=TO, wait=0, told=told)
        await source.ack(claim, then=[NewJob("a", b"next")])
        again = await move(source, target, to=TO, wait=0, told=told)

        assert (left_out.jobs, left_out.left) == (0, [claim.job.id])
        assert (again.jobs, again.left) == (1, [])
        [job] = await everything(target)
        assert job.payload == b"next"


async def test_what_the_other_store_has_already_stays_as_it_is_in_both(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        for client, value in ((source, b"old"), (target, b"new")):
            await client.kv.put("same", b"1")
            await client.kv.put("other", value)
            await client.schedules.put("same", 60, NewJob("a"))
            await client.schedules.put("other", 60, NewJob("a", value))

        carried = await move(source, target, to=TO, wait=0, told=told)

        assert (carried.kept_kv, carried.kept_schedules) == ([b"other"], ["other"])
        assert [await client.kv.get("other") for client in (source, target)] == [b"old", b"new"]
        assert [await source.kv.get("same"), await source.schedules.get("same")] == [None, None]


async def test_a_store_is_not_moved_to_itself(clock: FakeClock) -> None:
    async with in_memory(clock) as source:
        with pytest.raises(InvalidValue, match="to itself"):
            await move(source, source, to=TO, wait=0, told=told)

        assert (await source.enqueue("a")).created


async def test_a_store_on_its_way_is_not_moved_elsewhere(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        await move(source, target, to=TO, wait=0, told=told)

        with pytest.raises(InvalidValue, match=f"on its way to {TO}, not to redis://there"):
            await move(source, target, to="redis://there", wait=0, told=told)


async def test_jobs_can_come_back_to_where_they_were(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        await filled(source, clock)
        before = await everything(source)

        await move(source, target, to=TO, wait=0, told=told)
        await move(target, source, to="sqlite:///back.db", wait=0, told=told)

        assert sorted(await everything(source)) == sorted(before)
        assert await source.kv.get("name") == b"value"
        assert (await source.enqueue("a")).created


async def test_a_store_whose_own_jobs_still_have_to_go_elsewhere_takes_none(clock: FakeClock) -> None:
    async with in_memory(clock) as source, in_memory(clock) as target:
        await target.enqueue("a")
        await target.store.set_moved(Moved("redis://third", "cut short"))

        with pytest.raises(InvalidValue, match="on its way to redis://third, with 1 job still to go"):
            await move(source, target, to=TO, wait=0, told=told)

        assert await target.store.moved() == Moved("redis://third", "cut short")
        assert (await source.enqueue("a")).created
