"""Answers of the store that several looks share."""

import pytest

from windlass.core.errors import StoreUnavailable
from windlass.http.dashboard.seen import MOST_KEPT, Kept, Memo
from windlass.testing import FakeClock


class _Asked:
    """Answers with how often it was asked, unless it is away."""

    def __init__(self) -> None:
        self.times = 0
        self.away = False

    async def __call__(self) -> int:
        self.times += 1
        if self.away:
            raise StoreUnavailable("the store is away: start it again", retryable=True)
        return self.times


async def test_an_answer_counts_for_its_time_and_is_asked_for_anew_then() -> None:
    clock, ask = FakeClock(), _Asked()
    kept = Kept(clock)
    first = [await kept.within(5, "a", ask), await kept.within(5, "a", ask)]
    clock.advance(5)

    assert (first, await kept.within(5, "a", ask)) == ([1, 1], 2)


async def test_whoever_asks_for_ever_other_things_fills_no_memory() -> None:
    clock, ask = FakeClock(), _Asked()
    kept = Kept(clock)
    for number in range(MOST_KEPT + 100):
        await kept.within(60, number, ask)
    known = len(kept)
    oldest, newest = await kept.within(60, 0, ask), await kept.within(60, MOST_KEPT + 99, ask)

    assert (known, oldest, newest) == (MOST_KEPT, MOST_KEPT + 101, MOST_KEPT + 100)


async def test_what_is_over_is_forgotten_with_the_next_answer() -> None:
    clock, ask = FakeClock(), _Asked()
    kept = Kept(clock)
    for number in range(10):
        await kept.within(5, number, ask)
    clock.advance(5)
    await kept.within(5, "another", ask)

    assert len(kept) == 1


async def test_a_store_that_is_away_is_asked_once_in_a_moment() -> None:
    memo, ask = Memo(), _Asked()
    ask.away = True
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await memo.once("queues", ask)

    assert ask.times == 1


async def test_an_answer_without_worth_is_an_answer() -> None:
    memo, ask = Memo(), _Asked()
    ask.times = -1

    assert [await memo.once("queues", ask) for _ in range(2)] == [0, 0]
