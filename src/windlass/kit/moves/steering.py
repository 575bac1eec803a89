"""What services and operators do to jobs that they do not hold."""

from datetime import datetime

from windlass.core.duration import later
from windlass.core.ids import JobId
from windlass.core.requests import CancelOutcome, Changed, Rescued, RescueRequest
from windlass.core.retention import Retention
from windlass.core.states import State
from windlass.core.topics import FLAGS
from windlass.core.verdict import LEASE_EXPIRED, ORPHANED
from windlass.kit.moves.record import Record
from windlass.kit.moves.table import RESCUED, Table


def cancel(table: Table, job_id: JobId, retention: Retention, now: datetime) -> CancelOutcome:
    """End a waiting job, or flag a running one."""
    record = table.jobs.get(job_id)
    if record is None or record.state.finished:
        return CancelOutcome.NOT_FOUND
    if record.state is State.RUNNING:
        record.cancel_requested = True
        table.changed(record)
        table.news.add(FLAGS)
        return CancelOutcome.REQUESTED
    table.ends(record, State.CANCELLED, now, keep=retention.keeps(record.queue, State.CANCELLED))
    return CancelOutcome.REMOVED


def retry(table: Table, job_id: JobId, now: datetime) -> Changed:
    """Give a dead or cancelled job a full new budget, pending now."""
    record = table.jobs.get(job_id)
    if record is None:
        return Changed.NOT_FOUND
    if record.state not in {State.DEAD, State.CANCELLED}:
        return Changed.WRONG_STATE
    if not _takes_key_again(table, record, now):
        return Changed.KEY_HELD
    record.note_retry(now)
    record.attempt = 0
    record.last_error = record.finished_at = record.result = record.result_codec = None
    record.cancel_requested = False
    table.wait_for(record, now, now)
    return Changed.DONE


def _takes_key_again(table: Table, record: Record, now: datetime) -> bool:
    if record.hold is None:
        return True
    holder = table.holds.holder(record.hold.name, now)
    if holder is not None:
        return holder.job_id == record.id
    if record.hold.until != "time":
        table.holds.take(record.hold, record.id, now)
    return True


def delete(table: Table, job_id: JobId) -> Changed:
    """Delete a finished job."""
    record = table.jobs.get(job_id)
    if record is None:
        return Changed.NOT_FOUND
    if not record.state.finished:
        return Changed.WRONG_STATE
    table.remove(record)
    return Changed.DONE


def reschedule(table: Table, job_id: JobId, run_at: datetime | None, now: datetime) -> Changed:
    """Let a waiting job run at `run_at`, or now."""
    record = table.jobs.get(job_id)
    if record is None:
        return Changed.NOT_FOUND
    if not record.state.waiting:
        return Changed.WRONG_STATE
    table.wait_for(record, now if run_at is None else max(run_at, now), now)
    return Changed.DONE


def rescue(table: Table, record: Record, request: RescueRequest, retention: Retention, now: datetime) -> Rescued:
    """Take one claim back: to pending now while attempts are left, else to dead."""
    dead = request.to == "dead" or record.attempt >= record.max_attempts
    failure = ORPHANED if request.force and request.to == "dead" else LEASE_EXPIRED
    table.stops_running(record, now, "rescued", failure)
    table.queue(record.queue).count(RESCUED, record.kind, now)
    record.token = None
    # whoever held it may be waiting for news that it should stop
    table.news.add(FLAGS)
    if dead:
        table.ends(record, State.DEAD, now, keep=retention.keeps(record.queue, State.DEAD))
        return Rescued(record.id, State.DEAD)
    table.holds.give_up(record)
    table.wait_for(record, now, now)
    return Rescued(record.id, State.PENDING)


def past_retention(
    finished_at: datetime, ended: int, *, queue: str, state: State, retention: Retention, now: datetime
) -> bool:
    """Whether the first of `ended` records of a queue and end is to go."""
    if retention.most is not None and ended > retention.most:
        return True
    keep = retention.keep(queue).for_state(state)
    return keep is not None and later(finished_at, keep) <= now
