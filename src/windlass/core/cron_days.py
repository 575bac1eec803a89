"""The days that a cron expression allows."""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime
from typing import Final, TypeAlias

from windlass.core.cron_fields import LAST

Day: TypeAlias = tuple[int, int, int]
"""Year, month and day."""

_WEEK: Final = 7
_FEBRUARY: Final = 2
_LEAP_FEBRUARY: Final = 29
_LENGTHS: Final = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EVERY_SEVENTH: Final = sum(1 << day for day in range(0, 31, _WEEK))


@dataclass(frozen=True, slots=True)
class Days:
    """Which days an expression allows. Sets of days in a month are integers with a bit for each, from bit 1 on."""

    months: tuple[int, ...]
    numbers: int
    last: bool
    """Whether the last day of a month is allowed too."""
    weekdays: tuple[int, ...]
    in_month: frozenset[tuple[int, int]]
    """Days of the week and which one in the month, `LAST` or from 1."""
    either: bool
    """Whether the day of month or the day of week is enough; else a day must be both."""

    def first_from(self, year: int, month: int, day: int) -> Day | None:
        """Return the first allowed day from this one on; the day may be one past the end of its month."""
        for each_year in range(year, MAXYEAR + 1):
            for each_month in self.months[bisect_left(self.months, month) :]:
                start = day if (each_year, each_month) == (year, month) else 1
                days = self._in(each_year, each_month) >> start << start
                if days:
                    return each_year, each_month, (days & -days).bit_length() - 1
            month = 1
        return None

    def ever(self) -> bool:
        """Whether any day of any year is allowed."""
        lengths = {_LENGTHS[month] for month in self.months}
        if _FEBRUARY in self.months:
            lengths.add(_LEAP_FEBRUARY)
        # a month of any length begins on every day of the week in one year or another
        return any(self._allowed(first, length) for length in lengths for first in range(_WEEK))

    def _in(self, year: int, month: int) -> int:
        leap = month == _FEBRUARY and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        first = datetime(year, month, 1, tzinfo=UTC).isoweekday() % _WEEK
        return self._allowed(first, _LEAP_FEBRUARY if leap else _LENGTHS[month])

    def _allowed(self, first: int, length: int) -> int:
        """Return the days allowed in a month of `length` days whose first is the week day `first`."""
        every_day = (2 << length) - 2
        by_number = self.numbers | self.last << length
        by_week = 0
        for weekday in self.weekdays:
            by_week |= _EVERY_SEVENTH << 1 + (weekday - first) % _WEEK
        for weekday, which in self.in_month:
            days = _EVERY_SEVENTH << 1 + (weekday - first) % _WEEK & every_day
            by_week |= 1 << days.bit_length() - 1 if which == LAST else days & 0b1111111 << 1 + (which - 1) * _WEEK
        return (by_number | by_week if self.either else by_number & by_week) & every_day
