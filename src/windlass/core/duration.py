"""Durations and points in time, as users give them and as stores keep them."""

from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from windlass.core.errors import InvalidValue

Duration: TypeAlias = timedelta | float
"""A `timedelta`, or a plain number that means seconds."""

ZERO: Final = timedelta(0)
LONGEST: Final = timedelta(days=36_500)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MILLISECOND: Final = timedelta(milliseconds=1)


def duration(value: Duration, what: str) -> timedelta:
    """Return `value` as a `timedelta` of zero to a hundred years; `what` names it in the error."""
    given = value if isinstance(value, timedelta) else _from_seconds(value, what)
    if given < ZERO:
        message = f"{what} must not be negative: {value!r}"
        raise InvalidValue(message)
    if given > LONGEST:
        message = f"{what} must be at most {LONGEST.days:,} days: {value!r}"
        raise InvalidValue(message)
    return given


def _from_seconds(value: object, what: str) -> timedelta:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        message = f"{what} must be a timedelta or a number of seconds, not {value!r}"
        raise InvalidValue(message)
    # also false for what is not a number; an integer may be too large to be a float, or to be shown
    if not abs(value) <= LONGEST.total_seconds() * 2:
        message = f"{what} must be from zero to {LONGEST.days:,} days"
        raise InvalidValue(message)
    return timedelta(seconds=value)


def moment(value: datetime, what: str) -> datetime:
    """Return `value` in UTC; refuse a naive datetime, which could mean any time zone."""
    if not isinstance(value, datetime):
        message = f"{what} must be a datetime, not {value!r}"
        raise InvalidValue(message)
    if value.utcoffset() is None:
        message = f"{what} has no time zone: use datetime.now(UTC), or value.astimezone()"
        raise InvalidValue(message)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        message = f"{what} is outside of what UTC can express: {value!r}"
        raise InvalidValue(message) from None


def to_micros(at: datetime) -> int:
    """Return the microseconds from the epoch to `at`: how stores keep a point in time."""
    return (at - EPOCH) // _MICROSECOND


def to_millis(at: datetime) -> int:
    """Return the whole milliseconds from the epoch to `at`."""
    return (at - EPOCH) // _MILLISECOND


def from_micros(micros: int) -> datetime:
    """Return the point in time that `to_micros` was given."""
    return EPOCH + timedelta(0, 0, micros)


def later(at: datetime, by: timedelta) -> datetime:
    """Return `at + by`, or the last moment there is when that would be past it."""
    try:
        return at + by
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)
