"""The stores of one process on one database: they share its owner, and the last one lets go of it."""

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from tests.stores.slatedb.lived import job, numbered
from tests.stores.slatedb.opened import PATIENCE, Held, eventually, new_address, opened, room_of, rooms, store_at
from windlass.connect import open_store
from windlass.core.errors import ClientClosed, StoreOwned, StoreUnavailable
from windlass.core.requests import ClaimRequest
from windlass.stores.slatedb import keys
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.doors import look_up
from windlass.testing.conformance.given import settlement

MINUTE: Final = timedelta(minutes=1)
REQUEST: Final = ClaimRequest(["email"], 1, MINUTE)


async def test_stores_of_all_event_loops_and_threads_share_one_owner() -> None:
    address = new_address()
    async with opened(address) as first, opened(address) as second:
        assert room_of(first) is room_of(second)
        await first.enqueue([job(n) for n in range(20)])

        def work() -> list[str]:
            async def drain() -> list[str]:
                async with opened(address) as own:
                    assert room_of(own) is room_of(first)
                    done: list[str] = []
                    while claims := (await own.claim(REQUEST)).jobs:
                        await own.settle([settlement(claim) for claim in claims])
                        done += [claim.job.id for claim in claims]
                    return done

            return asyncio.run(drain())

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(asyncio.to_thread(work)) for _ in range(3)]

        assert sorted(done for task in tasks for done in task.result()) == [numbered(n) for n in range(20)]
        [stats] = await second.stats("email")
        assert (stats.succeeded, stats.running) == (20, 0)


async def test_the_last_one_out_lets_go() -> None:
    address = new_address()
    first, second = store_at(address), store_at(address).sibling()
    await first.open()
    await second.open()
    threads = threading.active_count()

    await first.close()
    await second.enqueue([job(1)])
    assert await look_up(address, keys.OWNER) != [None]
    with pytest.raises(ClientClosed):
        await first.enqueue([job(2)])
    await second.close()

    assert address.place not in rooms()
    assert await look_up(address, keys.OWNER) == [None]
    await eventually(lambda: threading.active_count() < threads)


async def test_a_store_can_be_opened_and_closed_again_and_again() -> None:
    store = store_at(new_address())
    for number in range(3):
        await store.open()
        await store.open()
        await store.enqueue([job(number)])
        await store.close()
        await store.close()

    await store.open()
    [stats] = await store.stats("email")
    assert stats.pending == 3
    await store.close()


async def test_what_a_named_store_in_memory_has_stays_while_nobody_has_it_open() -> None:
    url = f"slatedb+memory://{new_address().bucket}"
    store = open_store(url)
    await store.open()
    await store.enqueue([job(1)])
    await store.close()

    other = open_store(url)
    await other.open()
    [claim] = (await other.claim(REQUEST)).jobs
    await other.close()

    assert claim.job.id == numbered(1)


async def test_a_close_finishes_the_calls_that_are_under_way() -> None:
    address = new_address()
    store = store_at(address)
    await store.open()
    held = Held(store)
    calls = [asyncio.create_task(store.enqueue([job(n)])) for n in range(5)]
    await held.begun()
    look = asyncio.create_task(store.stats())
    await asyncio.sleep(0)

    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    with pytest.raises(ClientClosed):
        await store.enqueue([job(9)])
    await held.let_go()
    await closing

    assert [each.created for call in calls for each in await call] == [True] * 5
    await look
    async with opened(address) as again:
        assert (await again.stats("email"))[0].pending == 5


async def test_who_opens_while_the_last_one_closes_waits_for_it() -> None:
    address = new_address()
    store = store_at(address)
    await store.open()
    held = Held(store)
    call = asyncio.create_task(store.enqueue([job(1)]))
    await held.begun()
    before = room_of(store)

    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    again = store_at(address)
    opening = asyncio.create_task(again.open())
    done, _ = await asyncio.wait([opening], timeout=0.05)
    assert not done
    await held.let_go()
    await asyncio.gather(call, closing)

    await opening
    assert room_of(again) is not before
    assert [claim.job.id for claim in (await again.claim(REQUEST)).jobs] == [numbered(1)]
    await again.close()


async def test_a_close_that_was_cancelled_does_not_keep_the_next_one_out() -> None:
    address = new_address()
    store = store_at(address)
    await store.open()
    held = Held(store)
    call = asyncio.create_task(store.enqueue([job(1)]))
    await held.begun()

    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0.01)
    closing.cancel()
    await asyncio.wait([closing])
    await held.let_go()
    await call

    async with asyncio.timeout(PATIENCE), opened(address) as again:
        assert (await again.stats("email"))[0].pending == 1


async def test_an_opening_that_was_cancelled_leaves_nothing_behind() -> None:
    address = new_address()
    opening = asyncio.create_task(store_at(address).open())
    await asyncio.sleep(0)

    opening.cancel()
    await asyncio.wait([opening])

    await eventually(lambda: address.place not in rooms() or rooms()[address.place].closed.done())
    async with asyncio.timeout(PATIENCE), opened(address) as store:
        await store.enqueue([job(1)])


async def test_an_opening_that_failed_may_be_tried_again(tmp_path: Path) -> None:
    place = tmp_path / "jobs"
    place.write_text("no folder")
    stores = [store_at(Address("file", "", str(place))) for _ in range(2)]

    told = await asyncio.gather(*(store.open() for store in stores), return_exceptions=True)
    assert [type(error) for error in told] == [StoreUnavailable] * 2
    place.unlink()

    for store in stores:
        await store.open()
    await stores[0].enqueue([job(1)])
    for store in stores:
        await store.close()


async def test_many_may_open_and_close_at_once() -> None:
    address = new_address()

    def come_and_go(begin: int) -> None:
        async def live() -> None:
            for number in range(begin, begin + 3):
                async with opened(address) as store:
                    await store.enqueue([job(number)])

        asyncio.run(live())

    async with asyncio.TaskGroup() as group:
        for begin in range(0, 15, 3):
            group.create_task(asyncio.to_thread(come_and_go, begin))

    async with opened(address) as store:
        assert (await store.stats("email"))[0].pending == 15


async def test_a_database_that_is_spelt_in_two_ways_has_one_owner_in_a_process(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    address, other = (Address("file", "", str(path)) for path in (tmp_path / "jobs", tmp_path / "." / "jobs/../jobs"))
    assert address.place != other.place
    async with opened(address) as store:
        with pytest.raises(StoreOwned):
            await store_at(other).open()

        await store.enqueue([job(1)])
    async with opened(other) as store:
        assert (await store.stats("email"))[0].pending == 1
