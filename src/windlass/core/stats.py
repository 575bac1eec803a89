"""Counts: what a queue holds now, what it has done in all, what it did in each minute, and how long that took."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, NamedTuple


class Totals(NamedTuple):
    """What ever happened on a queue; no number here ever falls."""

    enqueued: int = 0
    succeeded: int = 0
    dead: int = 0
    cancelled: int = 0
    retried: int = 0
    rescued: int = 0

    def plus(self, other: "Totals") -> "Totals":
        """Return the sum of both."""
        return Totals(*(a + b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class QueueStats:
    """The records of a queue by state, now; `queue` is None in the sum over all queues.

    `oldest_waiting` is the earliest `run_at` among its pending jobs.
    """

    queue: str | None
    paused: bool = False
    scheduled: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    dead: int = 0
    cancelled: int = 0
    oldest_waiting: datetime | None = None
    totals: Totals = field(default_factory=Totals)


def total(queues: Iterable[QueueStats]) -> QueueStats:
    """Return the sum over `queues`; it is paused when every one of them is."""
    rows = list(queues)
    oldest = [row.oldest_waiting for row in rows if row.oldest_waiting is not None]
    totals = Totals()
    for row in rows:
        totals = totals.plus(row.totals)
    return QueueStats(
        queue=None,
        paused=bool(rows) and all(row.paused for row in rows),
        scheduled=sum(row.scheduled for row in rows),
        pending=sum(row.pending for row in rows),
        running=sum(row.running for row in rows),
        succeeded=sum(row.succeeded for row in rows),
        dead=sum(row.dead for row in rows),
        cancelled=sum(row.cancelled for row in rows),
        oldest_waiting=min(oldest, default=None),
        totals=totals,
    )


class KindStats(NamedTuple):
    """The pending jobs of a queue and a kind (empty for raw jobs), now: how many, and the earliest `run_at` of them."""

    queue: str
    kind: str
    pending: int
    oldest_waiting: datetime | None


class MinuteCounts(NamedTuple):
    """What happened on a queue with a kind (empty for raw jobs) in the minute that began at `minute`."""

    minute: datetime
    queue: str
    kind: str
    counts: Totals


BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 7_200.0)
"""Seconds: the upper bound, which belongs to it, of each range that times are counted in; one more has no bound."""


class TimingCount(NamedTuple):
    """How many attempts of a minute, queue and kind (empty for raw jobs) took as long as a range of `BOUNDS`.

    `what` is how long they `ran`, or how long their jobs had `waited` since they were due. `range` counts from 0 to
    `len(BOUNDS)`.
    """

    minute: datetime
    queue: str
    kind: str
    what: Literal["waited", "ran"]
    range: int
    attempts: int
