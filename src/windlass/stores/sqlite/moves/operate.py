"""What people do to jobs: cancel, retry, delete, reschedule, pause."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from windlass.core.duration import to_micros
from windlass.core.ids import JobId
from windlass.core.requests import CancelOutcome, Changed
from windlass.core.retention import Retention
from windlass.core.states import State
from windlass.core.topics import ENDS, FLAGS, PAUSES, queue_topic
from windlass.stores.sqlite.moves import ends, holds
from windlass.stores.sqlite.rows import Standing
from windlass.stores.sqlite.transaction import CANCELLED, Transaction


class CancelCall(NamedTuple):
    """Jobs to cancel, and whether their records stay."""

    ids: Sequence[JobId]
    retention: Retention


class RescheduleCall(NamedTuple):
    """Waiting jobs, and when they shall run."""

    ids: Sequence[JobId]
    run_at: datetime | None


class PauseCall(NamedTuple):
    """A queue, and whether claims are given from it."""

    queue: str
    paused: bool


def cancel(tx: Transaction, calls: list[CancelCall]) -> list[list[CancelOutcome]]:
    """End waiting jobs and flag running ones."""
    return [[_cancel(tx, job_id, call.retention) for job_id in call.ids] for call in calls]


def retry(tx: Transaction, calls: list[Sequence[JobId]]) -> list[list[Changed]]:
    """Give dead and cancelled jobs a new life."""
    return [[_change(tx, job_id, {State.DEAD, State.CANCELLED}, _retry) for job_id in ids] for ids in calls]


def delete(tx: Transaction, calls: list[Sequence[JobId]]) -> list[list[Changed]]:
    """Delete finished jobs."""
    ended = {State.SUCCEEDED, State.DEAD, State.CANCELLED}
    return [[_change(tx, job_id, ended, _delete) for job_id in ids] for ids in calls]


def reschedule(tx: Transaction, calls: list[RescheduleCall]) -> list[list[Changed]]:
    """Give waiting jobs another time."""
    waiting = {State.SCHEDULED, State.PENDING}
    return [
        [_change(tx, job_id, waiting, lambda tx, job: _reschedule(tx, job, call.run_at)) for job_id in call.ids]  # noqa: B023 - called at once
        for call in calls
    ]


def set_paused(tx: Transaction, calls: list[PauseCall]) -> list[None]:
    """Stop or start giving claims from queues."""
    for call in calls:
        tx.run("pause", (call.queue, int(call.paused)))
        tx.topics.add(PAUSES if call.paused else queue_topic(call.queue))
    return [None] * len(calls)


def _standing(tx: Transaction, job_id: JobId) -> Standing | None:
    row = tx.row("standing", (job_id,))
    return None if row is None else Standing(*row)


def _cancel(tx: Transaction, job_id: JobId, retention: Retention) -> CancelOutcome:
    job = _standing(tx, job_id)
    if job is None or job.state.finished:
        return CancelOutcome.NOT_FOUND
    if job.state is State.RUNNING:
        tx.run("flag", (job.seq,))
        tx.topics.add(FLAGS)
        return CancelOutcome.REQUESTED
    keep = retention.keeps(job.queue, State.CANCELLED)
    holds.free_at_end(tx, job.id, job.hold if job.unique_key else None, job.hold_until)
    if keep:
        tx.run("cancel", {"seq": job.seq, "now": tx.now})
    else:
        ends.forget(tx, job.seq)
    tx.moved(job.queue, job.state, State.CANCELLED if keep else None)
    tx.happened(job.queue, job.kind, CANCELLED)
    tx.topics.add(ENDS)
    return CancelOutcome.REMOVED


def _change(
    tx: Transaction, job_id: JobId, states: set[State], write: Callable[[Transaction, Standing], Changed]
) -> Changed:
    job = _standing(tx, job_id)
    if job is None:
        return Changed.NOT_FOUND
    return write(tx, job) if job.state in states else Changed.WRONG_STATE


def _retry(tx: Transaction, job: Standing) -> Changed:
    if not holds.take_again(tx, job):
        return Changed.KEY_HELD
    tx.run("retry", {"seq": job.seq, "now": tx.now})
    tx.moved(job.queue, job.state, State.PENDING)
    tx.ready(job.queue)
    return Changed.DONE


def _delete(tx: Transaction, job: Standing) -> Changed:
    ends.forget(tx, job.seq)
    tx.moved(job.queue, job.state, None)
    return Changed.DONE


def _reschedule(tx: Transaction, job: Standing, run_at: datetime | None) -> Changed:
    at = tx.now if run_at is None else max(to_micros(run_at), tx.now)
    state = State.SCHEDULED if at > tx.now else State.PENDING
    tx.run("reschedule", {"seq": job.seq, "state": str(state), "run_at": at})
    tx.moved(job.queue, job.state, state)
    tx.ready(job.queue)
    return Changed.DONE
