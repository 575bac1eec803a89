"""The four steps: every change of a job's state goes through them.

A step follows the statement that writes the state, in the same transaction. It counts the jobs and wakes those who
wait for such news. The fast ack, the promotion and the claim write many jobs in one statement, and have one step too.
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
    """Jobs wait in `state` from now on. Those that ran have gone through `stops_running` before."""
    tx.moved(jobs.queue, _counted(jobs), state, jobs.size)
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
    """Jobs run no more; `starts_waiting` or `ends` follows. With `ring`, waiters on the queue look again."""
    tx.moved(jobs.queue, State.RUNNING, None, jobs.size)
    if ring:
        tx.ready(jobs.queue)


def ends(tx: Transaction, jobs: Group, state: State, *, keep: bool) -> None:
    """Jobs have ended in `state`; the records of those that ran have gone through `stops_running` before."""
    tx.moved(jobs.queue, _counted(jobs), state if keep else None, jobs.size)
    tx.happened(jobs.queue, jobs.kind, _TOTAL[state], jobs.size)
    tx.topics.add(ENDS)


def _counted(jobs: Group) -> State | None:
    """Return the state in which the jobs are still counted: `stops_running` has counted those that ran."""
    return None if jobs.old is State.RUNNING else jobs.old
