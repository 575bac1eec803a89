import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from windlass.connect import open_store
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.http.dashboard.history import AT_ONCE, FRESH, LATELY, LONGEST_GAP, MOST_HISTORIES, Histories, History
from windlass.http.dashboard.steps import FARTHEST, MINUTE
from windlass.testing import FakeClock

HOUR = 60 * MINUTE


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(clock: FakeClock) -> AsyncIterator[Store]:
    store = open_store("memory://", clock=clock)
    await store.open()
    yield store
    await store.close()


class SlowStore:
    """Lets looks through, told of in `asked`; each takes its time by the clock."""

    def __init__(self, store: Store, clock: FakeClock, *, takes: float) -> None:
        self._store = store
        self._clock = clock
        self._takes = takes
        self.asked: list[tuple[datetime, datetime]] = []

    @property
    def store(self) -> Store:
        return cast("Store", self)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._store, name)

    async def timings(self, *, since: datetime, until: datetime) -> list[TimingCount]:
        self._clock.advance(self._takes)
        self.asked.append((since, until))
        # others may go on meanwhile, as with a store outside of this process
        await asyncio.sleep(0)
        return await self._store.timings(since=since, until=until)


async def ran(store: Store, clock: FakeClock, *, queue: str = "mail", ago: timedelta = timedelta(0)) -> None:
    """Write down an attempt that ran for up to a second."""
    minute = (clock.now() - ago).replace(second=0, microsecond=0)
    await store.write_timings([TimingCount(minute, queue, "send", "ran", 7, 1)])


def attempts(history: History) -> int:
    return sum(sum(happened.ran) for happened in history.minutes.values())


async def test_it_reads_as_far_back_as_it_is_asked_to(store: Store, clock: FakeClock) -> None:
    await ran(store, clock)
    await ran(store, clock, ago=HOUR - MINUTE)
    await ran(store, clock, ago=23 * HOUR)
    history = History(clock, None)

    await history.look(store, [], HOUR)
    assert attempts(history) == 2

    await history.look(store, [], FARTHEST)
    assert attempts(history) == 3


async def test_a_minute_that_grows_is_read_again_and_counted_once(store: Store, clock: FakeClock) -> None:
    history = History(clock, None)
    for _ in range(3):
        await ran(store, clock)
        await ran(store, clock, ago=MINUTE)
        await history.look(store, [], HOUR)
        clock.advance(FRESH)

    assert attempts(history) == 6


async def test_it_is_read_when_it_is_old_and_not_before(store: Store, clock: FakeClock) -> None:
    slow = SlowStore(store, clock, takes=0.0)
    history = History(clock, None)

    for _ in range(30):
        await history.look(slow.store, [], HOUR)
        clock.advance(1)

    # as far back as was asked for at first, then the last minutes alone
    assert slow.asked[-1][0] == clock.now().replace(second=0) - 2 * MINUTE
    assert len(slow.asked) == len({since for since, _ in slow.asked}) + 1


async def test_a_minute_that_begins_is_read_at_once(store: Store, clock: FakeClock) -> None:
    clock.advance(59)
    history = History(clock, None)
    await history.look(store, [], HOUR)
    clock.advance(1)
    await ran(store, clock)

    await history.look(store, [], HOUR)

    assert attempts(history) == 1


async def test_a_look_at_a_slow_store_is_bounded_and_the_next_one_goes_on(store: Store, clock: FakeClock) -> None:
    await ran(store, clock, ago=HOUR - MINUTE)
    slow = SlowStore(store, clock, takes=AT_ONCE)
    history = History(clock, None)

    await history.look(slow.store, [], HOUR)
    assert len(slow.asked) == 1
    assert attempts(history) == 0
    while history.since is not None and history.since > clock.now().replace(second=0) - HOUR:
        await history.look(slow.store, [], HOUR)

    assert attempts(history) == 1
    assert all(until - since <= 5 * MINUTE for since, until in slow.asked)


async def test_who_comes_while_another_one_reads_does_not_read_as_well(store: Store, clock: FakeClock) -> None:
    slow = SlowStore(store, clock, takes=AT_ONCE)
    history = History(clock, None)

    await asyncio.gather(*(history.look(slow.store, [], HOUR) for _ in range(5)))

    assert len(slow.asked) == 1


async def test_a_quick_store_is_read_in_few_pieces(store: Store, clock: FakeClock) -> None:
    slow = SlowStore(store, clock, takes=0.001)

    await History(clock, None).look(slow.store, [], FARTHEST)

    assert len(slow.asked) < 12


async def test_it_may_be_about_one_queue_alone(store: Store, clock: FakeClock) -> None:
    await ran(store, clock, queue="mail")
    await ran(store, clock, queue="other")
    history = History(clock, "mail")

    await history.look(store, [], HOUR)

    assert attempts(history) == 1


async def test_after_a_silence_nothing_is_missing(store: Store, clock: FakeClock) -> None:
    history = History(clock, None)
    for silence in (2 * LONGEST_GAP, LONGEST_GAP):
        await history.look(store, [], HOUR)
        clock.advance(silence)
        await ran(store, clock, ago=silence / 2)

    await history.look(store, [], HOUR)

    assert attempts(history) == 2


async def test_after_a_long_silence_too_a_look_is_bounded(store: Store, clock: FakeClock) -> None:
    slow = SlowStore(store, clock, takes=AT_ONCE)
    history = History(clock, None)
    await history.look(slow.store, [], HOUR)
    clock.advance(5 * HOUR)

    await history.look(slow.store, [], HOUR)

    assert all(until - since <= LONGEST_GAP for since, until in slow.asked)


async def test_what_no_chart_shows_is_let_go(store: Store, clock: FakeClock) -> None:
    history = History(clock, None)
    for _ in range(300):
        await ran(store, clock)
        await history.look(store, [], FARTHEST)
        clock.advance(5 * MINUTE)

    assert len(history.minutes) == FARTHEST // (5 * MINUTE) + 1
    assert len(history.lately) <= LATELY


async def test_what_is_made_of_it_is_made_again_when_it_was_read(store: Store, clock: FakeClock) -> None:
    history = History(clock, None)
    made: list[int] = []

    for _ in range(2):
        await history.look(store, [], HOUR)
        history.once("chart", lambda: made.append(1))
        history.once("chart", lambda: made.append(1))
        clock.advance(FRESH)

    assert len(made) == 2


def test_only_some_histories_are_kept(clock: FakeClock) -> None:
    histories = Histories()
    first = histories.of(clock, None, "0")
    for number in range(2 * MOST_HISTORIES):
        assert histories.of(clock, None, "0") is first
        histories.of(clock, None, f"{number + 1}")

    assert histories.of(clock, None, "1") is not histories.of(clock, frozenset({"a"}), "1")
    for number in range(MOST_HISTORIES):
        histories.of(clock, "other", f"{number}")
    assert histories.of(clock, None, "0") is not first
