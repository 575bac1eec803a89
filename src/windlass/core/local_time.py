"""Instants and what the clocks of a zone show at them: gaps, and hours that come twice.

A wall time is a `datetime` without a zone: what a clock shows. What is asked of a zone is its offset alone, so that
every `tzinfo` will do. Two days are more than any two offsets can differ, and since 1970 no zone has changed its offset
twice within them.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from windlass.core.duration import ZERO

SECOND: Final = timedelta(seconds=1)
REACH: Final = timedelta(days=2)


def wall_time(instant: datetime, zone: tzinfo) -> datetime:
    """Return what clocks show at `instant`; its `fold` is 1 when they show it for the second time."""
    return instant.astimezone(zone).replace(tzinfo=None)


def offset_at(instant: datetime, zone: tzinfo) -> timedelta:
    """Return how far clocks are ahead of UTC at `instant`."""
    return instant.astimezone(zone).utcoffset() or ZERO


def first_shown(wall: datetime, zone: tzinfo) -> datetime:
    """Return the instant at which clocks first show `wall`; when they skip it, the one at which they skip."""
    instant = _instant(wall, zone, fold=0)
    if wall_time(instant, zone) == wall:
        return instant
    return _change_between(_instant(wall, zone, fold=1), instant, zone)


def end_of_repeat(wall: datetime, zone: tzinfo) -> datetime:
    """Return the wall time up to which clocks show times twice, for one that they show for the second time."""
    first = _instant(wall, zone, fold=0)
    change = _change_between(first, _instant(wall, zone, fold=1), zone)
    return change.replace(tzinfo=None) + offset_at(first, zone)


def change_of_offset(after: datetime, until: datetime, zone: tzinfo) -> datetime | None:
    """Return the first instant with another offset than at `after`, up to `until`, which is no further than `REACH`."""
    if offset_at(after, zone) == offset_at(until, zone):
        return None
    return _change_between(after, until, zone)


def _instant(wall: datetime, zone: tzinfo, *, fold: int) -> datetime:
    return wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)


def _change_between(early: datetime, late: datetime, zone: tzinfo) -> datetime:
    before = offset_at(early, zone)
    while late - early > SECOND:
        middle = early + (late - early) // SECOND // 2 * SECOND
        if offset_at(middle, zone) == before:
            early = middle
        else:
            late = middle
    return late
