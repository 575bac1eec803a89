"""The fields of a cron expression: text to the numbers that it allows."""

import re
from dataclasses import dataclass
from typing import Final, NoReturn

from windlass.core.errors import InvalidValue
from windlass.core.names import shortened

LAST: Final = 0
"""In place of which one in the month: the last one."""
_SUNDAY_TOO: Final = 7
_MOST_IN_MONTH: Final = 5


@dataclass(frozen=True, slots=True)
class Field:
    """A place in a cron expression: what it is called, and what it allows."""

    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()
    """The names of its numbers, from the least on."""

    def allowed(self) -> str:
        """Return what a user may write, for an error."""
        numbers = f"use {self.least} to {self.most}"
        return f"{numbers}, or {self.names[0]} to {self.names[-1]}" if self.names else numbers


SECOND: Final = Field("second", 0, 59)
MINUTE: Final = Field("minute", 0, 59)
HOUR: Final = Field("hour", 0, 23)
DAY: Final = Field("day of month", 1, 31)
MONTH: Final = Field(
    "month", 1, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
)
WEEKDAY: Final = Field("day of week", 0, 7, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))

_ITEM: Final = re.compile(r"(\*|[0-9A-Z]+)(?:(?<!\*)-([0-9A-Z]+))?(?:/([0-9A-Z]+))?")
_IN_MONTH: Final = re.compile(r"([0-9A-KM-Z]+)(?:L|#([0-9]+))")

FROM_QUARTZ: Final = (
    "In an expression from Quartz also change the day of the week, where 1 is Sunday: here 1 is Monday, and names such "
    "as MON-FRI mean the same in both"
)

# What other tools know and this one does not, and what to write instead.
_FOREIGN: Final = (
    (re.compile(r".*\?.*"), f"is not known here: use * for any. {FROM_QUARTZ}"),
    (re.compile(r"([0-9]+|L)?W"), "(the working day nearest to it) is not known here: use days of the week, as in 1-5"),
    (re.compile(r"H(\(.*\))?(/.*)?"), "(a number by hash) is not known here: choose a number"),
    (re.compile(r"R(\(.*\))?(/.*)?"), "(a number by chance) is not known here: choose a number"),
    (re.compile(r"L-.*"), "(days before the last) is not known here: L alone is the last day"),
    (re.compile(r"(CRON_)?TZ=.*"), "is no part of an expression here: give the zone as timezone="),
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """What one field of an expression allows."""

    numbers: tuple[int, ...]
    """In order; Sunday is 0."""
    last: bool
    """Whether the last day of the month is among them."""
    in_month: frozenset[tuple[int, int]]
    """Days of the week and which one in the month, `LAST` or from 1: the second Friday is (5, 2)."""
    starred: bool
    """Whether it begins with `*`: such a day does not restrict the other one."""
    repeats: bool
    """Whether it has a `*` or a step."""


def read_field(expression: str, field: Field, text: str) -> Allowed:
    """Return what `text` allows in its place in `expression`; raise `InvalidValue` with the part that is wrong."""
    reader = _Reader(expression, field)
    for item in text.split(","):
        reader.read(item)
    return Allowed(
        numbers=tuple(sorted(reader.numbers)),
        last=reader.last,
        in_month=frozenset(reader.in_month),
        starred=text.startswith("*"),
        repeats="*" in text or "/" in text,
    )


class _Reader:
    """Gathers what the items of one field allow."""

    def __init__(self, expression: str, field: Field) -> None:
        self._expression = expression
        self._field = field
        self._item = ""
        self.numbers: set[int] = set()
        self.last = False
        self.in_month: set[tuple[int, int]] = set()

    def read(self, item: str) -> None:
        self._item = item
        wanted = item.upper()
        if self._field is DAY and wanted == "L":
            self.last = True
        elif self._field is WEEKDAY and (shape := _IN_MONTH.fullmatch(wanted)):
            self._read_in_month(shape[1], shape[2])
        elif shape := _ITEM.fullmatch(wanted):
            self._read_numbers(shape[1], shape[2], shape[3])
        else:
            self._refuse_unknown()

    def _read_in_month(self, day: str, which: str | None) -> None:
        number = LAST if which is None else self._number(which)
        if which is not None and not 1 <= number <= _MOST_IN_MONTH:
            self._refuse(f"is in no month: use #1 to #{_MOST_IN_MONTH}, or L for the last one")
        self.in_month.add((self._value(day) % _SUNDAY_TOO, number))

    def _read_numbers(self, start: str, end: str | None, step: str | None) -> None:
        low, high = self._range(start, end, endless=step is not None)
        for number in range(low, high + 1, 1 if step is None else self._step(step)):
            self.numbers.add(0 if self._field is WEEKDAY and number == _SUNDAY_TOO else number)

    def _range(self, start: str, end: str | None, *, endless: bool) -> tuple[int, int]:
        if start == "*":
            return self._field.least, self._field.most
        low = self._value(start)
        if end is None:
            return low, self._field.most if endless else low
        high = self._value(end)
        if self._field is WEEKDAY and end == "SUN" and low > high:
            high = _SUNDAY_TOO
        if low > high:
            self._refuse(f"goes backwards: write {self._forwards(low, high)}")
        return low, high

    def _forwards(self, low: int, high: int) -> str:
        parts = ((low, self._field.most), (self._field.least, high))
        return ",".join(str(start) if start == end else f"{start}-{end}" for start, end in parts)

    def _step(self, text: str) -> int:
        step = self._number(text)
        if not 1 <= step <= self._field.most:
            self._refuse(f"has a step that is not 1 to {self._field.most}: for other distances use a timedelta")
        return step

    def _value(self, text: str) -> int:
        if text in self._field.names:
            return self._field.names.index(text) + self._field.least
        value = self._number(text)
        if not self._field.least <= value <= self._field.most:
            self._refuse(f"is out of range: {self._field.allowed()}")
        return value

    def _number(self, text: str) -> int:
        return int(text) if text.isdecimal() else self._refuse_unknown()

    def _refuse_unknown(self) -> NoReturn:
        item = self._item.upper()
        if not item:
            self._refuse("is empty: leave out the comma, or write what belongs there")
        for shape, problem in _FOREIGN:
            if shape.fullmatch(item):
                self._refuse(problem)
        if "L" in item or "#" in item:
            self._refuse("is not known here: L is the last day of a month, FRIL its last Friday, FRI#2 its second one")
        self._refuse(f"is not known here: {self._field.allowed()}")

    def _refuse(self, problem: str) -> NoReturn:
        refuse(self._expression, f"{self._field.name} {shortened(self._item, 40)!r} {problem}")


def refuse(expression: str, problem: str) -> NoReturn:
    """Raise `InvalidValue` for an expression, with as much of it as fits a line."""
    message = f"cron expression {shortened(expression, 60)!r}: {problem}"
    raise InvalidValue(message)
