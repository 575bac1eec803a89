"""The page about rules, beside the code."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.docs.pages import rows, section
from windlass.core.cron import MAX_CRON, NICKNAMES, parse_cron
from windlass.core.cron_fields import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY
from windlass.core.duration import LONGEST
from windlass.core.errors import InvalidValue
from windlass.core.rule import SHORTEST

PAGE = "reference/cron.md"
BERLIN = ZoneInfo("Europe/Berlin")


def test_the_page_has_every_field_in_order_with_what_it_allows() -> None:
    told = [(name, numbers, names) for name, numbers, names, _ in rows(PAGE, "field")]

    assert told == [
        (field.name, f"{field.least}-{field.most}", f"{field.names[0]}-{field.names[-1]}" if field.names else "")
        for field in (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)
    ]


def test_the_page_has_every_nickname_and_its_meaning() -> None:
    assert dict(rows(PAGE, "name")) == NICKNAMES


@pytest.mark.parametrize("expression, told", rows(PAGE, "expression"))
def test_an_expression_is_due_when_the_page_says(expression: str, told: str) -> None:
    due = parse_cron(expression).next_after(datetime(2026, 1, 1, tzinfo=UTC), UTC)

    assert due == datetime.fromisoformat(told).replace(tzinfo=UTC)


@pytest.mark.parametrize("expression, spring, autumn", rows(PAGE, "in Berlin"))
def test_when_clocks_change_an_expression_is_due_as_the_page_says(expression: str, spring: str, autumn: str) -> None:
    assert due_on(expression, date(2026, 3, 29)) == spring
    assert due_on(expression, date(2026, 10, 25)) == autumn


def due_on(expression: str, day: date) -> str:
    cron = parse_cron(expression)
    midnight = datetime(day.year, day.month, day.day, tzinfo=BERLIN)
    found: list[str] = []
    due = cron.next_after(midnight - timedelta(seconds=1), BERLIN)
    while due is not None and due.astimezone(BERLIN).date() == day:
        found.append(due.astimezone(BERLIN).isoformat(timespec="minutes")[11:])
        due = cron.next_after(due, BERLIN)
    return ", ".join(found) or "none"


REFUSED = [
    line.split("|")[1].strip(" `") for line in section(PAGE, "What is refused").splitlines() if "| `" in line[:3]
]


def test_the_page_says_what_is_refused() -> None:
    assert len(REFUSED) > 5


@pytest.mark.parametrize("expression", REFUSED)
def test_what_the_page_says_is_refused_is(expression: str) -> None:
    with pytest.raises(InvalidValue):
        parse_cron(expression)


def test_the_page_has_the_limits_of_the_code() -> None:
    assert f"At most {MAX_CRON}\ncharacters" in section(PAGE, "Fields")
    assert f"to {LONGEST.days:,} days" in section(PAGE, "Intervals")
    assert timedelta(seconds=1) == SHORTEST
