"""Prune: finished records past their retention, and the small records that housekeeping leaves."""

from datetime import timedelta
from typing import NamedTuple

from windlass.core.commands import PruneRecords
from windlass.core.duration import to_micros
from windlass.core.retention import Retention
from windlass.core.states import ENDS, State
from windlass.stores.sqlite.damaged import has_unreadable
from windlass.stores.sqlite.moves import delivery_ends
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import COLUMN, Transaction

_ALL_TIME = 2**62
_RECEIPTS_KEPT = timedelta(minutes=10)
_SERVERS_KEPT = timedelta(days=1)
_MINUTES_KEPT = timedelta(days=8)


def prune(tx: Transaction, command: PruneRecords) -> int:
    """Delete records past their retention; count the jobs."""
    _prune_small_records(tx)
    left = command.limit
    for row in tx.execute(sql("stats"), {"queue": None}).fetchall():
        if has_unreadable(row):
            continue
        counts = {state: row[2 + COLUMN[state]] for state in sorted(ENDS)}
        for state, count in counts.items():
            left -= _prune_end(tx, End(row[0], state, count), command.retention, left)
    return command.limit - left


def _prune_small_records(tx: Transaction) -> None:
    tx.run("prune_receipts", {"until": to_micros(tx.moment - _RECEIPTS_KEPT)})
    tx.run("prune_holds", {"now": tx.now})
    tx.run("prune_locks", {"now": tx.now})
    tx.run("prune_servers", {"until": to_micros(tx.moment - _SERVERS_KEPT)})
    tx.run("prune_minutes", {"until": to_micros(tx.moment - _MINUTES_KEPT)})
    tx.run("prune_timings", {"until": to_micros(tx.moment - _MINUTES_KEPT)})


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
    parameters = {"queue": end.queue, "state": str(end.state), "until": until, "limit": limit}
    rows = tx.execute(sql("prunable"), parameters).fetchall()
    for seq, delivery, log_lines in rows:
        tx.run("forget", {"seq": seq})
        if delivery or log_lines:
            delivery_ends.forget_traces(tx, seq)
    if rows:
        tx.moved(end.queue, end.state, None, len(rows))
    return len(rows)
