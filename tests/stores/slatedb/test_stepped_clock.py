"""A clock that is set: nothing that was counted is lost, and the owner goes on being seen."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Final

import pytest

from tests.stores.slatedb.lived import job
from tests.stores.slatedb.opened import database_of, eventually_is, in_room, new_address, opened
from windlass.core.retention import KEEP_ALL
from windlass.core.store import Store
from windlass.stores.slatedb import SlateStore, keys, owner
from windlass.stores.slatedb.address import Address
from windlass.testing.clock import START
from windlass.testing.conformance.stepped_clock import SteppedClock

MINUTE: Final = timedelta(minutes=1)
DAY: Final = timedelta(days=1)


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
def address() -> Address:
    return new_address()


@pytest.fixture
async def store(address: Address, clock: SteppedClock) -> AsyncIterator[SlateStore]:
    async with opened(address, clock=clock) as store:
        yield store


async def enqueued(store: Store) -> list[tuple[datetime, int]]:
    """Return how many jobs were enqueued in which minute."""
    rows = await store.minutes(since=START - DAY, until=START + DAY)
    return [(row.minute, row.counts.enqueued) for row in rows]


async def test_a_clock_that_is_set_back_counts_on_in_the_minute_that_it_came_from(
    store: SlateStore, clock: SteppedClock
) -> None:
    await store.enqueue([job(1), job(2)])
    clock.step(-5 * MINUTE)
    await store.enqueue([job(3)])
    clock.step(3 * MINUTE)
    await store.enqueue([job(4)])
    clock.step(3 * MINUTE)
    await store.enqueue([job(5)])

    assert await enqueued(store) == [(START, 4), (START + MINUTE, 1)]


async def test_an_owner_whose_clock_is_behind_that_of_the_last_one_adds_to_what_that_has_counted(
    address: Address, clock: SteppedClock
) -> None:
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(1), job(2)])
        clock.step(MINUTE)
        await store.enqueue([job(3)])

    clock.step(-5 * MINUTE)
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(4)])

        assert await enqueued(store) == [(START, 2), (START + MINUTE, 2)]
        [stats] = await store.stats("email")
        assert stats.totals.enqueued == 4


async def test_an_owner_that_opens_in_the_same_minute_adds_to_it(address: Address, clock: SteppedClock) -> None:
    for number in range(3):
        async with opened(address, clock=clock) as store:
            await store.enqueue([job(number)])

            assert await enqueued(store) == [(START, number + 1)]


@pytest.mark.parametrize("by", [timedelta(hours=-1), timedelta(seconds=4), timedelta(hours=1)])
async def test_the_owner_is_seen_at_the_time_that_its_clock_was_set_to(
    store: SlateStore, clock: SteppedClock, by: timedelta
) -> None:
    assert await seen_at(store) == START

    clock.step(by)

    # nobody calls: the beat is made for its own sake
    await eventually_is(lambda: seen_at(store), clock.now())


async def seen_at(store: Store) -> datetime:
    database = database_of(store)
    record = await in_room(store, lambda: database.get(keys.OWNER))
    assert record is not None
    return owner.decode(record).seen_at


async def test_a_beat_goes_with_a_write_that_is_made_anyway(store: SlateStore, clock: SteppedClock) -> None:
    clock.step(timedelta(seconds=0.5))
    await store.enqueue([job(1)])
    assert await seen_at(store) == START

    clock.step(timedelta(seconds=0.5))
    await store.enqueue([job(2)])

    assert await seen_at(store) == clock.now()


async def test_housekeeping_finds_what_was_written_after_a_clock_was_set_back(
    store: SlateStore, clock: SteppedClock
) -> None:
    clock.step(DAY)
    await store.prune(KEEP_ALL, limit=1)
    clock.step(-DAY)
    await store.enqueue([job(1)], request_id="request")
    assert await receipts(store) == 1

    clock.advance(11 * MINUTE)
    await store.prune(KEEP_ALL, limit=1)

    assert await receipts(store) == 0


async def receipts(store: Store) -> int:
    database = database_of(store)
    rows = await in_room(store, lambda: database.scan(keys.RECEIPT_TIMES, keys.after(keys.RECEIPT_TIMES), limit=100))
    return len(rows)
