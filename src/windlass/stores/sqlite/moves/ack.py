"""Plain successes, many in one statement: the hot half of every queue's life."""

from collections.abc import Sequence

from windlass.core.ids import JobId
from windlass.core.states import State
from windlass.core.store import Settled, Settlement, SettleResult
from windlass.core.topics import ENDS
from windlass.core.verdict import ToSucceeded
from windlass.stores.sqlite.moves import ends, holds
from windlass.stores.sqlite.rows import json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import SUCCEEDED, Transaction


def ack_many(tx: Transaction, settlements: Sequence[Settlement], results: list[SettleResult | None]) -> None:
    """Settle the successes that bring nothing along, and note each that was done in `results`.

    What is not noted is left to be settled, or refused, one by one.
    """
    kept: dict[str, int] = {}
    forgotten: dict[str, int] = {}
    taken: set[str] = set()
    for place, settlement in enumerate(settlements):
        if not _plain(settlement):
            # of two settlements of one claim the first counts, so this one is not overtaken
            taken.add(settlement.token)
        elif settlement.token not in taken:
            (kept if settlement.keep else forgotten).setdefault(settlement.token, place)
    if kept:
        _ack(tx, settlements, kept, results, keep=True)
    if forgotten:
        _ack(tx, settlements, forgotten, results, keep=False)


def _plain(settlement: Settlement) -> bool:
    verdict = settlement.verdict
    return isinstance(verdict, ToSucceeded) and verdict.result is None and not settlement.then and not settlement.kv


def _ack(
    tx: Transaction,
    settlements: Sequence[Settlement],
    places: dict[str, int],
    results: list[SettleResult | None],
    *,
    keep: bool,
) -> None:
    ids = json_list([settlements[place].job_id for place in places.values()])
    pairs = json_list([settlements[place].job_id + settlements[place].token for place in places.values()])
    if keep:
        rows = tx.execute(sql("ack"), {"ids": ids, "pairs": pairs, "now": tx.now}).fetchall()
    else:
        rows = tx.execute(sql("ack_and_forget"), {"ids": ids, "pairs": pairs}).fetchall()
    counts: dict[tuple[str, str | None], int] = {}
    for token, job_id, seq, queue, kind, delivery, log_lines, hold, hold_until in rows:
        results[places[token]] = Settled.DONE
        counts[queue, kind] = counts.get((queue, kind), 0) + 1
        if hold is not None:
            holds.free_at_end(tx, JobId(job_id), hold, hold_until)
        if not keep and (delivery > 1 or log_lines):
            ends.forget_traces(tx, seq)
    for (queue, kind), count in counts.items():
        tx.moved(queue, State.RUNNING, State.SUCCEEDED if keep else None, count)
        tx.happened(queue, kind, SUCCEEDED, count)
    if rows:
        tx.topics.add(ENDS)
