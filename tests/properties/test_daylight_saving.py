"""Cron where clocks are set on and back, beside a model that looks at the clock minute by minute."""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.properties.cron_model import (
    MINUTE,
    Change,
    Expression,
    Shown,
    anything,
    changes,
    changing_zones,
    days,
    due_times,
    each,
    numbers,
    one,
    some,
    walk,
    weekdays,
)
from windlass.core.cron import parse_cron
from windlass.core.errors import InvalidValue
from windlass.core.local_time import REACH

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
HALF_MINUTE = timedelta(seconds=30)
EVERY_MINUTE, EVERY_HOUR = anything(0, 59), anything(0, 23)
EVERY_FIVE_MINUTES = Expression(each(5, 59), EVERY_HOUR)
ANY_TIME = [
    Expression(one(0), one(2)),
    Expression(one(30), one(1)),
    Expression(one(0), one(0)),
    Expression(some(0, 30), some(0, 1, 2, 3)),
    EVERY_FIVE_MINUTES,
    Expression(one(17), EVERY_HOUR),
    Expression(each(20, 59), one(2)),
    Expression(one(30), each(2, 23)),
]
HALF_MINUTES = [
    Expression(one(0), one(2), second=one(0)),
    Expression(some(0, 30), some(1, 2, 3), second=some(0, 30)),
    Expression(each(10, 59), EVERY_HOUR, second=each(30, 59)),
]
FIXED_IN_YEARS = [
    Expression(one(0), one(2)),
    Expression(one(30), one(1)),
    Expression(one(0), one(0), day=one(31)),
    Expression(one(0), one(0), day=one(29), month=one(2)),
]


def at_the(change: Change) -> Iterator[Expression]:
    """Fixed times at the ends and in the midst of what is skipped or comes twice, alone and together."""
    length = abs(change.jump)
    begin, middle, end = change.affected, change.affected + length / 2, change.affected + length
    for wall in (begin, middle, end - MINUTE, end):
        yield Expression(one(wall.minute), one(wall.hour))
    yield Expression(one(middle.minute), one(middle.hour), day=one(middle.day), month=one(middle.month))
    yield Expression(some(*{begin.minute, middle.minute}), some(*{begin.hour, middle.hour, end.hour}))
    yield Expression(EVERY_MINUTE, one(middle.hour))
    yield Expression(one(middle.minute), EVERY_HOUR)


def around(change: Change) -> tuple[datetime, datetime]:
    far = abs(change.jump) + HOUR + HALF_MINUTE * 30
    return change.at - far, change.at + far


def check(expression: Expression, zone: tzinfo, shown: list[Shown], change: Change) -> None:
    start, end = shown[0].at, shown[-1].at
    expected = due_times(expression, shown)
    cron = parse_cron(expression.text)

    found: list[datetime] = []
    after = start - SECOND
    while (due := cron.next_after(after, zone)) is not None and due <= end:
        found.append(due)
        after = due

    assert found == expected, f"{expression.text} at {change} of {zone}"
    length = abs(change.jump)
    for after in (change.at + part for part in (-length, -SECOND, timedelta(0), SECOND, length / 2, length)):
        following = expected[bisect_right(expected, after) :]
        if following:
            assert cron.next_after(after, zone) == following[0], f"{expression.text} after {after} of {zone}"


def test_there_are_changes_of_every_kind() -> None:
    found = [change for zone in changing_zones().values() for change in zone]

    jumps = {change.jump for change in found}
    assert {HOUR, -HOUR, HOUR / 2, -HOUR / 2, 2 * HOUR, -2 * HOUR} <= jumps
    assert len(found) > 1000
    assert any(change.jump > timedelta(0) and change.affected.hour == 0 for change in found)
    assert any(change.jump < timedelta(0) and change.affected.hour == 0 for change in found)


def test_every_change_of_every_zone_is_as_the_model_says() -> None:
    """Neither twice nor never."""
    for name, found in changing_zones().items():
        zone = ZoneInfo(name)
        for change in found:
            shown = walk(zone, *around(change))

            for expression in (*ANY_TIME, *at_the(change)):
                check(expression, zone, shown, change)


def test_expressions_with_seconds_follow_the_same_rules() -> None:
    for name, found in changing_zones().items():
        zone = ZoneInfo(name)
        for change in found[:6]:
            shown = walk(zone, *around(change), step=HALF_MINUTE)

            for expression in HALF_MINUTES:
                check(expression, zone, shown, change)


all_changes = st.deferred(
    lambda: st.sampled_from([(name, change) for name, found in changing_zones().items() for change in found])
)
clock_times = st.builds(
    Expression,
    minute=numbers(0, 59),
    hour=numbers(0, 23),
    day=days,
    weekday=weekdays,
)


@given(expression=clock_times, at=all_changes)
@settings(deadline=None)
def test_any_expression_is_due_at_a_change_as_the_model_says(expression: Expression, at: tuple[str, Change]) -> None:
    zone, change = ZoneInfo(at[0]), at[1]
    try:
        parse_cron(expression.text)
    except InvalidValue as error:
        # two conditions on the day may leave none of any year
        assume("never comes" not in str(error))
        raise

    check(expression, zone, walk(zone, *around(change)), change)


@pytest.mark.parametrize(
    "name, at",
    [
        ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),  # a whole day left out
        ("Pacific/Kwajalein", datetime(1993, 8, 21, 12, tzinfo=UTC)),
        ("America/Caracas", datetime(2007, 12, 9, 7, tzinfo=UTC)),  # the base offset, by half an hour
        ("Asia/Pyongyang", datetime(2018, 5, 4, 15, tzinfo=UTC)),
        ("Europe/Dublin", datetime(1971, 10, 31, 2, tzinfo=UTC)),  # winter is the exception since
        ("Africa/Monrovia", datetime(1972, 1, 7, 0, 45, tzinfo=UTC)),  # by 44 minutes and a half
        ("Asia/Manila", datetime(1990, 5, 20, 16, tzinfo=UTC)),
    ],
)
def test_rare_changes_follow_the_same_rules(name: str, at: datetime) -> None:
    zone = ZoneInfo(name)
    [change] = changes(zone, at - timedelta(days=1), at + timedelta(days=1), timedelta(days=1))

    shown = walk(zone, *around(change), step=HALF_MINUTE)

    assert change.at == at
    for expression in (*ANY_TIME, *at_the(change)):
        check(expression, zone, shown, change)


@pytest.mark.on_request
def test_every_change_since_1970_is_as_the_model_says() -> None:
    seen: set[tuple[Change, ...]] = set()
    for name in sorted(available_timezones()):
        zone = ZoneInfo(name)
        found = tuple(changes(zone, datetime(1970, 1, 3, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC), REACH))
        if found in seen:
            continue
        seen.add(found)
        for change in found:
            shown = walk(zone, *around(change), step=HALF_MINUTE)
            for expression in (*ANY_TIME, *at_the(change)):
                check(expression, zone, shown, change)


@pytest.mark.on_request
def test_no_zone_changed_twice_within_the_reach_of_the_search_since_1970() -> None:
    step = timedelta(hours=12)

    for name in sorted(available_timezones()):
        found = list(changes(ZoneInfo(name), datetime(1970, 1, 1, tzinfo=UTC), datetime(2038, 1, 1, tzinfo=UTC), step))
        assert all(later.at - earlier.at > REACH + step for earlier, later in pairwise(found)), name


@pytest.mark.parametrize(
    "name", ["Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"]
)
def test_seven_years_of_fixed_times_are_as_the_model_says(name: str) -> None:
    check_years(FIXED_IN_YEARS, ZoneInfo(name), 7, 30 * MINUTE)


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/Santiago", "Australia/Lord_Howe"])
def test_a_year_of_every_five_minutes_is_as_the_model_says(name: str) -> None:
    check_years([EVERY_FIVE_MINUTES], ZoneInfo(name), 1, 5 * MINUTE)


@pytest.mark.on_request
@pytest.mark.parametrize("name", ["Europe/Berlin", "America/Santiago", "Australia/Lord_Howe"])
def test_seven_years_of_every_five_minutes_are_as_the_model_says(name: str) -> None:
    check_years([EVERY_FIVE_MINUTES], ZoneInfo(name), 7, 5 * MINUTE)


def check_years(expressions: list[Expression], zone: tzinfo, years: int, step: timedelta) -> None:
    first, end = datetime(2023, 1, 1, tzinfo=UTC), datetime(2023 + years, 1, 1, tzinfo=UTC)
    shown = walk(zone, first, end, step)
    for expression in expressions:
        expected = due_times(expression, shown)
        cron = parse_cron(expression.text)
        for after, due in pairwise([first - SECOND, *expected]):
            assert cron.next_after(after, zone) == due, f"{expression.text} in {zone}"
