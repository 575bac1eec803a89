"""Prune: finished records past their retention, and the small records that housekeeping leaves."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from windlass.core.duration import ZERO
from windlass.core.retention import Retention
from windlass.core.states import State
from windlass.kit.records import STATES
from windlass.stores.postgres.moves import ends
from windlass.stores.postgres.moves.fold import fold
from windlass.stores.postgres.work import Changes, Statement, Work

SWEPT_AT_ONCE: Final = 10_000
_SWEEPS: Final = (
    ("sweep_receipts", timedelta(minutes=2)),
    ("sweep_holds", ZERO),
    ("sweep_locks", ZERO),
    ("sweep_servers", timedelta(days=1)),
)
_MINUTES_KEPT: Final = timedelta(days=8)


class End(NamedTuple):
    """The records of a queue that ended alike."""

    queue: str
    state: State


class Wanted(NamedTuple):
    """Which records of one end may go: up to `most` that are at least `age` old."""

    end: End
    age: timedelta | None
    most: int


def sweep(changes: Changes) -> Work[bool]:
    """Delete the small records that are over, some thousands of each; return whether there may be more."""
    gone = 0
    for name, age in _SWEEPS:
        rows = yield Statement(name, [changes.now, age, SWEPT_AT_ONCE])
        gone = max(gone, len(rows))
    yield Statement("sweep_minutes", [changes.now, _MINUTES_KEPT])
    yield Statement("sweep_timings", [changes.now, _MINUTES_KEPT])
    return gone >= SWEPT_AT_ONCE


def prune(changes: Changes, retention: Retention, limit: int) -> Work[int]:
    """Delete up to `limit` finished records past their retention, the oldest of each end first; return how many.

    Small records go too, some of them: `sweep` deletes the rest. Nothing is done while another one prunes.
    """
    [(taken,)] = yield Statement("prune_turn")
    if not taken:
        return 0
    # what is not added up yet would outlive the minutes that are
    yield from fold()
    yield from sweep(changes)
    records = yield from _records()
    gone = yield from _delete(changes, _too_old(records, retention, limit), limit)
    left = limit - gone.total()
    gone += yield from _delete(changes, _too_many(records - gone, retention), left)
    yield from changes.flush()
    return gone.total()


def _records() -> Work[Counter[End]]:
    rows = yield Statement("ended")
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
    return [Wanted(end, None, count - most) for end, count in sorted(records.items()) if count > most]


def _delete(changes: Changes, wanted: Sequence[Wanted], limit: int) -> Work[Counter[End]]:
    if not wanted or limit <= 0:
        return Counter()
    columns = [
        [one.end.queue for one in wanted],
        [str(one.end.state) for one in wanted],
        [one.age for one in wanted],
        [min(one.most, limit) for one in wanted],
    ]
    rows = yield Statement("prunable", [changes.now, *columns, limit])
    yield from ends.forget([seq for seq, _, _ in rows])
    gone = Counter(End(queue, STATES[state]) for _, queue, state in rows)
    for end, count in gone.items():
        changes.moved(end.queue, end.state, None, count)
    return gone
