from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import get_args

import pytest

from windlass.core.rule import Rule, read_rule
from windlass.core.schedule import CatchUp, Overlap
from windlass.core.ticks import MOST_AT_ONCE, MOST_CAUGHT_UP, Ticks, ticks

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
WEEK = timedelta(weeks=1)


def decide(
    rule: str | timedelta | Rule = "* * * * *",
    next_run_at: datetime = NOON,
    *,
    now: datetime,
    watched_since: datetime = NOON,
    catch_up: CatchUp = "one",
    overlap: Overlap = "allow",
) -> Ticks:
    read = read_rule(rule, UTC) if isinstance(rule, (str, timedelta)) else rule
    return ticks(read, next_run_at, now=now, watched_since=watched_since, catch_up=catch_up, overlap=overlap)


@pytest.mark.parametrize("catch_up", get_args(CatchUp))
def test_a_due_time_under_watch_makes_a_job_whatever_is_caught_up(catch_up: CatchUp) -> None:
    found = decide(now=NOON, catch_up=catch_up)

    assert found == Ticks([NOON], NOON, NOON + MINUTE, missed=None, dropped=False)


@pytest.mark.parametrize("catch_up", get_args(CatchUp))
def test_a_late_look_makes_a_job_for_each_due_time_under_watch(catch_up: CatchUp) -> None:
    found = decide(now=NOON + 2.5 * MINUTE, watched_since=NOON - DAY, catch_up=catch_up)

    assert found.made == [NOON, NOON + MINUTE, NOON + 2 * MINUTE]
    assert (found.last, found.next_run_at) == (NOON + 2 * MINUTE, NOON + 3 * MINUTE)


def test_a_very_late_look_makes_so_many_jobs_at_once_and_leaves_the_others_for_the_next() -> None:
    end = NOON + 2.5 * MOST_AT_ONCE * SECOND
    made: list[datetime] = []
    firings: list[int] = []
    due: datetime | None = NOON
    while due is not None and due <= end:
        found = decide("* * * * * *", due, now=end)
        made += found.made
        firings.append(len(found.made))
        due = found.next_run_at

    assert made == [NOON + n * SECOND for n in range(251)]
    assert firings == [MOST_AT_ONCE, MOST_AT_ONCE, 51]


@pytest.mark.parametrize(
    "catch_up, made, dropped",
    [("none", [], True), ("one", [5], True), ("all", [1, 2, 3, 4, 5], False)],
)
def test_after_down_time_catch_up_tells_what_is_made(catch_up: CatchUp, made: list[int], dropped: bool) -> None:  # noqa: FBT001
    back = NOON + 5.5 * MINUTE
    found = decide(next_run_at=NOON + MINUTE, now=back, watched_since=back, catch_up=catch_up)

    assert found.made == [NOON + n * MINUTE for n in made]
    assert (found.last, found.next_run_at) == (NOON + 5 * MINUTE, NOON + 6 * MINUTE)
    assert (found.missed, found.dropped) == (NOON + 5 * MINUTE, dropped)


def test_a_single_missed_time_is_caught_up_whole() -> None:
    found = decide(now=NOON + SECOND, watched_since=NOON + SECOND)

    assert (found.made, found.dropped) == ([NOON], False)


def test_due_times_of_down_time_and_those_under_watch_are_told_apart() -> None:
    """A due time at the very begin of the watch is under watch."""
    back, now = NOON + 3 * MINUTE, NOON + 4.5 * MINUTE

    caught_up = {each: decide(now=now, watched_since=back, catch_up=each).made for each in get_args(CatchUp)}

    watched = [back, back + MINUTE]
    assert caught_up == {
        "none": watched,
        "one": [back - MINUTE, *watched],
        "all": [NOON, NOON + MINUTE, NOON + 2 * MINUTE, *watched],
    }


@pytest.mark.parametrize("down_for", [MINUTE, DAY, WEEK])
@pytest.mark.parametrize(
    "rule, every", [("* * * * * *", SECOND), ("* * * * *", MINUTE), ("0 12 * * *", DAY), (7 * SECOND, 7 * SECOND)]
)
def test_what_is_caught_up_is_exact_and_fast_after_any_down_time(
    rule: str | timedelta, every: timedelta, down_for: timedelta
) -> None:
    back = NOON + down_for + timedelta(milliseconds=300)
    passed = (down_for + timedelta(milliseconds=300)) // every + 1
    newest = NOON + (passed - 1) * every
    begun = perf_counter()

    found = {each: decide(rule, now=back, watched_since=back, catch_up=each) for each in get_args(CatchUp)}

    assert perf_counter() - begun < 2
    assert found["none"].made == []
    assert found["one"].made == [newest]
    assert found["all"].made == [newest - n * every for n in reversed(range(min(passed, MOST_CAUGHT_UP)))]
    assert {each.next_run_at for each in found.values()} == {newest + every}
    assert {each.last for each in found.values()} == {newest}


def test_an_interval_keeps_its_beat_however_late_the_look() -> None:
    found = decide(5 * MINUTE, now=NOON + 17 * MINUTE, watched_since=NOON + 17 * MINUTE)

    assert (found.made, found.next_run_at) == ([NOON + 15 * MINUTE], NOON + 20 * MINUTE)


@pytest.mark.parametrize("watched_since", [NOON - DAY, NOON + 9 * MINUTE])
def test_where_jobs_may_not_overlap_there_is_one_for_the_newest(watched_since: datetime) -> None:
    found = decide(now=NOON + 9 * MINUTE, watched_since=watched_since, catch_up="all", overlap="skip")

    assert (found.made, found.next_run_at) == ([NOON + 9 * MINUTE], NOON + 10 * MINUTE)


class Listed:
    """A rule that has these times and no other."""

    text = "listed"

    def __init__(self, *times: datetime) -> None:
        self._times = times

    def following(self, moment: datetime) -> datetime | None:
        return next((each for each in self._times if each > moment), None)

    def latest(self, first: datetime, until: datetime, most: int) -> list[datetime]:
        found = [each for each in self._times if first <= each < until]
        return found[-most:] if most else []


@pytest.mark.parametrize("watched_since", [NOON, NOON + DAY])
def test_a_rule_without_a_further_time_has_no_next_run(watched_since: datetime) -> None:
    found = decide(Listed(NOON, NOON + MINUTE), now=NOON + DAY, watched_since=watched_since)

    assert (found.last, found.next_run_at) == (NOON + MINUTE, None)


def test_a_time_that_the_rule_no_longer_has_is_due_all_the_same() -> None:
    """The data of a time zone may change after a next run was written."""
    changed = Listed(NOON + MINUTE)

    found = decide(changed, now=NOON + 2 * SECOND, watched_since=NOON + SECOND)

    assert found == Ticks([NOON], NOON, NOON + MINUTE, missed=NOON, dropped=False)


def test_a_catch_up_of_another_release_is_no_guess() -> None:
    unknown: Callable[[], CatchUp] = lambda: "some"  # type: ignore[assignment,return-value] # noqa: E731

    with pytest.raises(KeyError, match="some"):
        decide(now=NOON, catch_up=unknown())
