"""How long attempts took, as the API writes and reads it."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from windlass.api.shape import Asked, Moment, Told
from windlass.core.stats import BOUNDS, TimingCount

MOST_TIMINGS = 10_000
"""Counts that one call may write; more of them are more calls."""


class Timing(Told, kw_only=True):
    """How many attempts of a minute, a queue and a kind (empty for raw jobs) ran, or had waited, for so long.

    `range` is a place among the bounds that are told with them, and one past the last for what was longer.
    """

    minute: Moment
    queue: Annotated[str, Meta(min_length=1, max_length=200)]
    kind: Annotated[str, Meta(max_length=200)]
    what: Literal["waited", "ran"]
    range: Annotated[int, Meta(ge=0, le=len(BOUNDS))]
    attempts: Annotated[int, Meta(ge=0, le=2**31 - 1)]


class TimingsTold(Told, kw_only=True):
    """How long attempts took in each minute; `bounds` are seconds, each the most of its range."""

    bounds: list[float]
    timings: list[Timing]


class TimingsWritten(Asked, kw_only=True):
    """Counts to be added to those that are kept."""

    timings: Annotated[list[Timing], Meta(max_length=MOST_TIMINGS)]


def timings_told(rows: Sequence[TimingCount]) -> list[Timing]:
    """Return counts as they are told."""
    return [
        Timing(minute=row.minute, queue=row.queue, kind=row.kind, what=row.what, range=row.range, attempts=row.attempts)
        for row in rows
    ]


def timings_of(told: Sequence[Timing]) -> list[TimingCount]:
    """Return the counts that were told."""
    return [TimingCount(one.minute, one.queue, one.kind, one.what, one.range, one.attempts) for one in told]
