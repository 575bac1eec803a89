"""What one server has counted since it was made: claims, ends, and how long jobs waited and ran."""

import threading
from bisect import bisect_left
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from windlass.core.job import Job
from windlass.core.stats import BOUNDS
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict

MOST_PAIRS: Final = 300
"""Pairs of queue and kind that are told apart; what comes then counts as `OTHER`."""
OTHER: Final = "other"

Outcome: TypeAlias = Literal["succeeded", "retried", "dead", "cancelled", "snoozed", "released", "lost"]
OUTCOMES: Final[Mapping[type[Verdict], Outcome]] = {
    ToSucceeded: "succeeded",
    ToRetry: "retried",
    ToDead: "dead",
    ToCancelled: "cancelled",
    ToSnoozed: "snoozed",
    ToReleased: "released",
}
LOST: Final[Outcome] = "lost"
"""The end of an attempt whose claim somebody else had by then: whatever it did, nothing of it was written."""


class Pair(NamedTuple):
    """A queue and a kind, which is empty for raw jobs."""

    queue: str
    kind: str


class Times:
    """How many took as long as each range of `BOUNDS`, and how long they took together."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts: list[int] = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count one that took this long."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


class Counts:
    """What was counted of one pair."""

    __slots__ = ("ends", "ran", "waited")

    def __init__(self) -> None:
        self.waited = Times()
        self.ran = Times()
        self.ends: dict[Outcome, int] = dict.fromkeys((*OUTCOMES.values(), LOST), 0)


class Tally:
    """The numbers of one server; none of them ever falls.

    They are counted on the event loop, but where a method says otherwise, and may be read from any thread. An attempt
    keeps the `Counts` of its pair: whoever has them counts without a call, since that is done for every job.
    """

    def __init__(self) -> None:
        self.claimed = 0
        self.rescued = 0
        self.store_errors: dict[str, int] = {"claim": 0, "settle": 0, "renew": 0}
        self._pairs: dict[tuple[str, str | None], Counts] = {}
        self._guard = threading.Lock()

    def pairs(self) -> dict[Pair, Counts]:
        """Return what was counted of each pair; from any thread."""
        return {Pair(queue, kind or ""): counts for (queue, kind), counts in self._pairs.copy().items()}

    @property
    def lost(self) -> int:
        """How many attempts have lost their claim; from any thread."""
        return sum(counts.ends[LOST] for counts in self._pairs.copy().values())

    def of(self, job: Job) -> Counts:
        """Return what is counted of the queue and kind of a job."""
        return self._pairs.get((job.queue, job.kind)) or self._first(job)

    def begin(self, job: Job, since_claim: float) -> Counts:
        """Count how long a job had waited that is begun this many seconds after its claim."""
        counts = self._pairs.get((job.queue, job.kind)) or self._first(job)
        # both times are of the store's clock, which may differ from that of this machine
        claimed_at, run_at = job.claimed_at, job.run_at
        if claimed_at is not None and claimed_at > run_at:
            since_claim += (claimed_at - run_at).total_seconds()
        counts.waited.add(since_claim)
        return counts

    def fail(self, call: Literal["claim", "settle", "renew"]) -> None:
        """Count a call that the store did not answer; from any thread."""
        with self._guard:
            self.store_errors[call] += 1

    def _first(self, job: Job) -> Counts:
        named = (job.queue, job.kind) if len(self._pairs) < MOST_PAIRS else (OTHER, OTHER)
        return self._pairs.setdefault(named, Counts())
