"""Prune: finished records past their retention, and the small records that housekeeping leaves."""

from datetime import timedelta
from typing import NamedTuple

from windlass.core.duration import to_micros
from windlass.core.retention import Retention
from windlass.core.states import ENDS, State
from windlass.stores.sqlite.moves import ends
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import COLUMN, Transaction

_ALL_TIME = 2**62
_SMALL_RECORDS = (
    ("prune_receipts", timedelta(minutes=10)),
    ("prune_holds", timedelta(0)),
    ("prune_locks", timedelta(0)),
    ("prune_servers", timedelta(days=1)),
    ("prune_minutes", timedelta(days=8)),
    ("prune_timings", timedelta(days=8)),
)


class PruneCall(NamedTuple):
    """What is kept, and how many records may go at once."""

    retention: Retention
    limit: int


def prune(tx: Transaction, calls: list[PruneCall]) -> list[int]:
    """Serve each call in turn."""
    return [_prune(tx, call) for call in calls]


def _prune(tx: Transaction, call: PruneCall) -> int:
    for statement, age in _SMALL_RECORDS:
        tx.run(statement, (to_micros(tx.moment - age),))
    left = call.limit
    for row in tx.execute(sql("stats"), {"queue": None}).fetchall():
        counts = {state: row[2 + COLUMN[state]] for state in sorted(ENDS)}
        for state, count in counts.items():
            left -= _prune_end(tx, End(row[0], state, count), call.retention, left)
    return call.limit - left


class End(NamedTuple):
    """The records of a queue that ended alike."""

    queue: str
    state: State
    records: int


def _prune_end(tx: Transaction, end: End, retention: Retention, limit: int) -> int:
    if not end.records or limit <= 0:
        return 0
    keep = retention.keep(end.queue).for_state(end.state)
    gone = 0 if keep is None else _delete_until(tx, end, to_micros(tx.moment - keep), limit)
    over = 0 if retention.most is None else end.records - gone - retention.most
    if over > 0:
        gone += _delete_until(tx, end, _ALL_TIME, min(over, limit - gone))
    return gone


def _delete_until(tx: Transaction, end: End, until: int, limit: int) -> int:
    rows = tx.execute(sql("prunable"), (end.queue, str(end.state), until, limit)).fetchall()
    for seq, delivery, log_lines in rows:
        tx.run("forget", (seq,))
        if delivery or log_lines:
            ends.forget_traces(tx, seq)
    if rows:
        tx.moved(end.queue, end.state, None, len(rows))
    return len(rows)
