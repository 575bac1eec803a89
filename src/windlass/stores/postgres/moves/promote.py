"""Promotion: scheduled jobs that have come due become pending."""

from collections.abc import Sequence

from windlass.core.commands import PromoteJobs
from windlass.core.states import State
from windlass.stores.postgres.moves import steps
from windlass.stores.postgres.moves.marks import lower_marks
from windlass.stores.postgres.work import Changes, Statement, Work, run


def promote_queues(changes: Changes, queues: Sequence[str], limit: int) -> Work[int]:
    """Promote up to `limit` due jobs of these queues, the earliest of each first; return how many."""
    # a promoted job keeps its place, which may be before a mark: the marks are held first, and lowered where that is so
    held = yield Statement("hold_marks", {"queues": sorted(set(queues))})
    promote_due = run(Statement("promote", {"now": changes.now, "queues": queues, "limit": limit}))
    rows = yield from steps.starts_waiting(changes, (), promote_due)
    if rows and any(marks for (marks,) in held):
        yield from lower_marks([row[:3] for row in rows])
    for queue, _, _, count in rows:
        changes.moved(queue, State.SCHEDULED, State.PENDING, count)
        changes.ready(queue)
    return sum(count for *_, count in rows)


def promote(changes: Changes, command: PromoteJobs) -> Work[int]:
    """Promote up to `limit` due jobs, of whichever queues; return how many."""
    rows = yield Statement("due_queues", {"now": changes.now})
    queues = sorted(row[0] for row in rows)
    if not queues:
        return 0
    done = yield from promote_queues(changes, queues, command.limit)
    yield from changes.flush()
    return done
