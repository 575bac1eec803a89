"""Commands about jobs: each function executes one, inside of the store's atomic step."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from secrets import token_hex
from typing import Any

from examples.dictionary_store.tables import Record, Tables, lease_is_over, plain
from windlass.core import commands
from windlass.core.duration import later
from windlass.core.errors import IdConflict, JobConflict, UniqueConflict
from windlass.core.ids import JobId
from windlass.core.job import (
    Claim,
    Delivery,
    Enqueued,
    Failure,
    Job,
    LogLine,
    PreparedJob,
    Token,
    new_job,
    waiting_place,
)
from windlass.core.moving import HeldKey
from windlass.core.names import HISTORY_KEPT, LOG_LINES_KEPT
from windlass.core.queue_settings import NO_ROW
from windlass.core.requests import (
    CancelOutcome,
    Changed,
    Claimed,
    ClaimRequest,
    Renewed,
    Rescued,
    Settled,
    Settlement,
    SettleResult,
)
from windlass.core.retention import Retention
from windlass.core.states import ENDS as ENDED
from windlass.core.states import WAITING, State
from windlass.core.topics import ENDS, FLAGS, PAUSES, queue_topic
from windlass.core.unique import Hold, key_of
from windlass.core.verdict import (
    LEASE_EXPIRED,
    ORPHANED,
    ToCancelled,
    ToDead,
    ToReleased,
    ToRetry,
    ToSnoozed,
    ToSucceeded,
)


def enqueue(tables: Tables, command: commands.EnqueueJobs) -> list[Enqueued]:
    return [enqueue_one(tables, new) for new in command.jobs]


def enqueue_one(tables: Tables, new: PreparedJob) -> Enqueued:
    if (known := tables.jobs.get(new.id)) is not None:
        if (known.job.queue, known.job.kind, known.job.tenant) != (new.queue, new.kind, new.tenant):
            raise IdConflict(new.id, new.queue, new.kind, new.tenant)
        return Enqueued(new.id, created=False)
    run_at = new.run_at if new.delay is None else later(tables.now, new.delay)
    key, hold = None, new.unique
    if hold is not None:
        if (holder := tables.holder(hold.name)) is not None:
            return meet_holder(tables, new, hold, holder, run_at)
        expires_at = None if hold.hold_for is None else later(tables.now, hold.hold_for)
        key = tables.keys[hold.name] = HeldKey(hold.name, new.id, hold.until, expires_at, hold.digest)
    add(tables, Record(new_job(new, 0, tables.now, run_at), key))
    tables.write_kv(new.kv)
    return Enqueued(new.id, created=True)


def meet_holder(tables: Tables, new: PreparedJob, hold: Hold, holder: HeldKey, run_at: datetime | None) -> Enqueued:
    if hold.match_payload and hold.digest != holder.digest:
        raise UniqueConflict(hold.key, holder.job_id, "payload")
    if hold.on_conflict == "raise":
        raise UniqueConflict(hold.key, holder.job_id)
    if hold.on_conflict == "replace":
        record = tables.jobs.get(holder.job_id)
        if record is None or not record.job.state.waiting:
            raise UniqueConflict(hold.key, holder.job_id, "claimed")
        key = tables.keys[hold.name] = holder._replace(digest=hold.digest)
        state, run_at = waiting_place(run_at, tables.now)
        tables.change(record._replace(key=key), payload=new.payload, codec=new.codec, state=state, run_at=run_at)
        tables.write_kv(new.kv)
        tables.ring(queue_topic(record.job.queue))
    return Enqueued(holder.job_id, created=False)


def add(tables: Tables, record: Record) -> None:
    tables.last_seq += 1
    tables.queues.setdefault(record.job.queue, NO_ROW)
    tables.change(record, seq=tables.last_seq)
    tables.count(record.job, "enqueued")
    tables.ring(queue_topic(record.job.queue))


def claim(tables: Tables, command: commands.ClaimJobs) -> Claimed:
    request = command.request
    promote_due(tables, tables.records(State.SCHEDULED, queues=request.queues))
    places = {queue: place for place, queue in enumerate(dict.fromkeys(request.queues)) if not tables.is_paused(queue)}
    ready = [
        record
        for record in tables.records(State.PENDING, queues=places)
        if request.kinds is None or record.job.kind in request.kinds
    ]

    def urgency(record: Record) -> tuple[int, int, datetime, int]:
        place = 0 if request.by_priority else places[record.job.queue]
        return (place, record.job.priority, record.job.run_at, record.job.seq)

    return Claimed([claim_one(tables, record, request) for record in sorted(ready, key=urgency)[: request.limit]])


def claim_one(tables: Tables, record: Record, request: ClaimRequest) -> Claim:
    job, token = record.job, Token(token_hex(16))
    begun = Delivery(job.delivery + 1, job.attempt + 1, tables.now, None, request.worker, None)
    freed = job.unique_key is not None and record.key is not None and record.key.until == "claimed"
    if freed:
        free_key(tables, record)
    claimed = tables.change(
        record._replace(token=token, freed_key=freed),
        state=State.RUNNING,
        attempt=begun.attempt,
        delivery=begun.delivery,
        claimed_at=tables.now,
        lease_expires_at=later(tables.now, request.lease),
        worker=request.worker,
        progress=None,
        unique_key=None if freed else job.unique_key,
        history=(*job.history, begun)[-HISTORY_KEPT:],
    )
    return Claim(plain(claimed.job), token)


def settle(tables: Tables, command: commands.SettleClaims) -> list[SettleResult]:
    return [settle_one(tables, settlement) for settlement in command.settlements]


def settle_one(tables: Tables, settlement: Settlement) -> SettleResult:
    record = tables.jobs.get(settlement.job_id)
    if record is None or record.token != settlement.token:
        return Settled.LOST
    if record.job.state is not State.RUNNING:
        return Settled.REPEATED

    def write() -> Settled:
        end_claim(tables, record, settlement)
        for new in settlement.then:
            enqueue_one(tables, new)
        tables.write_kv(settlement.kv or {})
        return Settled.DONE

    try:
        return tables.undone_if_it_fails(write)
    except JobConflict as conflict:
        return conflict


def end_claim(tables: Tables, record: Record, settlement: Settlement) -> None:
    keep, attempt = settlement.keep, record.job.attempt
    match settlement.verdict:
        case ToSucceeded(result, codec):
            record = close(tables, record, "succeeded")
            end(tables, record, State.SUCCEEDED, keep=keep, result=result, result_codec=codec)
        case ToDead(failure):
            record = close(tables, record, "failed", failure)
            end(tables, record, State.DEAD, keep=keep, last_error=failure.summary)
        case ToCancelled(reason):
            record = close(tables, record, "cancelled")
            end(tables, record, State.CANCELLED, keep=keep, last_error=reason)
        case ToRetry(delay, failure):
            record = close(tables, record, "failed", failure)
            tables.count(record.job, "retried")
            wait(tables, record, later(tables.now, delay), last_error=failure.summary)
        case ToSnoozed(delay):
            record = close(tables, record, "snoozed")
            wait(tables, record, later(tables.now, delay), attempt=attempt - 1)
        case ToReleased(started):
            record = close(tables, record, "released")
            record = record if started else take_key_back(tables, record)
            wait(tables, record, tables.now, attempt=attempt - 1, run_at=record.job.run_at)


def close(tables: Tables, record: Record, outcome: str, failure: Failure | None = None) -> Record:
    """Write how the delivery that runs ended."""
    *before, last = record.job.history
    ended = last._replace(ended_at=tables.now, outcome=outcome, failure=failure)
    return tables.change(record, history=(*before, ended))


def wait(tables: Tables, record: Record, wanted: datetime, **fields: Any) -> None:  # noqa: ANN401 - fields of a job
    """Let a job wait again. A key that its claim has freed is not its own any more."""
    state, run_at = waiting_place(wanted, tables.now)
    fields = {"state": state, "run_at": run_at, "claimed_at": None, "lease_expires_at": None, "worker": None} | fields
    tables.change(record._replace(key=None if record.freed_key else record.key, freed_key=False), **fields)
    tables.ring(queue_topic(record.job.queue))


def end(tables: Tables, record: Record, state: State, *, keep: bool, **fields: Any) -> None:  # noqa: ANN401 - as above
    """End a job, and delete its record if it is not kept."""
    record = tables.change(record, state=state, finished_at=tables.now, lease_expires_at=None, **fields)
    if record.job.unique_key is not None:
        free_key(tables, record)
    tables.count(record.job, state.value)
    tables.ring(ENDS)
    if not keep:
        del tables.jobs[record.job.id]


def free_key(tables: Tables, record: Record) -> None:
    """Free the key that a job holds, unless only time frees it."""
    if record.key is not None and record.key.until != "time":
        holder = tables.keys.get(record.key.name)
        if holder is not None and holder.job_id == record.job.id:
            del tables.keys[record.key.name]


def take_key_back(tables: Tables, record: Record) -> Record:
    """Let a job hold the key again that its claim freed, if nothing else holds it."""
    key = record.key
    if not record.freed_key or key is None or tables.holder(key.name) is not None:
        return record
    tables.keys[key.name] = key
    return tables.change(record._replace(freed_key=False), unique_key=key_of(key.name))


def rescue(tables: Tables, command: commands.RescueClaims) -> list[Rescued]:
    request = command.request
    lost = [
        record
        for record in tables.records(State.RUNNING, queues=request.queues)
        if (request.force or lease_is_over(tables, record.job))
        and (request.workers is None or record.job.worker in request.workers)
    ]
    return [rescue_one(tables, record, command) for record in lost[: request.limit]]


def rescue_one(tables: Tables, record: Record, command: commands.RescueClaims) -> Rescued:
    request, job = command.request, record.job
    failure = ORPHANED if request.force and request.to == "dead" else LEASE_EXPIRED
    record = close(tables, record._replace(token=None), "rescued", failure)
    tables.count(job, "rescued")
    tables.ring(FLAGS)
    if request.to == "retry" and job.attempt < job.max_attempts:
        wait(tables, record, tables.now, last_error=failure.summary)
        return Rescued(job.id, State.PENDING)
    keep = command.retention.keeps(job.queue, State.DEAD)
    end(tables, record, State.DEAD, keep=keep, last_error=failure.summary)
    return Rescued(job.id, State.DEAD)


def renew(tables: Tables, command: commands.RenewClaims) -> list[Renewed | None]:
    answers: list[Renewed | None] = []
    for job_id, token in command.claims:
        record = held(tables, job_id, token)
        if record is not None:
            record = tables.change(record, lease_expires_at=later(tables.now, command.lease))
        answers.append(
            None if record is None else Renewed(later(tables.now, command.lease), record.job.cancel_requested)
        )
    return answers


def note(tables: Tables, command: commands.WriteNotes) -> list[bool | None]:
    answers: list[bool | None] = []
    for each in command.notes:
        if (record := held(tables, each.job_id, each.token)) is not None:
            job = record.job
            lines = tuple(LogLine(tables.now, level, text, job.delivery) for level, text in each.lines)
            tables.change(record, progress=each.progress or job.progress, log=(*job.log, *lines)[-LOG_LINES_KEPT:])
        answers.append(record is not None)
    return answers


def held(tables: Tables, job_id: JobId, token: Token) -> Record | None:
    record = tables.jobs.get(job_id)
    return record if record is not None and record.job.state is State.RUNNING and record.token == token else None


def cancel(tables: Tables, command: commands.CancelJobs) -> list[CancelOutcome]:
    return [cancel_one(tables, job_id, command.retention) for job_id in command.ids]


def cancel_one(tables: Tables, job_id: JobId, retention: Retention) -> CancelOutcome:
    record = tables.jobs.get(job_id)
    if record is None or record.job.state.finished:
        return CancelOutcome.NOT_FOUND
    if record.job.state is State.RUNNING:
        tables.change(record, cancel_requested=True)
        tables.ring(FLAGS)
        return CancelOutcome.REQUESTED
    end(tables, record, State.CANCELLED, keep=retention.keeps(record.job.queue, State.CANCELLED))
    return CancelOutcome.REMOVED


def change_jobs(
    tables: Tables, ids: Iterable[JobId], states: Collection[State], change: Callable[[Record], Changed]
) -> list[Changed]:
    """Change each of these jobs that is in one of `states`."""
    answers: list[Changed] = []
    for job_id in ids:
        record = tables.jobs.get(job_id)
        if record is None:
            answers.append(Changed.NOT_FOUND)
        else:
            answers.append(change(record) if record.job.state in states else Changed.WRONG_STATE)
    return answers


def retry(tables: Tables, command: commands.RetryJobs) -> list[Changed]:
    def retry_one(record: Record) -> Changed:
        job, key = record.job, record.key if record.job.unique_key is not None else None
        if key is not None:
            holder = tables.holder(key.name)
            if holder is not None and holder.job_id != job.id:
                return Changed.KEY_HELD
            if key.until != "time":
                tables.keys[key.name] = key
        ended_at, outcome = job.finished_at or tables.now, "cancelled" if job.state is State.CANCELLED else "failed"
        *before, last = job.history or [Delivery(0, 0, ended_at, ended_at, None, outcome)]
        cleared = {"last_error": None, "finished_at": None, "result": None, "result_codec": None}
        history = (*before, last._replace(retried_at=tables.now))
        wait(tables, record, tables.now, attempt=0, cancel_requested=False, history=history, **cleared)
        return Changed.DONE

    return change_jobs(tables, command.ids, {State.DEAD, State.CANCELLED}, retry_one)


def delete(tables: Tables, command: commands.DeleteJobs) -> list[Changed]:
    def delete_one(record: Record) -> Changed:
        del tables.jobs[record.job.id]
        return Changed.DONE

    return change_jobs(tables, command.ids, ENDED, delete_one)


def reschedule(tables: Tables, command: commands.RescheduleJobs) -> list[Changed]:
    def reschedule_one(record: Record) -> Changed:
        state, run_at = waiting_place(command.run_at, tables.now)
        tables.change(record, state=state, run_at=run_at)
        tables.ring(queue_topic(record.job.queue))
        return Changed.DONE

    return change_jobs(tables, command.ids, WAITING, reschedule_one)


def set_queue_settings(tables: Tables, command: commands.SetQueueSettings) -> None:
    before, paused = tables.queues.get(command.queue, NO_ROW), command.settings.paused
    tables.queues[command.queue] = before.changed(command.settings, command.layer)
    if paused is not None:
        tables.ring(PAUSES if paused else queue_topic(command.queue))


def promote(tables: Tables, command: commands.PromoteJobs) -> int:
    return promote_due(tables, tables.records(State.SCHEDULED), command.limit)


def promote_due(tables: Tables, scheduled: list[Record], limit: int | None = None) -> int:
    due = [record for record in scheduled if record.job.run_at <= tables.now][:limit]
    for record in due:
        tables.change(record, state=State.PENDING)
        tables.ring(queue_topic(record.job.queue))
    return len(due)


def prune(tables: Tables, command: commands.PruneRecords) -> int:
    now, retention = tables.now, command.retention
    oldest: dict[tuple[str, State], list[Job]] = {}
    for record in tables.jobs.values():
        if record.job.state.finished:
            oldest.setdefault((record.job.queue, record.job.state), []).append(record.job)
    over: list[Job] = []
    for (queue, state), jobs in oldest.items():
        jobs.sort(key=lambda job: (job.finished_at or now, job.seq))
        keep, too_many = (
            retention.keep(queue).for_state(state),
            0 if retention.most is None else len(jobs) - retention.most,
        )
        over += [
            job
            for place, job in enumerate(jobs)
            if place < too_many or (keep is not None and later(job.finished_at or now, keep) <= now)
        ]
    for job in over[: command.limit]:
        del tables.jobs[job.id]
    tables.prune_other_records()
    return len(over[: command.limit])
