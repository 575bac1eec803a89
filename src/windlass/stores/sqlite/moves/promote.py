"""Promotion: scheduled jobs that have come due become pending."""

from windlass.core.states import State
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import Transaction


def promote_queue(tx: Transaction, queue: str, limit: int) -> int:
    """Promote the due jobs of one queue, the earliest first; return how many."""
    due = tx.row("next_due", (queue,))[0]
    if due is None or due > tx.now:
        return 0
    count = tx.run("promote", (queue, tx.now, limit))
    tx.moved(queue, State.SCHEDULED, State.PENDING, count)
    tx.ready(queue)
    return count


def promote(tx: Transaction, limits: list[int]) -> list[int]:
    """Promote the due jobs of all queues, up to each caller's limit."""
    return [_promote(tx, limit) for limit in limits]


def _promote(tx: Transaction, limit: int) -> int:
    done = 0
    for row in tx.execute(sql("stats"), {"queue": None}).fetchall():
        if done < limit:
            done += promote_queue(tx, row[0], limit - done)
    return done
