"""Which due times of a schedule make a job, when it was not looked at for a while."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

from windlass.core.rule import Rule
from windlass.core.schedule import CatchUp, Overlap

MOST_CAUGHT_UP: Final = 100
MOST_AT_ONCE: Final = 100
"""Due times of one firing that passed under watch; those after them are left for the next."""
_CAUGHT_UP: Final[Mapping[CatchUp, int]] = {"none": 0, "one": 1, "all": MOST_CAUGHT_UP}


class Ticks(NamedTuple):
    """What a schedule that is due does now."""

    made: list[datetime]
    """The due times that each make a job, the oldest first."""
    last: datetime
    """The last due time that is dealt with, by a job or without one."""
    next_run_at: datetime | None
    missed: datetime | None
    """The last due time that passed while nobody watched."""
    dropped: bool
    """Whether such times make no job, as `catch_up` says."""


def ticks(
    rule: Rule,
    next_run_at: datetime,
    *,
    now: datetime,
    watched_since: datetime,
    catch_up: CatchUp,
    overlap: Overlap,
) -> Ticks:
    """Decide about every due time from `next_run_at` up to `now`.

    Those from `watched_since` on make a job each, however late the look: a server was there. Those before passed in
    down time, and `catch_up` tells how many of the newest make a job. Where jobs may not overlap there is one job at
    most, for the newest. What comes next follows the last due time and not `now`, so that an interval keeps its beat.
    """
    most = _CAUGHT_UP[catch_up]
    missed: list[datetime] = []
    due: datetime | None = next_run_at
    last = next_run_at
    if next_run_at < watched_since:
        # one more than may be caught up tells whether any is dropped, without a count of a week of seconds
        missed = rule.latest(next_run_at, watched_since, most + 1) or [next_run_at]
        last = missed[-1]
        due = rule.following(last)
    seen: list[datetime] = []
    while due is not None and due <= now and len(seen) < MOST_AT_ONCE:
        seen.append(due)
        due = rule.following(due)
    made = [*missed[len(missed) - min(most, len(missed)) :], *seen]
    return Ticks(
        made=made[-1:] if overlap == "skip" else made,
        last=seen[-1] if seen else last,
        next_run_at=due,
        missed=missed[-1] if missed else None,
        dropped=len(missed) > most,
    )
