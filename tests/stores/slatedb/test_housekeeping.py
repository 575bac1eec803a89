"""What the store keeps beside jobs: it is counted once, and goes when its time is over."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final

import pytest

from tests.stores.slatedb.lived import job
from tests.stores.slatedb.opened import database_of, opened
from windlass.client.upkeep import prune_all
from windlass.core.errors import StoreUnavailable
from windlass.core.retention import KEEP_ALL
from windlass.core.stats import TimingCount
from windlass.core.unique import Hold, Unique, hold
from windlass.stores.slatedb import SlateStore, keys
from windlass.stores.slatedb.moves import housekeeping
from windlass.stores.slatedb.ranges import rows_of
from windlass.testing import FakeClock

SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(clock: FakeClock) -> AsyncIterator[SlateStore]:
    async with opened(clock=clock) as store:
        yield store


async def locks(store: SlateStore) -> list[str]:
    rows = await database_of(store).scan(keys.LOCKS, keys.after(keys.LOCKS), limit=100)
    return [key[1:].decode() for key, _ in rows]


async def test_locks_that_are_held_do_not_hide_those_whose_time_is_over(
    store: SlateStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "AT_ONCE", 3)
    for name in "abcdefg":
        await store.lock(name, "me", MINUTE)
    await store.lock("z", "me", SECOND)
    clock.advance(2 * SECOND)

    for _ in range(3):
        await store.prune(KEEP_ALL, limit=1)

    assert await locks(store) == [*"abcdefg"]
    # and those in front have their turn again
    await store.lock("a", "me", SECOND)
    clock.advance(2 * SECOND)
    for _ in range(3):
        await store.prune(KEEP_ALL, limit=1)
    assert await locks(store) == [*"bcdefg"]


def hold_for(key: str, time: timedelta) -> Hold:
    return hold(Unique(key, until=time), queue="email", kind=None, tenant=None, payload=b"")


async def count_of(store: SlateStore, *families: bytes) -> int:
    return sum([len(await rows_of(database_of(store), family)) for family in families])


async def test_receipts_and_timed_keys_that_are_over_go_in_one_round_however_many_they_are(
    store: SlateStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "AT_ONCE", 3)
    keyed = [job(n, unique=hold_for(f"k{n}", MINUTE)) for n in range(10)]
    await asyncio.gather(*(store.enqueue([one], request_id=f"r{n}") for n, one in enumerate(keyed)))
    families = keys.RECEIPTS, keys.RECEIPT_TIMES, keys.HOLDS, keys.HOLD_TIMES
    assert await count_of(store, *families) == 40
    clock.advance(housekeeping.RECEIPTS_KEPT)
    await store.enqueue([job(99)], request_id="new")

    await prune_all(store, KEEP_ALL)

    assert await count_of(store, *families) == 2


async def test_others_are_served_between_the_pages_of_a_round(
    store: SlateStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "AT_ONCE", 1)
    for number in range(50):
        await store.lock(f"{number}", "me", SECOND)
    clock.advance(MINUTE)

    round_ = asyncio.ensure_future(prune_all(store, KEEP_ALL))
    await store.stats()
    await store.stats()

    assert not round_.done()
    await round_
    assert await locks(store) == []


async def test_timings_that_are_repeated_since_some_could_not_be_read_are_counted_once(
    store: SlateStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = clock.now()
    timings = [TimingCount(now, queue, "", "ran", 2, 1) for queue in ("a", "b")]
    await store.write_timings(timings)
    database = database_of(store)
    get, second = database.get, keys.minute(now, "b", "", family=keys.TIMINGS)

    async def fail_at_the_second(key: bytes) -> bytes | None:
        if key == second:
            message = "not now"
            raise StoreUnavailable(message, retryable=True)
        return await get(key)

    with monkeypatch.context() as failing:
        failing.setattr(database, "get", fail_at_the_second)
        with pytest.raises(StoreUnavailable, match="not now"):
            await store.write_timings(timings)
    await store.write_timings(timings)

    found = await store.timings(since=now, until=now + MINUTE)
    assert [(queue, count) for _, queue, _, _, _, count in found] == [("a", 2), ("b", 2)]
