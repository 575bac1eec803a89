"""Any cron expression, beside a model and beside two other libraries where their rules are ours."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from croniter import croniter  # type: ignore[import-untyped]
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.properties.cron_model import (
    Change,
    Expression,
    Part,
    any_day,
    any_weekday,
    anything,
    changing_zones,
    days,
    expressions,
    joined,
    numbers,
    one,
    weekdays,
)
from windlass.core.cron import Cron, parse_cron
from windlass.core.errors import InvalidValue
from windlass.core.rule import Interval, Rule, read_rule, same_rule

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
LAST_YEAR = datetime(9999, 1, 1, tzinfo=UTC)
moments = st.timedeltas(timedelta(0), timedelta(days=365 * 18)).map(
    lambda since: datetime(2020, 1, 1, tzinfo=UTC) + since
)
last_moments = st.timedeltas(timedelta(0), timedelta(days=365) - timedelta.resolution).map(
    lambda since: LAST_YEAR + since
)
zones = st.sampled_from(sorted(available_timezones())).map(ZoneInfo)
intervals = st.timedeltas(timedelta(seconds=1), timedelta(days=36_500))


def parsed(expression: Expression) -> Cron:
    """Return the expression as we read it; leave out those that no year has."""
    try:
        return parse_cron(expression.text)
    except InvalidValue as error:
        assume("never comes" not in str(error))
        raise


def refusal(text: str) -> str | None:
    try:
        parse_cron(text)
    except InvalidValue as error:
        return str(error)
    return None


@given(expression=expressions, after=moments)
@settings(deadline=None)
def test_the_next_time_is_allowed_and_nothing_before_it_is(expression: Expression, after: datetime) -> None:
    due = parsed(expression).next_after(after, UTC)

    assert due is not None
    assert due > after
    assert (due.tzinfo, due.microsecond) == (UTC, 0)
    assert expression.allows(due)
    begin = after.replace(microsecond=0) + SECOND
    seconds = (begin + n * SECOND for n in range(min(due - begin, 10 * MINUTE) // SECOND))
    assert not any(expression.allows(second) for second in seconds)
    between = (due - n * DAY for n in range(1, min((due.date() - after.date()).days, 800)))
    assert not any(day.month in expression.month.numbers and expression.allows_day(day) for day in between)


@given(expression=expressions, after=moments, zone=zones)
@settings(deadline=None)
def test_the_next_time_is_the_same_from_every_moment_before_it(
    expression: Expression, after: datetime, zone: ZoneInfo
) -> None:
    cron = parsed(expression)

    due = cron.next_after(after, zone)

    assert due is not None
    assert due > after
    assert (due.tzinfo, due.microsecond) == (UTC, 0)
    assert cron.next_after(due - SECOND, zone) == due
    assert cron.next_after(after + (due - after) / 2, zone) == due


@given(expression=expressions, zone=zones, after=last_moments)
@settings(deadline=None)
def test_the_end_of_time_is_no_error(expression: Expression, zone: ZoneInfo, after: datetime) -> None:
    due = parsed(expression).next_after(after, zone)

    assert due is None or due > after


@given(day=days, month=numbers(1, 12), weekday=weekdays)
@settings(deadline=None)
def test_an_expression_is_refused_if_and_only_if_no_year_has_such_a_day(day: Part, month: Part, weekday: Part) -> None:
    expression = Expression(one(0), one(0), day=day, month=month, weekday=weekday)
    # within 28 years every year that there can be comes once: leap or not, and beginning on any day of the week
    calendar = (datetime(2001, 1, 1, tzinfo=UTC) + n * DAY for n in range(28 * 366))

    comes = any(each.month in month.numbers and expression.allows_day(each) for each in calendar)

    refused = refusal(expression.text)
    assert (refused is None) == comes
    assert refused is None or "never comes" in refused


@given(text=st.text(max_size=220) | st.text(st.sampled_from("0123456789*/-,#?LWHR@ MONFEBjan\t"), max_size=60))
@settings(deadline=None)
def test_any_text_is_read_or_refused_with_a_short_message(text: str) -> None:
    refused = refusal(text)

    assert refused is None or len(refused) < 400


@given(expression=expressions, zone=zones)
@settings(deadline=None)
def test_the_text_of_a_cron_rule_reads_back_as_the_same_rule(expression: Expression, zone: ZoneInfo) -> None:
    parsed(expression)

    rule = read_rule(f"  {expression.text}\n", zone)

    assert rule.text == expression.text
    assert read_rule(rule.text, zone) == rule
    assert same_rule(read_rule(rule.text, zone), rule)


@given(every=intervals)
@settings(deadline=None)
def test_the_text_of_an_interval_reads_back_as_the_same_rule(every: timedelta) -> None:
    rule = Interval(every)

    assert read_rule(rule.text, UTC) == rule
    assert same_rule(read_rule(rule.text, UTC), rule)


rules = st.sampled_from(["* * * * * *", "*/5 * * * *", "*/7 1-3 * * *", "0 2 * * *", "30 1 * * MON", "every 90s"])


@given(
    rule=rules,
    zone=zones,
    first=moments,
    length=st.timedeltas(timedelta(0), timedelta(minutes=20)),
    most=st.integers(0, 99),
)
@settings(deadline=None)
def test_the_latest_times_are_the_last_of_all_that_follow(
    rule: str, zone: ZoneInfo, first: datetime, length: timedelta, most: int
) -> None:
    read = read_rule(rule, zone)
    until = first + length * (1 if rule.startswith("* *") else 700)
    every_one = following(read, first, until)

    latest = read.latest(first, until, most)

    assert latest == every_one[max(0, len(every_one) - most) :]


def following(rule: Rule, first: datetime, until: datetime) -> list[datetime]:
    found: list[datetime] = []
    due: datetime | None = first
    while due is not None and due < until:
        found.append(due)
        due = rule.following(due)
    return found


def items(least: int, most: int) -> st.SearchStrategy[Part]:
    """Numbers and ranges without a step, which all libraries read alike."""
    pair = st.integers(least, most - 1).flatmap(lambda low: st.tuples(st.just(low), st.integers(low + 1, most)))
    ranges = pair.map(lambda ends: Part(f"{ends[0]}-{ends[1]}", frozenset(range(ends[0], ends[1] + 1))))
    return st.lists(st.integers(least, most).map(one) | ranges, min_size=1, max_size=3).map(joined)


def plain(least: int, most: int) -> st.SearchStrategy[Part]:
    steps = st.integers(2, most // 2).map(lambda step: Part(f"*/{step}", frozenset(range(least, most + 1, step))))
    return items(least, most) | steps | st.just(anything(least, most))


def in_month(day: int, which: int) -> Part:
    return Part(f"{day}#{which}" if which else f"{day}L", frozenset(), in_month=frozenset([(day, which)]))


last_day = st.just(Part("L", frozenset(), last=True))
five_fields = st.builds(
    Expression,
    minute=plain(0, 59),
    hour=plain(0, 23),
    day=plain(1, 31) | last_day,
    month=plain(1, 12),
    weekday=plain(0, 6) | st.builds(in_month, st.integers(0, 6), st.integers(0, 5)),
)
all_changes = st.deferred(
    lambda: st.sampled_from([(name, change) for name, found in changing_zones().items() for change in found])
)


@given(expression=five_fields, at=all_changes, since=st.timedeltas(-25 * HOUR, 25 * HOUR))
@settings(deadline=None)
def test_cronsim_agrees_on_five_fields_where_clocks_change(
    expression: Expression, at: tuple[str, Change], since: timedelta
) -> None:
    zone, change = ZoneInfo(at[0]), at[1]
    # it counts on by whole hours there, and so misses times after a change that is not one of whole hours
    assume(expression.fixed or (change.jump % HOUR == timedelta(0) and change.affected.minute == 0))
    # it gives midnight also where a day begins without one
    assume(expression.fixed or change.jump < timedelta(0) or change.affected.hour != 0)
    after = change.at + since
    # from the second time that an hour is shown, it goes back to the first
    told = (due.astimezone(UTC) for due in CronSim(expression.text, after.astimezone(zone)))

    assert parsed(expression).next_after(after, zone) == next(due for due in told if due > after)


def six_fields(day: st.SearchStrategy[Part], weekday: st.SearchStrategy[Part]) -> st.SearchStrategy[Expression]:
    return st.builds(
        Expression,
        second=plain(0, 59),
        minute=plain(0, 59),
        hour=plain(0, 23),
        day=day,
        month=plain(1, 12),
        weekday=weekday,
    )


@given(
    # a star with a step in one of the days restricts there, and here it does not
    expression=six_fields(plain(1, 31) | last_day, st.just(any_weekday))
    | six_fields(st.just(any_day), plain(0, 6) | st.builds(in_month, st.integers(0, 6), st.integers(1, 5)))
    | six_fields(items(1, 31), items(0, 6)),
    after=moments,
)
@settings(deadline=None)
def test_croniter_agrees_on_six_fields_in_utc(expression: Expression, after: datetime) -> None:
    cron = parsed(expression)

    told = croniter(expression.text, after, ret_type=datetime, second_at_beginning=True).get_next()

    assert cron.next_after(after, UTC) == told
