"""How long attempts took, as the API writes and reads it."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from msgspec import Meta

from windlass.api.calls import Nothing, nothing_reply, nothing_response
from windlass.api.carried_call import PlainCall, nothing, pages_of
from windlass.api.queue_calls import MinutesAsked
from windlass.api.shape import Asked, Moment, Name, Told
from windlass.core.commands import WriteTimings
from windlass.core.duration import moment
from windlass.core.names import check_name
from windlass.core.queries import GetTimings
from windlass.core.stats import BOUNDS, TimingCount

MOST_TIMINGS = 10_000
"""Counts that one call may write; more of them are more calls."""


class Timing(Told, kw_only=True):
    """How many attempts of a minute, a queue and a kind (empty for raw jobs) ran, or had waited, for so long.

    `range` is a place among the bounds that are told with them, and one past the last for what was longer.
    """

    minute: Moment
    queue: Name
    kind: Annotated[str, Meta(max_length=200, extra_json_schema={"pattern": "^[A-Za-z0-9_.:/@#-]{0,200}$"})]
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


def _checked(row: TimingCount) -> TimingCount:
    minute = moment(row.minute, "minute").replace(second=0, microsecond=0)
    check_name(row.queue, "queue")
    if row.kind:
        check_name(row.kind, "kind")
    return row._replace(minute=minute)


TIMINGS: Final = PlainCall(
    GetTimings,
    MinutesAsked,
    TimingsTold,
    request=lambda query: MinutesAsked(since=query.since, until=query.until),
    read=lambda asked: GetTimings(moment(asked.since, "since"), moment(asked.until, "until")),
    response=lambda _, rows: TimingsTold(bounds=list(BOUNDS), timings=timings_told(rows)),
    reply=lambda told: timings_of(told.timings),
)
WRITE_TIMINGS: Final = PlainCall(
    WriteTimings,
    TimingsWritten,
    Nothing,
    request=lambda command: TimingsWritten(timings=timings_told(command.timings)),
    read=lambda asked: WriteTimings([_checked(row) for row in timings_of(asked.timings)]),
    response=nothing_response,
    reply=nothing_reply,
    parts=pages_of("timings", nothing),
)
