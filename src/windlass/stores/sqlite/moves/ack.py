"""Plain successes, many in one statement: the hot half of every queue's life."""

from collections.abc import Collection, Sequence
from typing import Any

from windlass.core.ids import JobId
from windlass.core.requests import Settled, Settlement
from windlass.core.states import State
from windlass.stores.sqlite.moves import delivery_ends, holds, steps
from windlass.stores.sqlite.rows import json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import Transaction


def ack_many(tx: Transaction, settlements: Sequence[Settlement]) -> list[Settled | None]:
    """Settle plain successes; None for each that was not done, which is left to be settled or refused by itself."""
    running = _running(tx, [settlement.job_id for settlement in settlements])
    results: list[Settled | None] = []
    kept: list[tuple[Any, ...]] = []
    forgotten: list[tuple[Any, ...]] = []
    for job_id, token, _, keep, _, _ in settlements:
        row = running.get(job_id)
        if row is None or row[1] != token:
            results.append(None)
            continue
        # once: a second settlement of the same claim finds it settled
        del running[job_id]
        (kept if keep else forgotten).append(row)
        results.append(Settled.DONE)
    left = _ack(tx, kept, keep=True) if kept else ()
    if forgotten:
        left = {*left, *_ack(tx, forgotten, keep=False)}
    if not left:
        return results
    return [
        None if settlement.job_id in left else result for settlement, result in zip(settlements, results, strict=True)
    ]


def _running(tx: Transaction, ids: list[JobId]) -> dict[JobId, tuple[Any, ...]]:
    """Return the rows of `running.sql` of those jobs that run."""
    return {row[0]: row for row in tx.execute(sql("running"), {"ids": json_list(ids)}).fetchall()}


def _ack(tx: Transaction, rows: Sequence[tuple[Any, ...]], *, keep: bool) -> Collection[JobId]:
    """Write that running jobs have succeeded; return those that were left, because other jobs follow them."""
    written = json_list([row[2] for row in rows])
    done = tx.run("ack", {"now": tx.now, "seqs": written}) if keep else tx.run("ack_and_forget", {"seqs": written})
    left = {} if done == len(rows) else _running(tx, [row[0] for row in rows])
    groups: dict[tuple[str, str | None], list[int]] = {}
    for job_id, _, seq, queue, kind, delivery, log_lines, hold, hold_until in rows:
        if job_id in left:
            continue
        groups.setdefault((queue, kind), []).append(seq)
        if hold is not None:
            holds.free_at_end(tx, job_id, hold, hold_until)
        if not keep and (delivery > 1 or log_lines):
            delivery_ends.forget_traces(tx, seq)
    for (queue, kind), seqs in groups.items():
        jobs = steps.Group(queue, kind, State.RUNNING, len(seqs), seqs)
        steps.stops_running(tx, jobs)
        steps.ends(tx, jobs, State.SUCCEEDED, keep=keep)
    return left
