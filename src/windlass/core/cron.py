"""Cron expressions: text to a rule, and the rule to its next time in a zone."""

import difflib
import re
from bisect import bisect_left
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NoReturn

from windlass.core.cron_days import Days
from windlass.core.cron_fields import DAY, FROM_QUARTZ, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, read_field, refuse
from windlass.core.duration import moment
from windlass.core.errors import InvalidValue
from windlass.core.local_time import REACH, change_of_offset, end_of_repeat, first_shown, offset_at, wall_time

MAX_CRON: Final = 200
NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS: Final = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)
_ONE_SECOND: Final = timedelta(seconds=1)
_BLANKS: Final = re.compile(r"[ \t]+")
_STRANGE: Final = re.compile(r"[^\t -~]")


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression that was read; two that mean the same are equal.

    It is *fixed* when neither its hours nor its minutes have a `*` or a step. Then it goes by what clocks show: what
    they skip is due once, at the end of the gap, and what they show twice is due the first time. Any other expression
    is due at every instant at which clocks show a time that it allows.
    """

    text: str = field(compare=False)
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: Days
    fixed: bool

    def next_after(self, after: datetime, zone: tzinfo) -> datetime | None:
        """Return the first due time later than `after`, in UTC and whole seconds; None past the last year there is."""
        since = moment(after, "the time to look from").replace(microsecond=0)
        try:
            return self._next_shown(since, zone) if self.fixed else self._next_elapsed(since, zone)
        except OverflowError:
            return None

    def _next_shown(self, since: datetime, zone: tzinfo) -> datetime | None:
        wall = wall_time(since, zone)
        start = end_of_repeat(wall, zone) if wall.fold else wall + _ONE_SECOND
        while (due := self._first_wall(start)) is not None:
            found = first_shown(due, zone)
            if found > since:
                return found
            start = due + _ONE_SECOND
        return None

    def _next_elapsed(self, since: datetime, zone: tzinfo) -> datetime | None:
        at = since + _ONE_SECOND
        while True:
            offset = offset_at(at, zone)
            due = self._first_wall(at.replace(tzinfo=None) + offset)
            if due is None:
                return None
            found = (due - offset).replace(tzinfo=UTC)
            near = found if found - at <= REACH else at + REACH
            change = change_of_offset(at, near, zone)
            if change is not None:
                at = change
            elif near == found:
                return found
            else:
                # in between clocks show only what was looked at and not allowed, whatever their offset does
                at = max(near, found - REACH)

    def _first_wall(self, start: datetime) -> datetime | None:
        """Return the first time from `start` on that is allowed by calendar and clock alone."""
        today = (start.year, start.month, start.day)
        day = self.days.first_from(*today)
        if day == today:
            time = self._first_time(start.hour, start.minute, start.second)
            if time is not None:
                return start.replace(hour=time[0], minute=time[1], second=time[2], fold=0)
            day = self.days.first_from(start.year, start.month, start.day + 1)
        if day is None:
            return None
        return start.replace(*day, self.hours[0], self.minutes[0], self.seconds[0], fold=0)

    def _first_time(self, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
        if hour in self.hours:
            if minute in self.minutes and (seconds := self.seconds[bisect_left(self.seconds, second) :]):
                return hour, minute, seconds[0]
            if minutes := self.minutes[bisect_left(self.minutes, minute + 1) :]:
                return hour, minutes[0], self.seconds[0]
        if hours := self.hours[bisect_left(self.hours, hour + 1) :]:
            return hours[0], self.minutes[0], self.seconds[0]
        return None


def parse_cron(text: str) -> Cron:
    """Return the expression that `text` is; raise `InvalidValue` saying which part of which field is wrong.

    One that allows no day of any year is refused too.
    """
    given = _checked(text)
    parts = _parts(given, NICKNAMES.get(given.lower(), given))
    second, minute, hour, day, month, weekday = (
        read_field(given, each, part) for each, part in zip(_FIELDS, parts, strict=True)
    )
    cron = Cron(
        text=given,
        seconds=second.numbers,
        minutes=minute.numbers,
        hours=hour.numbers,
        days=Days(
            months=month.numbers,
            numbers=sum(1 << number for number in day.numbers),
            last=day.last,
            weekdays=weekday.numbers,
            in_month=weekday.in_month,
            either=not day.starred and not weekday.starred,
        ),
        fixed=not minute.repeats and not hour.repeats,
    )
    if not cron.days.ever():
        refuse(given, "never comes: no year has such a day")
    return cron


def _checked(text: object) -> str:
    if not isinstance(text, str):
        message = f"a cron expression is a string, not {type(text).__name__}: write it as in '*/5 * * * *'"
        raise InvalidValue(message)
    if len(text) > MAX_CRON:
        refuse(text, f"has {len(text):,} characters, and at most {MAX_CRON} are allowed")
    given = text.strip()
    if strange := _STRANGE.search(given):
        refuse(given, f"has the character {strange[0]!r} (U+{ord(strange[0]):04X}): use plain ASCII")
    return given


def _parts(given: str, expression: str) -> list[str]:
    """Return the six fields of `expression`; one of five is due at the first second of its minutes."""
    if expression.startswith("@"):
        _refuse_nickname(given)
    parts = _BLANKS.split(expression) if expression else []
    if len(parts) == len(_FIELDS) - 1:
        return ["0", *parts]
    if len(parts) == len(_FIELDS) + 1:
        refuse(given, f"has 7 fields, and years are not known here: leave the last one out. {FROM_QUARTZ}")
    if len(parts) != len(_FIELDS):
        names = ", ".join(each.name for each in _FIELDS)
        count = "1 field" if len(parts) == 1 else f"{len(parts)} fields"
        refuse(given, f"has {count}: write {names}, the first of which may be left out")
    return parts


def _refuse_nickname(given: str) -> NoReturn:
    name = given.lower().partition(" ")[0]
    match name:
        case "@every":
            refuse(given, "an interval is no cron expression: give a timedelta, or write it as in 'every 300s'")
        case "@reboot":
            refuse(given, "the start of a machine is no time: enqueue the job where your program starts")
        case _:
            near = difflib.get_close_matches(name, NICKNAMES, n=1)
            refuse(given, f"did you mean {near[0]}?" if near else f"use one of {', '.join(NICKNAMES)}")
