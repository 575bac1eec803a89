"""The four steps: every change of a job's state goes through them.

A step comes after the statement that writes the state, in the same transaction; that of a claim runs the statement. It
counts the jobs, and wakes those who wait for such news. Jobs that one statement writes go through a step together.
Deleting a job that had ended is no step: `operate.delete`, the pruner and a store that is left count it by themselves.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from windlass.core.states import State
from windlass.core.topics import ENDS
from windlass.stores.sqlite.rows import CLAIMED_QUEUE, Standing
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import CANCELLED, DEAD, ENQUEUED, SUCCEEDED, Transaction

_TOTAL: Final = {State.SUCCEEDED: SUCCEEDED, State.DEAD: DEAD, State.CANCELLED: CANCELLED}


class Group(NamedTuple):
    """Jobs of one queue and kind that leave the same state; `old` is None for new jobs.

    `seqs` are their sequence numbers. A promotion knows neither these nor the kinds: what is to be done for each job of
    it is done in `promote.sql`.
    """

    queue: str
    kind: str | None
    old: State | None
    size: int
    seqs: Sequence[int]


def group_of(job: Standing) -> Group:
    """Return one job as a group."""
    return Group(job.queue, job.kind, job.state, 1, (job.seq,))


def starts_waiting(tx: Transaction, jobs: Group, state: State) -> None:
    """Jobs wait in `state` from now on; `stops_running` comes before, for those that ran."""
    tx.moved(jobs.queue, jobs.old, state, jobs.size)
    if jobs.old is None:
        tx.happened(jobs.queue, jobs.kind, ENQUEUED, jobs.size)
    tx.ready(jobs.queue)


def starts_running(tx: Transaction, statement: str, values: dict[str, object]) -> list[tuple[Any, ...]]:
    """Claim jobs by `statement`; return the rows of the jobs, which have the columns of `ClaimedRow`."""
    rows = tx.execute(sql(statement), values).fetchall()
    counts: dict[str, int] = {}
    for row in rows:
        queue = row[CLAIMED_QUEUE]
        counts[queue] = counts.get(queue, 0) + 1
    for queue, count in counts.items():
        tx.moved(queue, State.PENDING, State.RUNNING, count)
    return rows


def stops_running(tx: Transaction, jobs: Group, *, ring: bool = False) -> None:
    """Jobs run no more; `starts_waiting` or `ends` comes next, and counts them.

    With `ring`, waiters on the queue look again.
    """
    if ring:
        tx.ready(jobs.queue)


def ends(tx: Transaction, jobs: Group, state: State, *, keep: bool) -> None:
    """Jobs have ended in `state`; `stops_running` comes before, for those that ran.

    Without `keep` their records are gone.
    """
    tx.moved(jobs.queue, jobs.old, state if keep else None, jobs.size)
    tx.happened(jobs.queue, jobs.kind, _TOTAL[state], jobs.size)
    tx.topics.add(ENDS)
