"""How long attempts took: counts of each minute, by queue, kind and range."""

from datetime import UTC, datetime

from windlass.client.upkeep import prune_all
from windlass.core.retention import KEEP_ALL
from windlass.core.stats import BOUNDS, TimingCount
from windlass.core.store import Store
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.given import DAY, MINUTE


def _minute(clock: FakeClock) -> datetime:
    return clock.now().replace(second=0, microsecond=0)


async def test_timings_are_added_up(store: Store, clock: FakeClock) -> None:
    ran = TimingCount(_minute(clock), "email", "x", "ran", 3, 2)
    others = [
        ran._replace(what="waited"),
        ran._replace(range=len(BOUNDS)),
        ran._replace(range=0),
        ran._replace(kind=""),
        ran._replace(queue="sms"),
    ]
    # one that comes twice in a call is added twice
    await store.write_timings([ran, *others, ran])
    await store.write_timings([ran._replace(attempts=5)])
    await store.write_timings([])

    rows = await store.timings(since=ran.minute, until=ran.minute + MINUTE)

    assert sorted(rows) == sorted([ran._replace(attempts=9), *others])


async def test_each_minute_has_timings_of_its_own(store: Store, clock: FakeClock) -> None:
    first = TimingCount(_minute(clock), "email", "x", "waited", 1, 1)
    rows = [first._replace(minute=first.minute + n * MINUTE, attempts=n + 1) for n in range(4)]
    clock.advance(4 * MINUTE)
    await store.write_timings(rows)

    middle = await store.timings(since=rows[1].minute, until=rows[3].minute)
    all_time = await store.timings(since=datetime(1970, 1, 1, tzinfo=UTC), until=datetime.max.replace(tzinfo=UTC))

    assert sorted(middle) == rows[1:3]
    assert sorted(all_time) == rows


async def test_timings_are_kept_for_eight_days(store: Store, clock: FakeClock) -> None:
    row = TimingCount(_minute(clock), "email", "x", "ran", 1, 1)
    await store.write_timings([row])
    clock.advance(7 * DAY)
    await store.prune(KEEP_ALL, limit=10)
    assert await store.timings(since=row.minute, until=clock.now()) == [row]

    clock.advance(2 * DAY)
    await store.prune(KEEP_ALL, limit=10)

    assert await store.timings(since=row.minute, until=clock.now()) == []


async def test_one_round_of_pruning_leaves_nothing_that_is_over_however_much_it_is(
    store: Store, clock: FakeClock
) -> None:
    rows = [TimingCount(_minute(clock), "email", f"kind-{n:04}", "ran", 1, 1) for n in range(2_500)]
    for start in range(0, len(rows), 500):
        await store.write_timings(rows[start : start + 500])
    clock.advance(9 * DAY)

    await prune_all(store, KEEP_ALL)

    assert await store.timings(since=_minute(clock) - 10 * DAY, until=clock.now()) == []
