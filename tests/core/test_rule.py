import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from windlass.core.errors import InvalidValue
from windlass.core.rule import CronRule, Interval, read_rule, same_rule

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
WEEK = timedelta(days=7)


@pytest.mark.parametrize(
    "given, every",
    [
        (timedelta(minutes=5), timedelta(minutes=5)),
        (300, timedelta(minutes=5)),
        (1.5, timedelta(seconds=1.5)),
        ("every 300s", timedelta(minutes=5)),
        (" every 1.5s\n", timedelta(seconds=1.5)),
        ("every 1.000001s", timedelta(seconds=1, microseconds=1)),
        ("every 3153600000s", timedelta(days=36_500)),
        (1, timedelta(seconds=1)),
    ],
)
def test_an_interval_is_a_duration_or_its_text(given: str | timedelta | float, every: timedelta) -> None:
    assert read_rule(given, UTC) == Interval(every)


@pytest.mark.parametrize(
    "every, text",
    [
        (timedelta(minutes=5), "every 300s"),
        (timedelta(seconds=1), "every 1s"),
        (timedelta(seconds=1.5), "every 1.5s"),
        (timedelta(seconds=10, microseconds=1), "every 10.000001s"),
        (timedelta(days=36_500), "every 3153600000s"),
    ],
)
def test_the_text_of_an_interval_is_exact(every: timedelta, text: str) -> None:
    assert Interval(every).text == text


@pytest.mark.parametrize(
    "given", [0, 0.0, 0.999, timedelta(0), timedelta(microseconds=999_999), "every 0s", "every 0.5s"]
)
def test_an_interval_is_at_least_a_second(given: str | timedelta | float) -> None:
    with pytest.raises(InvalidValue, match="the interval of a schedule must be at least 1 second"):
        read_rule(given, UTC)


@pytest.mark.parametrize(
    "given",
    [
        -1,
        timedelta(seconds=-1),
        math.nan,
        math.inf,
        10**400,
        timedelta(days=36_500, microseconds=1),
        "every 3153600001s",
        "every 9999999999s",
    ],
)
def test_what_is_no_duration_is_no_interval(given: object) -> None:
    nonsense: Any = given

    with pytest.raises(InvalidValue, match="the interval of a schedule must"):
        read_rule(nonsense, UTC)


@pytest.mark.parametrize("given", [True, False, None, b"* * * * *", [], NOON])
def test_what_is_neither_an_expression_nor_a_duration_is_told_what_a_rule_is(given: object) -> None:
    nonsense: Any = given

    with pytest.raises(InvalidValue, match=r"a rule is a cron expression, as in .*, a timedelta or a number"):
        read_rule(nonsense, UTC)


@pytest.mark.parametrize(
    "text",
    [
        "every",
        "every 5m",
        "every 5",
        "every -5s",
        "every 1e3s",
        "every 1.s",
        "every .5s",
        "every 1.0000001s",
        "every ٣s",
        "every 99999999999s",
        "every  5s",
        "everyday",
        "every " + "9" * 10_000 + "s",
    ],
)
def test_another_text_of_an_interval_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="write seconds, as in 'every 300s', or give a timedelta") as refused:
        read_rule(text, UTC)

    assert len(str(refused.value)) < 200


def test_a_cron_rule_keeps_its_text_and_goes_by_its_zone() -> None:
    rule = read_rule("  0 14 * * MON-FRI ", BERLIN)

    assert rule.text == "0 14 * * MON-FRI"
    assert rule.following(NOON) == datetime(2026, 1, 1, 13, tzinfo=UTC)


def test_a_wrong_cron_expression_is_refused() -> None:
    with pytest.raises(InvalidValue, match="minute '61'"):
        read_rule("61 * * * *", UTC)


def test_an_interval_is_due_one_interval_later() -> None:
    assert Interval(MINUTE).following(NOON) == NOON + MINUTE


def test_an_interval_past_the_end_of_time_has_no_next_time() -> None:
    assert Interval(MINUTE).following(datetime.max.replace(tzinfo=UTC)) is None


@pytest.mark.parametrize("rule", ["every 60s", "* * * * *"])
@pytest.mark.parametrize(
    "minutes, most, expected",
    [
        (0, 5, []),
        (-3, 5, []),
        (1, 5, [0]),
        (3, 5, [0, 1, 2]),
        (3, 2, [1, 2]),
        (2.5, 1, [2]),
        (1_000_000, 2, [999_998, 999_999]),
        (3, 0, []),
        (3, -1, []),
    ],
)
def test_the_latest_times_are_the_last_ones_before_the_end(
    rule: str, minutes: float, most: int, expected: list[int]
) -> None:
    latest = read_rule(rule, BERLIN).latest(NOON, NOON + minutes * MINUTE, most)

    assert latest == [NOON + number * MINUTE for number in expected]


def test_the_latest_times_of_an_interval_are_counted_from_the_first() -> None:
    assert Interval(timedelta(minutes=7)).latest(NOON + timedelta(seconds=3), NOON + timedelta(hours=1), 2) == [
        NOON + timedelta(minutes=49, seconds=3),
        NOON + timedelta(minutes=56, seconds=3),
    ]


def test_the_first_time_counts_although_the_rule_no_longer_says_so() -> None:
    first = NOON + timedelta(seconds=7)

    assert read_rule("* * * * *", UTC).latest(first, NOON + 2 * MINUTE, 9) == [first, NOON + MINUTE]


@pytest.mark.parametrize("text", ["* * * * * *", "*/5 * * * *", "* * * 1 1 *", "0 2 * * *", "0 0 29 2 *"])
def test_the_latest_times_of_many_years_are_found_with_few_looks(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = read_rule(text, BERLIN)
    looks = 0
    look = CronRule.following

    def counted(self: CronRule, moment: datetime) -> datetime | None:
        nonlocal looks
        looks += 1
        return look(self, moment)

    monkeypatch.setattr(CronRule, "following", counted)
    latest = rule.latest(NOON - 6000 * WEEK, NOON, 100)

    assert latest[-1] < NOON
    assert latest[-1] == max(latest)
    assert looks < 1_000


@pytest.mark.parametrize(
    "one, other",
    [
        ("@daily", "0 0 * * *"),
        ("0 0 * * SUN", "0  0 * * 7"),
        ("every 300s", timedelta(minutes=5)),
        (300, 300.0),
    ],
)
def test_two_rules_that_mean_the_same_are_the_same(one: str | float, other: str | timedelta) -> None:
    assert same_rule(read_rule(one, BERLIN), read_rule(other, BERLIN))


def test_the_name_of_a_zone_tells_whether_two_rules_are_the_same() -> None:
    rule = read_rule("0 0 * * *", BERLIN)

    assert same_rule(rule, read_rule("0 0 * * *", ZoneInfo.no_cache("Europe/Berlin")))
    assert same_rule(read_rule("0 0 * * *", UTC), read_rule("0 0 * * *", ZoneInfo("UTC")))
    assert not same_rule(rule, read_rule("0 0 * * *", ZoneInfo("Europe/Paris")))
    assert not same_rule(rule, read_rule("0 0 * * *", timezone(timedelta(hours=1))))


@pytest.mark.parametrize("other", ["1 0 * * *", "0 0/1 * * *", "every 86400s", 60])
def test_rules_that_mean_something_else_are_not_the_same(other: str | float) -> None:
    rule = read_rule("0 0-23 * * *", BERLIN)

    assert not same_rule(rule, read_rule(other, BERLIN))
    assert not same_rule(read_rule(other, BERLIN), rule)


def test_an_interval_knows_no_zone() -> None:
    assert same_rule(read_rule(60, BERLIN), read_rule(60, UTC))
