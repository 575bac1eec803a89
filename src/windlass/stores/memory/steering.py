"""What services and operators do to jobs that they do not hold."""

from datetime import datetime
from itertools import chain

from windlass.core.duration import later
from windlass.core.ids import JobId
from windlass.core.retention import Retention
from windlass.core.states import ENDS, State
from windlass.core.store import CancelOutcome, Changed, Rescued, RescueRequest
from windlass.core.topics import FLAGS
from windlass.core.verdict import LEASE_EXPIRED, ORPHANED
from windlass.stores.memory.queues import Queue
from windlass.stores.memory.records import Record
from windlass.stores.memory.table import Table
from windlass.stores.memory.tally import RESCUED


def cancel(table: Table, job_id: JobId, retention: Retention, now: datetime) -> CancelOutcome:
    """End a waiting job, or flag a running one."""
    record = table.jobs.get(job_id)
    if record is None or record.state.finished:
        return CancelOutcome.NOT_FOUND
    if record.state is State.RUNNING:
        record.cancel_requested = True
        table.news.add(FLAGS)
        return CancelOutcome.REQUESTED
    table.end(record, State.CANCELLED, now, keep=retention.keeps(record.queue, State.CANCELLED))
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
    record.attempt = 0
    record.last_error = record.finished_at = record.result = record.result_codec = None
    record.cancel_requested = False
    table.wait(record, now, now)
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
    table.wait(record, now if run_at is None else max(run_at, now), now)
    return Changed.DONE


def rescue(table: Table, request: RescueRequest, retention: Retention, now: datetime) -> list[Rescued]:
    """Take back claims whose lease ran out, or with `force` all."""
    names = table.queues if request.queues is None else dict.fromkeys(request.queues)
    queues = [table.queues[name] for name in names if name in table.queues]
    until = None if request.force else now
    rescued: list[Rescued] = []
    for record in chain.from_iterable(queue.leases.until(until) for queue in queues):
        if len(rescued) >= request.limit:
            break
        if request.workers is None or record.worker in request.workers:
            rescued.append(_rescue(table, record, request, retention, now))
    return rescued


def _rescue(table: Table, record: Record, request: RescueRequest, retention: Retention, now: datetime) -> Rescued:
    dead = request.to == "dead" or record.attempt >= record.max_attempts
    failure = ORPHANED if request.force and request.to == "dead" else LEASE_EXPIRED
    table.fail(record, now, "rescued", failure)
    table.queue_of(record).tally.count(RESCUED, record.kind, now)
    record.token = None
    # whoever held it may be waiting for news that it should stop
    table.news.add(FLAGS)
    if dead:
        table.end(record, State.DEAD, now, keep=retention.keeps(record.queue, State.DEAD))
        return Rescued(record.id, State.DEAD)
    table.holds.give_up(record)
    table.wait(record, now, now)
    return Rescued(record.id, State.PENDING)


def promote(table: Table, limit: int, now: datetime) -> int:
    """Make scheduled jobs that have come due pending."""
    done = 0
    for queue in table.queues.values():
        promoted = queue.promote(now, limit - done)
        if promoted:
            table.news.add(queue.topic)
        done += promoted
    return done


def prune(table: Table, retention: Retention, limit: int, now: datetime) -> int:
    """Delete finished records past their retention, the oldest first; return how many."""
    done = 0
    for queue in table.queues.values():
        for state in ENDS:
            while done < limit and (record := _past_retention(queue, state, retention, now)) is not None:
                table.remove(record)
                done += 1
    return done


def _past_retention(queue: Queue, state: State, retention: Retention, now: datetime) -> Record | None:
    ended = queue.ends[state]
    first = ended.first()
    if first is None or first.finished_at is None:
        return None
    if retention.most is not None and ended.members > retention.most:
        return first
    keep = retention.keep(queue.name).for_state(state)
    return first if keep is not None and later(first.finished_at, keep) <= now else None
