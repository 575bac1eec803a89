"""What people do to jobs: cancel, retry, delete, reschedule."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from windlass.core.commands import CancelJobs, DeleteJobs, RescheduleJobs, RetryJobs
from windlass.core.duration import to_micros
from windlass.core.errors import StoreCorrupt, WindlassError
from windlass.core.ids import JobId
from windlass.core.requests import CancelOutcome, Changed
from windlass.core.retention import Retention
from windlass.core.states import State
from windlass.core.topics import FLAGS
from windlass.stores.sqlite.moves import delivery_ends, holds, steps
from windlass.stores.sqlite.moves.set_aside import standing
from windlass.stores.sqlite.rows import Standing
from windlass.stores.sqlite.transaction import Transaction

T = TypeVar("T")


def cancel(tx: Transaction, command: CancelJobs) -> list[CancelOutcome] | WindlassError:
    """End waiting jobs and flag running ones."""
    return _each(command.ids, lambda job_id: _cancel(tx, job_id, command.retention))


def retry(tx: Transaction, command: RetryJobs) -> list[Changed] | WindlassError:
    """Give dead and cancelled jobs a new life."""
    return _each(command.ids, lambda job_id: _change(tx, job_id, {State.DEAD, State.CANCELLED}, _retry))


def delete(tx: Transaction, command: DeleteJobs) -> list[Changed] | WindlassError:
    """Delete finished jobs."""
    ended = {State.SUCCEEDED, State.DEAD, State.CANCELLED}
    return _each(command.ids, lambda job_id: _change(tx, job_id, ended, _delete))


def reschedule(tx: Transaction, command: RescheduleJobs) -> list[Changed] | WindlassError:
    """Give waiting jobs another time."""

    def change(tx: Transaction, job: Standing) -> Changed:
        return _reschedule(tx, job, command.run_at)

    return _each(command.ids, lambda job_id: _change(tx, job_id, {State.SCHEDULED, State.PENDING}, change))


def _each(ids: Sequence[JobId], change: Callable[[JobId], T]) -> list[T] | WindlassError:
    """Change each job; the error of a damaged one is the answer, and the others are changed all the same."""
    done: list[T] = []
    damaged: list[StoreCorrupt] = []
    for job_id in ids:
        try:
            done.append(change(job_id))
        except StoreCorrupt as error:
            damaged.append(error)
    if not damaged:
        return done
    if len(ids) == 1:
        return damaged[0]
    message = "; ".join(map(str, damaged))
    return StoreCorrupt(f"{message}. Of the {len(ids):,} jobs of this call, the others were dealt with")


def _cancel(tx: Transaction, job_id: JobId, retention: Retention) -> CancelOutcome:
    job = standing(tx, job_id)
    if job is None or job.state.finished:
        return CancelOutcome.NOT_FOUND
    if job.state is State.RUNNING:
        tx.run("flag", {"seq": job.seq})
        tx.topics.add(FLAGS)
        return CancelOutcome.REQUESTED
    keep = retention.keeps(job.queue, State.CANCELLED)
    holds.free_at_end(tx, job.id, job.hold if job.unique_key else None, job.hold_until)
    if keep:
        tx.run("cancel", {"seq": job.seq, "now": tx.now})
    else:
        delivery_ends.forget(tx, job.seq)
    steps.ends(tx, steps.group_of(job), State.CANCELLED, keep=keep)
    return CancelOutcome.REMOVED


def _change(
    tx: Transaction, job_id: JobId, states: set[State], write: Callable[[Transaction, Standing], Changed]
) -> Changed:
    job = standing(tx, job_id)
    if job is None:
        return Changed.NOT_FOUND
    return write(tx, job) if job.state in states else Changed.WRONG_STATE


def _retry(tx: Transaction, job: Standing) -> Changed:
    if not holds.take_again(tx, job):
        return Changed.KEY_HELD
    delivery_ends.note_retry(tx, job)
    tx.run("retry", {"seq": job.seq, "now": tx.now})
    steps.starts_waiting(tx, steps.group_of(job), State.PENDING)
    return Changed.DONE


def _delete(tx: Transaction, job: Standing) -> Changed:
    delivery_ends.forget(tx, job.seq)
    tx.moved(job.queue, job.state, None)
    return Changed.DONE


def _reschedule(tx: Transaction, job: Standing, run_at: datetime | None) -> Changed:
    at = tx.now if run_at is None else max(to_micros(run_at), tx.now)
    state = State.SCHEDULED if at > tx.now else State.PENDING
    tx.run("reschedule", {"seq": job.seq, "state": str(state), "run_at": at})
    steps.starts_waiting(tx, steps.group_of(job), state)
    return Changed.DONE
