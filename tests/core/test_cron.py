import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from windlass.core.cron import NICKNAMES, parse_cron
from windlass.core.errors import InvalidValue

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")


def due(text: str, after: str, zone: tzinfo = UTC, count: int = 1) -> list[str]:
    """The next due times in the zone's own time, with its offset where that is not zero."""
    cron = parse_cron(text)
    moment = datetime.fromisoformat(after)
    found: list[str] = []
    for _ in range(count):
        following = cron.next_after(moment if moment.tzinfo else moment.replace(tzinfo=zone), zone)
        assert following is not None
        found.append(following.astimezone(zone).isoformat(" ").removesuffix("+00:00"))
        moment = following
    return found


@pytest.mark.parametrize(
    "text, expected",
    [
        ("* * * * *", "2026-01-01 00:01:00"),
        ("*/15 * * * *", "2026-01-01 00:15:00"),
        ("7/15 * * * *", "2026-01-01 00:07:00"),
        ("50-59/3 * * * *", "2026-01-01 00:50:00"),
        ("05 04 * * *", "2026-01-01 04:05:00"),
        ("30 9 1,15 * *", "2026-01-01 09:30:00"),
        ("0 0 * * *", "2026-01-02 00:00:00"),
        ("0 12 * feb *", "2026-02-01 12:00:00"),
        ("0 12 * Mar-MAY *", "2026-03-01 12:00:00"),
        ("0 12 * * mon", "2026-01-05 12:00:00"),
        ("0 12 * * 0", "2026-01-04 12:00:00"),
        ("0 12 * * 7", "2026-01-04 12:00:00"),
        ("0 12 * * FRI-SUN", "2026-01-02 12:00:00"),
        ("0 12 * * 6-7", "2026-01-03 12:00:00"),
        ("0 12 L * *", "2026-01-31 12:00:00"),
        ("0 12 L 2 *", "2026-02-28 12:00:00"),
        ("0 12 L,20 * *", "2026-01-20 12:00:00"),
        ("0 12 * * 5L", "2026-01-30 12:00:00"),
        ("0 12 * * FRIL", "2026-01-30 12:00:00"),
        ("0 12 * * 5#2", "2026-01-09 12:00:00"),
        ("0 12 * * mon#1", "2026-01-05 12:00:00"),
        ("0 12 * * 7#5", "2026-03-29 12:00:00"),
        ("0 12 * * MON#5,TUE#4", "2026-01-27 12:00:00"),
        ("* * * * * *", "2026-01-01 00:00:01"),
        ("*/10 * * * * *", "2026-01-01 00:00:10"),
        ("30 0 12 * * *", "2026-01-01 12:00:30"),
        ("15,45 59 23 31 12 *", "2026-12-31 23:59:15"),
        ("  0\t12  *   * *  \n", "2026-01-01 12:00:00"),
    ],
)
def test_an_expression_is_due_at_the_first_time_that_it_allows(text: str, expected: str) -> None:
    assert due(text, "2026-01-01") == [expected]


@pytest.mark.parametrize("text, meant", NICKNAMES.items())
def test_a_nickname_means_its_expression_in_any_case(text: str, meant: str) -> None:
    assert parse_cron(text) == parse_cron(meant)
    assert parse_cron(text.upper()) == parse_cron(meant)
    assert parse_cron(text).text == text


def test_two_expressions_that_mean_the_same_are_equal() -> None:
    assert parse_cron("0 0 * * 7") == parse_cron(" 00 0 * * SUN ")
    assert parse_cron("0 0 * * 7") != parse_cron("0 0 * * 1")
    # the one goes by elapsed time, the other by what clocks show
    assert parse_cron("0 0/1 * * *") != parse_cron("0 0-23 * * *")


def test_a_day_that_both_fields_restrict_matches_either() -> None:
    assert due("0 0 13 * FRI", "2026-01-01", count=4) == [
        "2026-01-02 00:00:00",
        "2026-01-09 00:00:00",
        "2026-01-13 00:00:00",
        "2026-01-16 00:00:00",
    ]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("0 0 */2 * MON", ["2026-01-05 00:00:00", "2026-01-19 00:00:00", "2026-02-09 00:00:00"]),
        ("0 0 13 * */5", ["2026-02-13 00:00:00", "2026-03-13 00:00:00", "2026-09-13 00:00:00"]),
    ],
)
def test_a_field_that_begins_with_a_star_does_not_restrict_the_day(text: str, expected: list[str]) -> None:
    assert due(text, "2026-01-01", count=3) == expected


@pytest.mark.parametrize(
    "text, after, expected",
    [
        ("0 0 29 2 *", "2096-03-01", "2104-02-29 00:00:00"),
        ("0 0 * 2 MON#5", "2072-03-01", "2112-02-29 00:00:00"),
        ("0 0 29 2 */7", "2088-03-01", "2128-02-29 00:00:00"),
        ("0 0 31 * *", "2026-01-31", "2026-03-31 00:00:00"),
        ("59 59 23 31 12 *", "2026-12-31 23:59:59", "2027-12-31 23:59:59"),
    ],
)
def test_rare_days_are_found(text: str, after: str, expected: str) -> None:
    assert due(text, after) == [expected]


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 4,6 *", "0 0 30,31 FEB *", "0 0 30 2 */2", "* * 0-31/30 9 *"])
def test_an_expression_that_never_comes_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_cron(text)


def test_a_day_that_never_comes_is_harmless_beside_one_of_the_week() -> None:
    assert due("0 0 30 2 MON", "2026-01-01") == ["2026-02-02 00:00:00"]


def test_the_next_time_is_later_and_has_no_microseconds() -> None:
    cron = parse_cron("0 12 * * *")
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)

    assert cron.next_after(noon - timedelta(microseconds=1), UTC) == noon
    assert cron.next_after(noon, UTC) == noon + timedelta(days=1)
    assert cron.next_after(noon + timedelta(microseconds=1), UTC) == noon + timedelta(days=1)


def test_the_next_time_is_in_utc_whatever_the_zones() -> None:
    found = parse_cron("0 12 * * *").next_after(datetime(2026, 7, 1, tzinfo=NEW_YORK), BERLIN)

    assert found == datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert found is not None
    assert found.tzinfo is UTC


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidValue, match="no time zone"):
        parse_cron("0 12 * * *").next_after(datetime(2026, 1, 1), UTC)  # noqa: DTZ001 - what the test is about


@pytest.mark.parametrize("zone", [UTC, BERLIN, NEW_YORK, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))])
@pytest.mark.parametrize("text", ["* * * * * *", "0 0 * * *", "0 0 29 2 *", "*/5 * 29 2 *"])
def test_past_the_last_year_there_is_no_next_time(text: str, zone: tzinfo) -> None:
    end = datetime.max.replace(tzinfo=UTC)

    assert parse_cron(text).next_after(end, zone) is None


def test_the_last_second_there_is_can_be_due() -> None:
    assert due("* * * * * *", "9999-12-31 23:59:58") == ["9999-12-31 23:59:59"]


@pytest.mark.parametrize(
    "text, expected",
    [
        # 02:00 to 03:00 is skipped on the 29th
        ("30 2 * * *", ["2026-03-28 02:30:00+01:00", "2026-03-29 03:00:00+02:00", "2026-03-30 02:30:00+02:00"]),
        ("0 30 2 * * *", ["2026-03-28 02:30:00+01:00", "2026-03-29 03:00:00+02:00", "2026-03-30 02:30:00+02:00"]),
        ("0,30 2 29 * *", ["2026-03-29 03:00:00+02:00", "2026-04-29 02:00:00+02:00", "2026-04-29 02:30:00+02:00"]),
        ("0 2,3 29 * *", ["2026-03-29 03:00:00+02:00", "2026-04-29 02:00:00+02:00", "2026-04-29 03:00:00+02:00"]),
        ("* 59 2 29 * *", ["2026-03-29 03:00:00+02:00", "2026-04-29 02:59:00+02:00", "2026-04-29 02:59:01+02:00"]),
        ("*/30 2 29 * *", ["2026-04-29 02:00:00+02:00", "2026-04-29 02:30:00+02:00", "2026-05-29 02:00:00+02:00"]),
        ("30 */1 29 3 *", ["2026-03-29 00:30:00+01:00", "2026-03-29 01:30:00+01:00", "2026-03-29 03:30:00+02:00"]),
    ],
)
def test_what_the_clocks_skip_is_due_at_the_end_of_the_gap_if_it_is_fixed(text: str, expected: list[str]) -> None:
    assert due(text, "2026-03-28", BERLIN, 3) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        # 02:00 to 03:00 comes twice on the 25th
        ("30 2 * * *", ["2026-10-25 02:30:00+02:00", "2026-10-26 02:30:00+01:00", "2026-10-27 02:30:00+01:00"]),
        ("0 30 2 * * *", ["2026-10-25 02:30:00+02:00", "2026-10-26 02:30:00+01:00", "2026-10-27 02:30:00+01:00"]),
        ("0 2-3 * * *", ["2026-10-25 02:00:00+02:00", "2026-10-25 03:00:00+01:00", "2026-10-26 02:00:00+01:00"]),
        ("*/30 2 * * *", ["2026-10-25 02:00:00+02:00", "2026-10-25 02:30:00+02:00", "2026-10-25 02:00:00+01:00"]),
        ("0 2/1 * * *", ["2026-10-25 02:00:00+02:00", "2026-10-25 02:00:00+01:00", "2026-10-25 03:00:00+01:00"]),
        ("@hourly", ["2026-10-25 01:00:00+02:00", "2026-10-25 02:00:00+02:00", "2026-10-25 02:00:00+01:00"]),
    ],
)
def test_what_the_clocks_show_twice_is_due_once_if_it_is_fixed(text: str, expected: list[str]) -> None:
    assert due(text, "2026-10-25 00:30", BERLIN, 3) == expected


def test_from_within_the_second_time_of_an_hour_a_fixed_time_of_it_is_past() -> None:
    second_time = "2026-10-25T02:15:00+01:00"

    assert due("30 2 * * *", second_time, BERLIN) == ["2026-10-26 02:30:00+01:00"]
    assert due("0 3 * * *", second_time, BERLIN) == ["2026-10-25 03:00:00+01:00"]
    assert due("30 * * * *", second_time, BERLIN) == ["2026-10-25 02:30:00+01:00"]


def test_the_second_time_of_an_hour_is_not_missed_for_that_of_the_next_year() -> None:
    first_time = "2026-10-25T02:45:00+02:00"

    assert due("*/30 2 25 10 *", first_time, BERLIN) == ["2026-10-25 02:00:00+01:00"]


def test_a_time_that_is_far_ahead_has_the_offset_of_its_own_day() -> None:
    assert due("*/30 3 29 3 *", "2026-01-01", BERLIN) == ["2026-03-29 03:00:00+02:00"]
    assert due("*/30 2 25 10 *", "2026-01-01", BERLIN, 3) == [
        "2026-10-25 02:00:00+02:00",
        "2026-10-25 02:30:00+02:00",
        "2026-10-25 02:00:00+01:00",
    ]


@pytest.mark.parametrize(
    "zone, text, after, expected",
    [
        ("America/Santiago", "0 0 * * *", "2025-09-06 12:00", "2025-09-07 01:00:00-03:00"),
        ("America/Havana", "30 0 * * *", "2025-03-08 12:00", "2025-03-09 01:00:00-04:00"),
        ("Asia/Beirut", "0 0 * * *", "2025-03-29 12:00", "2025-03-30 01:00:00+03:00"),
        ("Australia/Lord_Howe", "15 2 * * *", "2025-10-04 12:00", "2025-10-05 02:30:00+11:00"),
        ("Australia/Lord_Howe", "45 1 * * *", "2025-04-05 12:00", "2025-04-06 01:45:00+11:00"),
        ("Pacific/Apia", "0 9 30 12 *", "2011-12-01", "2011-12-31 00:00:00+14:00"),
        ("Pacific/Apia", "0 9 * * *", "2011-12-29 12:00", "2011-12-31 00:00:00+14:00"),
        ("Pacific/Apia", "*/5 9 * * *", "2011-12-29 12:00", "2011-12-31 09:00:00+14:00"),
        ("Europe/Dublin", "30 1 * * *", "2025-03-29 12:00", "2025-03-30 02:00:00+01:00"),
        ("Africa/Casablanca", "30 2 * * *", "2025-04-05 12:00", "2025-04-06 03:00:00+01:00"),
        ("Africa/Casablanca", "*/5 * 1 1 *", "2025-01-02", "2026-01-01 00:00:00+01:00"),
    ],
)
def test_zones_with_other_changes_follow_the_same_rule(zone: str, text: str, after: str, expected: str) -> None:
    assert due(text, after, ZoneInfo(zone)) == [expected]


@pytest.mark.parametrize(
    "text, problem",
    [
        ("60 * * * *", "minute '60' is out of range: use 0 to 59"),
        ("* 24 * * *", "hour '24' is out of range: use 0 to 23"),
        ("* * 0 * *", "day of month '0' is out of range: use 1 to 31"),
        ("* * 32 * *", "day of month '32'"),
        ("* * * 13 *", "month '13' is out of range: use 1 to 12, or JAN to DEC"),
        ("* * * * 8", "day of week '8' is out of range: use 0 to 7, or SUN to SAT"),
        ("60 * * * * *", "second '60'"),
        ("1-60 * * * *", "minute '1-60' is out of range"),
        ("*/0 * * * *", "minute '*/0' has a step that is not 1 to 59"),
        ("*/60 * * * *", "for other distances use a timedelta"),
        ("* */24 * * *", "has a step that is not 1 to 23"),
        ("*/x * * * *", "minute '*/x' is not known here"),
        ("*/ * * * *", "minute '*/' is not known here"),
        ("1,,2 * * * *", "minute '' is empty"),
        (", * * * *", "minute '' is empty"),
        ("-1 * * * *", "minute '-1' is not known here"),
        ("1- * * * *", "minute '1-' is not known here"),
        ("1-2-3 * * * *", "minute '1-2-3' is not known here"),
        ("*-5 * * * *", "minute '*-5' is not known here"),
        ("** * * * *", "minute '**' is not known here"),
        ("1.5 * * * *", "minute '1.5' is not known here"),
        ("+5 * * * *", "minute '+5' is not known here"),
        ("1_0 * * * *", "minute '1_0' is not known here"),
        ("0 22-2 * * *", "hour '22-2' goes backwards: write 22-23,0-2"),
        ("0 0 * nov-feb *", "month 'nov-feb' goes backwards: write 11-12,1-2"),
        ("0 0 * * FRI-MON", "day of week 'FRI-MON' goes backwards: write 5-7,0-1"),
        ("0 22-0 * * *", "write 22-23,0"),
        ("0 0 * MON *", "month 'MON' is not known here: use 1 to 12, or JAN to DEC"),
        ("0 0 * * MONDAY", "day of week 'MONDAY' is not known here"),
        ("JAN * * * *", "minute 'JAN' is not known here"),
        ("0 0 ? * *", "'?' is not known here: use * for any"),
        ("0 0 15W * *", "'15W' (the working day nearest to it) is not known here"),
        ("0 0 LW * *", "'LW' (the working day"),
        ("H * * * *", "'H' (a number by hash) is not known here"),
        ("H(0-5)/2 * * * *", "(a number by hash)"),
        ("R * * * *", "'R' (a number by chance) is not known here"),
        ("0 0 L-3 * *", "'L-3' (days before the last) is not known here"),
        ("0 0 1-L * *", "L is the last day of a month"),
        ("0 0 L/2 * *", "L is the last day of a month"),
        ("L 0 * * *", "minute 'L' is not known here"),
        ("0 0 * * L", "day of week 'L' is not known here"),
        ("0 0 * * L5", "day of week 'L5' is not known here"),
        ("0 0 * * 8L", "day of week '8L' is out of range"),
        ("0 0 * * 5#0", "day of week '5#0' is in no month: use #1 to #5"),
        ("0 0 * * 5#6", "day of week '5#6' is in no month"),
        ("0 0 * * 5#", "day of week '5#' is not known here"),
        ("0 0 * * 5#x", "day of week '5#x' is not known here"),
        ("0 0 * * 5#1-2", "day of week '5#1-2' is not known here"),
        ("0 0 5#2 * *", "day of month '5#2' is not known here"),
        ("CRON_TZ=UTC 0 0 * * *", "give the zone as timezone="),
        ("0 0 * * * 2026 *", "has 7 fields, and years are not known here"),
        (
            "0 0 9 ? * 2-6",
            "day of month '?' is not known here: use * for any. In an expression from Quartz also change",
        ),
        ("0 0 9 * * ?", "here 1 is Monday, and names such as MON-FRI mean the same in both"),
        ("0 0 9 ? * 2-6 *", "In an expression from Quartz also change the day of the week, where 1 is Sunday"),
        ("0 0 * *", "has 4 fields: write second, minute, hour, day of month, month, day of week"),
        ("* * * * * * * *", "has 8 fields"),
        ("", "has 0 fields"),
        (" \t\n", "has 0 fields"),
        ("0 0 * *\n*", "has the character '\\n' (U+000A)"),
        ("٣ * * * *", "has the character '٣' (U+0663)"),
        ("0\N{NO-BREAK SPACE}0 * * *", "(U+00A0)"),
        ("0 0 * * \N{LATIN SMALL LETTER LONG S}un", "(U+017F)"),
        ("\ud800 * * * *", "(U+D800)"),
        ("\0 * * * *", "(U+0000)"),
        ("@reboot", "enqueue the job where your program starts"),
        ("@every 5m", "an interval is no cron expression: give a timedelta, or write it as in 'every 300s'"),
        ("@dayly", "did you mean @daily?"),
        ("@", "use one of @yearly, @annually"),
        ("@daily *", "did you mean @daily?"),
        ("0 0 30 2 *", "never comes: no year has such a day"),
        ("0 0 31 4,6,9,11 *", "never comes"),
    ],
)
def test_a_refusal_names_the_part_and_what_is_allowed(text: str, problem: str) -> None:
    with pytest.raises(InvalidValue, match=re.escape(problem)) as refused:
        parse_cron(text)

    assert str(refused.value).startswith("cron expression ")


@pytest.mark.parametrize("text", [None, 5, b"* * * * *", ["*"] * 5, True])
def test_an_expression_is_a_string(text: object) -> None:
    nonsense: Any = text

    with pytest.raises(InvalidValue, match="a cron expression is a string, not"):
        parse_cron(nonsense)


@pytest.mark.parametrize("text", ["9" * 100 + " * * * *", "*/" + "9" * 100 + " * * * *", "0 0 * * 1#" + "9" * 100])
def test_a_huge_number_is_refused_like_any_other(text: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        parse_cron(text)

    assert len(str(refused.value)) < 250


def test_an_expression_has_at_most_two_hundred_characters() -> None:
    fits = ",".join(["1"] * 96) + " * * * *"

    assert len(fits) == 199
    parse_cron(fits)
    for text in (fits + "  ", "*" * 1_000_000):
        with pytest.raises(InvalidValue, match="at most 200 are allowed") as refused:
            parse_cron(text)
        assert len(str(refused.value)) < 250
