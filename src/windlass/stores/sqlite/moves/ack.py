"""Plain successes, many in one statement: the hot half of every queue's life."""

from collections.abc import Sequence

from windlass.core.ids import JobId
from windlass.core.requests import Settled, Settlement
from windlass.core.states import State
from windlass.core.topics import ENDS
from windlass.stores.sqlite.moves import ends, holds
from windlass.stores.sqlite.rows import json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import SUCCEEDED, Transaction


def ack_many(tx: Transaction, settlements: Sequence[Settlement]) -> list[Settled | None]:
    """Settle plain successes; None for each that was not done, which is left to be refused by itself."""
    ids = json_list([settlement.job_id for settlement in settlements])
    running = {row[0]: row for row in tx.execute(sql("running"), {"ids": ids}).fetchall()}
    results: list[Settled | None] = []
    kept: list[int] = []
    forgotten: list[int] = []
    counts: dict[tuple[str, str | None, bool], int] = {}
    for job_id, token, _, keep, _, _ in settlements:
        row = running.get(job_id)
        if row is None or row[1] != token:
            results.append(None)
            continue
        # once: a second settlement of the same claim finds it settled
        del running[job_id]
        _, _, seq, queue, kind, delivery, log_lines, hold, hold_until = row
        (kept if keep else forgotten).append(seq)
        counts[queue, kind, keep] = counts.get((queue, kind, keep), 0) + 1
        if hold is not None:
            holds.free_at_end(tx, JobId(job_id), hold, hold_until)
        if not keep and (delivery > 1 or log_lines):
            ends.forget_traces(tx, seq)
        results.append(Settled.DONE)
    if kept:
        tx.run("ack", {"now": tx.now, "seqs": json_list(kept)})
    if forgotten:
        tx.run("ack_and_forget", {"seqs": json_list(forgotten)})
    for (queue, kind, keep), count in counts.items():
        tx.moved(queue, State.RUNNING, State.SUCCEEDED if keep else None, count)
        tx.happened(queue, kind, SUCCEEDED, count)
        tx.topics.add(ENDS)
    return results
