"""Rules: when a schedule is due."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Final, Protocol

from windlass.core.cron import Cron, parse_cron
from windlass.core.duration import Duration, duration
from windlass.core.errors import InvalidValue
from windlass.core.names import shortened

SHORTEST: Final = timedelta(seconds=1)
_MICROSECOND: Final = timedelta(microseconds=1)
_INTERVAL: Final = re.compile(r"every ([0-9]{1,10})(?:\.([0-9]{1,6}))?s")


class Rule(Protocol):
    """Tells the due times of a schedule."""

    @property
    def text(self) -> str:
        """What `read_rule` makes the same rule of, given the same zone."""
        ...

    def following(self, moment: datetime) -> datetime | None:
        """Return the first due time later than `moment`, or None when no other comes."""
        ...

    def latest(self, first: datetime, until: datetime, most: int) -> list[datetime]:
        """Return the last `most` due times before `until`, of `first`, which is one, and those that follow it."""
        ...


@dataclass(frozen=True, slots=True)
class Interval:
    """Due again and again, always `every` later: a second to a hundred years."""

    every: timedelta

    def __post_init__(self) -> None:
        """Refuse what is too short or too long."""
        if duration(self.every, "the interval of a schedule") < SHORTEST:
            given = self.every.total_seconds()
            message = f"the interval of a schedule must be at least {SHORTEST.seconds} second, not {given:g}"
            raise InvalidValue(message)

    @property
    def text(self) -> str:
        """The interval in seconds, as in `every 300s`; exact."""
        micros = (self.every % timedelta(seconds=1)) // _MICROSECOND
        fraction = f".{micros:06}".rstrip("0") if micros else ""
        return f"every {self.every // timedelta(seconds=1)}{fraction}s"

    def following(self, moment: datetime) -> datetime | None:
        """Return the time one interval after `moment`."""
        try:
            return moment + self.every
        except OverflowError:
            return None

    def latest(self, first: datetime, until: datetime, most: int) -> list[datetime]:
        """Return the last `most` of `first` and the times whole intervals after it, before `until`."""
        count = max(0, -((first - until) // self.every))
        return [first + number * self.every for number in range(max(0, count - most), count)]


@dataclass(frozen=True, slots=True)
class CronRule:
    """Due when a cron expression says so, by the clocks of a zone."""

    cron: Cron
    zone: tzinfo

    @property
    def text(self) -> str:
        """The expression as it was given."""
        return self.cron.text

    def following(self, moment: datetime) -> datetime | None:
        """Return the first due time later than `moment`, or None past the last year there is."""
        return self.cron.next_after(moment, self.zone)

    def latest(self, first: datetime, until: datetime, most: int) -> list[datetime]:
        """Return the last `most` due times before `until`, `first` being the first of them."""
        found: list[datetime] = []
        step = SHORTEST
        while first < until and len(found) < most:
            last = self._last_before(first, until, step)
            found.append(last)
            step, until = until - last + SHORTEST, last
        return found[::-1]

    def _last_before(self, first: datetime, until: datetime, step: timedelta) -> datetime:
        """Return the last due time before `until`; `step` is a guess at how far back it is."""
        early, late = first, until
        while late - first > step:
            due = self._due_between(late - step, until)
            if due is not None:
                early = due
                break
            late -= step
            step *= 2
        # a due time at `early`, none from `late` on: closing in from both sides
        while (due := self._due_between(early, until)) is not None:
            early = due
            middle = early + (late - early) / 2
            due = self._due_between(middle, until)
            if due is None:
                late = middle
            else:
                early = due
        return early

    def _due_between(self, moment: datetime, until: datetime) -> datetime | None:
        due = self.following(moment)
        return due if due is not None and due < until else None


def read_rule(given: str | Duration, zone: tzinfo) -> Rule:
    """Return the rule that is meant by a cron expression, a text as in `every 300s`, or a duration.

    The zone counts for cron expressions alone. Raises `InvalidValue` for what is no rule.
    """
    if not isinstance(given, str):
        _check_kind(given)
        return Interval(duration(given, "the interval of a schedule"))
    text = given.strip()
    if not text.startswith("every"):
        return CronRule(parse_cron(given), zone)
    shape = _INTERVAL.fullmatch(text)
    if shape is None:
        message = f"{shortened(text, 60)!r} is no interval: write seconds, as in 'every 300s', or give a timedelta"
        raise InvalidValue(message)
    micros = (shape[2] or "").ljust(6, "0")
    return read_rule(timedelta(seconds=int(shape[1]), microseconds=int(micros)), zone)


def _check_kind(given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, timedelta | int | float):
        message = (
            f"a rule is a cron expression, as in '*/5 * * * *', a timedelta or a number of seconds, "
            f"not {shortened(repr(given), 60)}"
        )
        raise InvalidValue(message)


def same_rule(one: Rule, other: Rule) -> bool:
    """Whether two rules mean the same, however they were written."""
    match one, other:
        case CronRule(), CronRule():
            return one.cron == other.cron and str(one.zone) == str(other.zone)
        case _:
            return one == other
