"""A model of cron: it walks through time in small steps and looks at the clock at each of them.

Expressions are made together with what they allow, so that nothing here is read from text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import strategies as st

ZERO = timedelta(0)
MINUTE = timedelta(minutes=1)
FIRST, END = datetime(2020, 1, 1, tzinfo=UTC), datetime(2038, 1, 1, tzinfo=UTC)
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


@dataclass(frozen=True)
class Part:
    """One field: its text, and what that allows."""

    text: str
    numbers: frozenset[int]
    last: bool = False
    in_month: frozenset[tuple[int, int]] = frozenset()
    """A day of the week and which one in the month; 0 is the last."""

    def has_day(self, day: datetime) -> bool:
        return day.day in self.numbers or (self.last and (day + timedelta(1)).day == 1)

    def has_weekday(self, day: datetime) -> bool:
        weekday = day.isoweekday() % 7
        return (
            weekday in self.numbers
            or (weekday, (day.day + 6) // 7) in self.in_month
            or ((weekday, 0) in self.in_month and (day + timedelta(7)).month != day.month)
        )


def anything(least: int, most: int) -> Part:
    return Part("*", frozenset(range(least, most + 1)))


def one(number: int) -> Part:
    return Part(str(number), frozenset([number]))


def some(*numbers: int) -> Part:
    return Part(",".join(map(str, numbers)), frozenset(numbers))


def each(step: int, most: int) -> Part:
    return Part(f"*/{step}", frozenset(range(0, most + 1, step)))


@dataclass(frozen=True)
class Expression:
    """A cron expression and what it allows."""

    minute: Part
    hour: Part
    day: Part = field(default_factory=lambda: anything(1, 31))
    month: Part = field(default_factory=lambda: anything(1, 12))
    weekday: Part = field(default_factory=lambda: anything(0, 6))
    second: Part | None = None

    @property
    def text(self) -> str:
        parts = (self.minute, self.hour, self.day, self.month, self.weekday)
        return " ".join(part.text for part in ((self.second, *parts) if self.second else parts))

    @property
    def fixed(self) -> bool:
        return not set(self.minute.text + self.hour.text) & {"*", "/"}

    def allows(self, wall: datetime) -> bool:
        return (
            wall.minute in self.minute.numbers
            and wall.hour in self.hour.numbers
            and wall.second in (self.second.numbers if self.second else {0})
            and wall.month in self.month.numbers
            and self.allows_day(wall)
        )

    def allows_day(self, day: datetime) -> bool:
        by_day, by_weekday = self.day.has_day(day), self.weekday.has_weekday(day)
        if self.day.text.startswith("*") or self.weekday.text.startswith("*"):
            return by_day and by_weekday
        return by_day or by_weekday


class Shown(NamedTuple):
    """A step of the walk: what clocks show at an instant, and what they skipped since the step before."""

    at: datetime
    wall: datetime
    new: bool
    """Whether clocks show it for the first time."""
    skipped: tuple[datetime, ...]


def walk(zone: tzinfo, start: datetime, end: datetime, step: timedelta = MINUTE) -> list[Shown]:
    """Look at the clocks of `zone` from `start` to `end`; there must be no change of offset shortly before `start`."""
    shown: list[Shown] = []
    latest = (start - step).astimezone(zone).replace(tzinfo=None)
    for number in range((end - start) // step):
        at = start + number * step
        wall = at.astimezone(zone).replace(tzinfo=None)
        ahead = wall - latest
        skipped = tuple(latest + n * step for n in range(1, ahead // step)) if ahead > step else ()
        shown.append(Shown(at, wall, ahead > ZERO, skipped))
        latest = max(latest, wall)
    return shown


def due_times(expression: Expression, shown: list[Shown]) -> list[datetime]:
    """Return the times of the walk at which `expression` is due."""
    if not expression.fixed:
        return [step.at for step in shown if expression.allows(step.wall)]
    return [
        step.at
        for step in shown
        if step.new and (expression.allows(step.wall) or (step.skipped and any(map(expression.allows, step.skipped))))
    ]


class Change(NamedTuple):
    """A change of a zone's offset."""

    at: datetime
    before: timedelta
    after: timedelta

    @property
    def jump(self) -> timedelta:
        """How far clocks are set on; back when negative."""
        return self.after - self.before

    @property
    def affected(self) -> datetime:
        """The first of the wall times that are skipped or come twice."""
        return self.at.replace(tzinfo=None) + min(self.before, self.after)


def changes(zone: tzinfo, first: datetime, end: datetime, step: timedelta = timedelta(days=7)) -> Iterator[Change]:
    """Find every change of offset, but for two within one step that undo each other."""
    before = offset(first, zone)
    for number in range(1, (end - first) // step + 1):
        late = first + number * step
        if offset(late, zone) == before:
            continue
        early = late - step
        while late - early > MINUTE:
            middle = early + (late - early) // MINUTE // 2 * MINUTE
            early, late = (middle, late) if offset(middle, zone) == before else (early, middle)
        yield Change(late, before, offset(late, zone))
        before = offset(late, zone)


def offset(at: datetime, zone: tzinfo) -> timedelta:
    found = at.astimezone(zone).utcoffset()
    assert found is not None
    return found


@cache
def changing_zones() -> dict[str, tuple[Change, ...]]:
    """Return the changes of every zone from 2020 to 2037, once for zones that change alike."""
    alike: dict[tuple[Change, ...], str] = {}
    for name in sorted(available_timezones()):
        alike.setdefault(tuple(changes(ZoneInfo(name), FIRST, END)), name)
    return {name: found for found, name in alike.items() if found}


def numbers(least: int, most: int, names: list[str] | None = None) -> st.SearchStrategy[Part]:
    """Return fields of one to three items: numbers, names, ranges, steps, stars."""
    written = {number: [str(number), f"{number:02}"] for number in range(least, most + 1)}
    for number, name in enumerate(names or (), least):
        written[number] += [name, name.lower(), name.title()]

    @st.composite
    def item(draw: st.DrawFn) -> Part:
        start = draw(st.integers(least, most))
        end = draw(st.integers(start, most))
        step = draw(st.integers(1, max(1, most)))
        first, last = draw(st.sampled_from(written[start])), draw(st.sampled_from(written[end]))
        match draw(st.sampled_from(["one", "one", "range", "*", "*/", "-/", "/"])):
            case "one":
                return Part(first, frozenset([start]))
            case "range":
                return Part(f"{first}-{last}", frozenset(range(start, end + 1)))
            case "*":
                return Part("*", frozenset(range(least, most + 1)))
            case "*/":
                return Part(f"*/{step}", frozenset(range(least, most + 1, step)))
            case "-/":
                return Part(f"{first}-{last}/{step}", frozenset(range(start, end + 1, step)))
            case _:
                return Part(f"{first}/{step}", frozenset(range(start, most + 1, step)))

    return st.lists(item(), min_size=1, max_size=3).map(joined)


def joined(parts: list[Part]) -> Part:
    """Return one field with the items of several."""
    return Part(
        ",".join(part.text for part in parts),
        frozenset(number for part in parts for number in part.numbers),
        any(part.last for part in parts),
        frozenset(day for part in parts for day in part.in_month),
    )


def _day_items() -> st.SearchStrategy[Part]:
    return st.sampled_from([Part("L", frozenset(), last=True), Part("l", frozenset(), last=True)])


@st.composite
def _weekday_items(draw: st.DrawFn) -> Part:
    number = draw(st.integers(0, 7))
    name = draw(st.sampled_from([str(number), WEEKDAYS[number % 7], WEEKDAYS[number % 7].lower()]))
    which = draw(st.integers(0, 5))
    return Part(f"{name}#{which}" if which else f"{name}L", frozenset(), in_month=frozenset([(number % 7, which)]))


def _sunday_is_zero(part: Part) -> Part:
    return Part(part.text, frozenset(number % 7 for number in part.numbers), part.last, part.in_month)


any_day = anything(1, 31)
any_weekday = anything(0, 6)
days = st.just(any_day) | numbers(1, 31) | st.lists(numbers(1, 31) | _day_items(), min_size=1, max_size=2).map(joined)
weekdays = (
    st.just(any_weekday)
    | numbers(0, 7, WEEKDAYS).map(_sunday_is_zero)
    | st.lists(numbers(0, 7, WEEKDAYS).map(_sunday_is_zero) | _weekday_items(), min_size=1, max_size=2).map(joined)
)
expressions = st.builds(
    Expression,
    minute=numbers(0, 59),
    hour=numbers(0, 23),
    day=days,
    month=st.just(anything(1, 12)) | numbers(1, 12, MONTHS),
    weekday=weekdays,
    second=st.none() | numbers(0, 59),
)
