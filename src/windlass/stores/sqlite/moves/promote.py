"""Promotion: scheduled jobs that have come due become pending."""

from windlass.core.commands import PromoteJobs
from windlass.core.states import State
from windlass.stores.sqlite.damaged import has_unreadable
from windlass.stores.sqlite.moves import steps
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import Transaction


def promote_queue(tx: Transaction, queue: str, limit: int) -> int:
    """Promote the due jobs of one queue, the earliest first; return how many."""
    due = tx.row("next_due", {"queue": queue})[0]
    if due is None or due > tx.now:
        return 0
    count = tx.run("promote", {"queue": queue, "now": tx.now, "limit": limit})
    steps.starts_waiting(tx, steps.Group(queue, None, State.SCHEDULED, count, ()), State.PENDING)
    return count


def promote(tx: Transaction, command: PromoteJobs) -> int:
    """Promote the due jobs of all queues, up to the limit."""
    done = 0
    for row in tx.execute(sql("stats"), {"queue": None}).fetchall():
        if done < command.limit and not has_unreadable(row):
            done += promote_queue(tx, row[0], command.limit - done)
    return done
