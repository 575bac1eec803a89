"""Prune: finished records past their retention, and the small records that housekeeping leaves."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from windlass.core.duration import ZERO
from windlass.core.retention import Retention
from windlass.core.states import State
from windlass.kit.records import STATES
from windlass.stores.postgres.moves import delivery_ends
from windlass.stores.postgres.queries import note_damaged_counts
from windlass.stores.postgres.timestamps import TOO_LATE
from windlass.stores.postgres.work import Changes, Statement, Work

AT_ONCE: Final = 10_000
"""Small records that one statement deletes."""
SMALL_RECORDS: Final[Mapping[str, timedelta]] = {
    "forget_old_receipts": timedelta(minutes=2),
    "drop_expired_holds": ZERO,
    "drop_expired_locks": ZERO,
    "forget_old_servers": timedelta(days=1),
}
"""The statements that delete small records, and for how long these are kept once they are over."""
COUNTS: Final = ("forget_old_minutes", "forget_old_timings")
_COUNTS_KEPT: Final = timedelta(days=8)


class End(NamedTuple):
    """The records of a queue that ended alike."""

    queue: str
    state: State


class Wanted(NamedTuple):
    """Which records of one end may go: up to `most` that are at least `age` old."""

    end: End
    age: timedelta | None
    most: int


class Place(NamedTuple):
    """Where a finished record stands among those that ended alike."""

    finished_at: datetime
    seq: int


class Pruned(NamedTuple):
    """How many records went, and of each end the place of the last."""

    gone: int
    last: Mapping[End, Place]


class Forgotten(NamedTuple):
    """The times of the small records that went, and whether there may be more."""

    last: datetime | None
    more: bool


NOWHERE: Final[Mapping[End, Place]] = {}


def forget_small(changes: Changes, name: str, since: datetime | None = None) -> Work[Forgotten]:
    """Delete the small records of one sort that are over, some thousands; those before `since` are gone."""
    parameters = {"now": changes.now, "age": SMALL_RECORDS[name], "limit": AT_ONCE, "since": since}
    rows = yield Statement(name, parameters)
    return Forgotten(max((row[0] for row in rows), default=None), len(rows) >= AT_ONCE)


def forget_counts(changes: Changes, name: str) -> Work[None]:
    """Delete the counts of minutes that are long over."""
    yield Statement(name, {"now": changes.now, "age": _COUNTS_KEPT})


def prune(
    changes: Changes, retention: Retention, limit: int, *, since: Mapping[End, Place] = NOWHERE, counted: int = 0
) -> Work[Pruned]:
    """Delete up to `limit` finished records past their retention, the oldest of each end first.

    Those up to `since` are gone, and the changes up to number `counted` were added up; both but for what was committed
    late, so that now and then this is called without them. Nothing is done while another one prunes.
    """
    [(taken,)] = yield Statement("prune_turn")
    if not taken:
        return Pruned(0, NOWHERE)
    # by how many there are too many must be known exactly
    records = yield from _records(counted if retention.most is None else 0)
    last: dict[End, Place] = {}
    gone = yield from _delete(changes, _too_old(records, retention, limit), limit, since, last)
    left = limit - gone.total()
    gone += yield from _delete(changes, _too_many(records - gone, retention), left, {**since, **last}, last)
    yield from changes.flush()
    return Pruned(gone.total(), last)


def _records(counted: int) -> Work[Counter[End]]:
    rows = yield Statement("ended", {"above": counted})
    return Counter(
        {
            End(queue, state): count
            for queue, *counts in rows
            for state, count in zip((State.SUCCEEDED, State.DEAD, State.CANCELLED), counts, strict=True)
            if count > 0
        }
    )


def _too_old(records: Counter[End], retention: Retention, limit: int) -> list[Wanted]:
    kept = [(end, retention.keep(end.queue).for_state(end.state)) for end in sorted(records)]
    return [Wanted(end, keep, limit) for end, keep in kept if keep is not None]


def _too_many(records: Counter[End], retention: Retention) -> list[Wanted]:
    most = retention.most
    if most is None:
        return []
    return [
        Wanted(end, None, count - most)
        for end, count in sorted(records.items())
        # by a damaged count all records would be too many
        if count > most and not note_damaged_counts(end.queue, [count])
    ]


def _delete(
    changes: Changes, wanted: Sequence[Wanted], limit: int, since: Mapping[End, Place], last: dict[End, Place]
) -> Work[Counter[End]]:
    """Delete what is wanted, behind `since`; note in `last` where it ended."""
    if not wanted or limit <= 0:
        return Counter()
    places = [since.get(one.end) for one in wanted]
    parameters = {
        "now": changes.now,
        "queues": [one.end.queue for one in wanted],
        "states": [str(one.end.state) for one in wanted],
        "ages": [one.age for one in wanted],
        "most": [min(one.most, limit) for one in wanted],
        "limit": limit,
        "since": [place and place.finished_at for place in places],
        "since_seqs": [place and place.seq for place in places],
    }
    rows = yield Statement("prunable", parameters)
    yield from delivery_ends.forget([seq for seq, *_ in rows])
    gone: Counter[End] = Counter()
    for seq, queue, state, finished_at in rows:
        end = End(queue, STATES[state])
        gone[end] += 1
        if finished_at is not TOO_LATE:
            # behind a damaged time the sound ones would be passed by
            last[end] = Place(finished_at, seq)
    for end, count in gone.items():
        changes.moved(end.queue, end.state, None, count)
    return gone
