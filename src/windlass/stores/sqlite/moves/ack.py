"""Plain successes, many in one statement: the hot half of every queue's life."""

from collections.abc import Sequence

from windlass.core.ids import JobId
from windlass.core.states import State
from windlass.core.store import Settled, Settlement
from windlass.core.topics import ENDS
from windlass.core.verdict import ToSucceeded
from windlass.stores.sqlite.moves import ends, holds
from windlass.stores.sqlite.rows import json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import SUCCEEDED, Transaction

_NO_RESULT = ToSucceeded()


def is_plain(settlement: Settlement) -> bool:
    """Whether a settlement is a success that brings nothing along."""
    verdict = settlement.verdict
    return isinstance(verdict, ToSucceeded) and verdict == _NO_RESULT and not settlement.then and not settlement.kv


def ack_many(tx: Transaction, settlements: Sequence[Settlement]) -> list[Settled | None]:
    """Settle plain successes; None for each that was not done, which is left to be refused by itself."""
    results: list[Settled | None] = [None] * len(settlements)
    kept: dict[str, int] = {}
    forgotten: dict[str, int] = {}
    for place, settlement in enumerate(settlements):
        (kept if settlement.keep else forgotten).setdefault(settlement.token, place)
    for places, keep in ((kept, True), (forgotten, False)):
        for token in _ack(tx, [settlements[place] for place in places.values()], keep=keep):
            results[places[token]] = Settled.DONE
    return results


def _ack(tx: Transaction, settlements: Sequence[Settlement], *, keep: bool) -> list[str]:
    if not settlements:
        return []
    ids = json_list([settlement.job_id for settlement in settlements])
    pairs = json_list([settlement.job_id + settlement.token for settlement in settlements])
    if keep:
        rows = tx.execute(sql("ack"), {"ids": ids, "pairs": pairs, "now": tx.now}).fetchall()
    else:
        rows = tx.execute(sql("ack_and_forget"), {"ids": ids, "pairs": pairs}).fetchall()
    counts: dict[tuple[str, str | None], int] = {}
    for _, job_id, seq, queue, kind, delivery, log_lines, hold, hold_until in rows:
        counts[queue, kind] = counts.get((queue, kind), 0) + 1
        if hold is not None:
            holds.free_at_end(tx, JobId(job_id), hold, hold_until)
        if not keep and (delivery > 1 or log_lines):
            ends.forget_traces(tx, seq)
    for (queue, kind), count in counts.items():
        tx.moved(queue, State.RUNNING, State.SUCCEEDED if keep else None, count)
        tx.happened(queue, kind, SUCCEEDED, count)
        tx.topics.add(ENDS)
    return [row[0] for row in rows]
