"""What a store must do, as a small pure model.

Written from the reference of moves alone, so that a mistake in a store is not copied into it. It holds everything in
plain dictionaries and is as slow as it likes. The tokens are the store's own: the model is told them after a claim.
"""

from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from windlass.core.duration import later
from windlass.core.errors import IdConflict, JobConflict, NotAtomicHere, UniqueConflict
from windlass.core.ids import JobId
from windlass.core.job import (
    Delivery,
    Enqueued,
    Failure,
    Job,
    LogLine,
    Note,
    PreparedJob,
    Token,
    new_job,
    waiting_place,
)
from windlass.core.names import HISTORY_KEPT, LOG_LINES_KEPT
from windlass.core.requests import (
    CancelOutcome,
    Changed,
    ClaimRequest,
    Rescued,
    RescueRequest,
    Settled,
    Settlement,
    SettleResult,
)
from windlass.core.retention import Retention
from windlass.core.schedule import Fired, FireOutcome, Firing
from windlass.core.states import State
from windlass.core.stats import Totals
from windlass.core.unique import Hold, digest
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
from windlass.testing.kv_model import KvModel
from windlass.testing.model_record import Record
from windlass.testing.one_queue import needs_more
from windlass.testing.prune_rule import pruned_well
from windlass.testing.schedule_model import ScheduleModel

Minute: TypeAlias = tuple[datetime, str, str]
"""A minute, a queue and a kind."""


@dataclass
class Holder:
    """Who holds a unique key, and until when if time frees it."""

    job_id: JobId
    digest: bytes
    ends_at: datetime | None


@dataclass
class Model:
    """A store without I/O; `now` is set by whoever drives it."""

    now: datetime
    atomic_across_queues: bool = True
    """Whether one call may touch several queues; else it raises `NotAtomicHere` and does nothing."""
    homes: dict[JobId, str] = field(default_factory=dict[JobId, str])
    """The queue of every job that ever was or will be, told by whoever names it; one for all copies of the model."""
    jobs: dict[JobId, Record] = field(default_factory=dict[JobId, Record])
    holders: dict[str, Holder] = field(default_factory=dict[str, Holder])
    kv: KvModel = field(default_factory=KvModel)
    paused: dict[str, bool] = field(default_factory=dict[str, bool])
    """Every known queue, and whether it is paused."""
    schedules: ScheduleModel = field(default_factory=ScheduleModel)
    counts: dict[Minute, dict[str, int]] = field(default_factory=dict[Minute, dict[str, int]])
    gone: set[Token] = field(default_factory=set[Token])
    """Tokens that settled a job whose record was deleted: a store need not remember them."""
    busy: frozenset[JobId] = frozenset()
    """Jobs that another call may have in hand: a claim and a rescue need not wait for them, and may pass them by."""
    made: int = 0

    def copy(self) -> "Model":
        """Return another model that knows the same."""
        return replace(
            self,
            jobs={job_id: copy(record) for job_id, record in self.jobs.items()},
            holders={name: copy(holder) for name, holder in self.holders.items()},
            kv=self.kv.copy(),
            paused=dict(self.paused),
            schedules=self.schedules.copy(),
            counts={minute: dict(counts) for minute, counts in self.counts.items()},
            gone=set(self.gone),
        )

    def put_in_line(self, line: Iterable[JobId], *, after: int) -> None:
        """Give the jobs that were made after the first `after` ones the order of `line`."""
        later_ones = [record for job_id in line if (record := self.jobs.get(job_id)) and record.job.seq > after]
        places = sorted(record.job.seq for record in later_ones)
        for record, place in zip(later_ones, places, strict=True):
            record.job = record.job._replace(seq=place)

    def enqueue(self, jobs: Sequence[PreparedJob]) -> list[Enqueued]:
        """Put jobs in line, all or none."""
        if jobs:
            self._check_reach(jobs, jobs[0].queue)
        before = self.copy()
        try:
            return [self._enqueue(new) for new in jobs]
        except JobConflict:
            self.__dict__.update(before.__dict__)
            raise

    def _check_reach(self, jobs: Sequence[PreparedJob], queue: str) -> None:
        if not self.atomic_across_queues and needs_more(jobs, queue):
            raise NotAtomicHere("this call")

    def _enqueue(self, new: PreparedJob) -> Enqueued:
        if new.id in self.jobs:
            old = self.jobs[new.id].job
            if (old.queue, old.kind, old.tenant) != (new.queue, new.kind, new.tenant):
                raise IdConflict(new.id, new.queue, new.kind, new.tenant)
            return Enqueued(new.id, created=False)
        key = new.unique
        if key is not None and (holder := self._holder(key.name)) is not None:
            return self._meet(new, key, holder)
        self.made += 1
        self.jobs[new.id] = Record(new_job(new, self.made, self.now, self._wanted(new)), key)
        self.paused.setdefault(new.queue, False)
        if key is not None:
            ends_at = None if key.hold_for is None else later(self.now, key.hold_for)
            self.holders[key.name] = Holder(new.id, key.digest, ends_at)
        self.kv.put(new.kv)
        self._count(self.jobs[new.id], "enqueued")
        return Enqueued(new.id, created=True)

    def _meet(self, new: PreparedJob, key: Hold, holder: Holder) -> Enqueued:
        if key.on_conflict == "raise" or (key.match_payload and key.digest != holder.digest):
            raise UniqueConflict(key.key, holder.job_id)
        if key.on_conflict == "replace":
            record = self.jobs.get(holder.job_id)
            if record is None or not record.job.state.waiting:
                raise UniqueConflict(key.key, holder.job_id)
            state, run_at = waiting_place(self._wanted(new), self.now)
            record.job = record.job._replace(payload=new.payload, codec=new.codec, state=state, run_at=run_at)
            holder.digest = key.digest
            self.kv.put(new.kv)
        return Enqueued(holder.job_id, created=False)

    def claim(self, request: ClaimRequest, answer: Collection[JobId]) -> list[Record]:
        """Return the jobs that are to be given, in order; `give` then hands each to its token."""
        if request.by_priority and not self.atomic_across_queues and len(set(request.queues)) > 1:
            raise NotAtomicHere("this claim")
        passed = self.busy.difference(answer)
        self.promote(request.queues)
        places = {queue: place for place, queue in enumerate(dict.fromkeys(request.queues))}
        ready = [r for r in self._in(State.PENDING) if r.job.queue in places and _wants(request, r.job)]
        ready.sort(key=lambda r: (r.job.priority, r.job.run_at, r.job.seq))
        if not request.by_priority:
            ready.sort(key=lambda r: places[r.job.queue])
        return [r for r in ready if not self.paused.get(r.job.queue) and r.job.id not in passed][: request.limit]

    def give(self, record: Record, token: Token, request: ClaimRequest) -> None:
        """Let `token` hold the job."""
        job = record.job
        record.token, record.settled_by = token, None
        if record.key is not None and record.key.until == "claimed":
            self._free(record)
            record.key, record.freed = None, record.key
        begun = Delivery(job.delivery + 1, job.attempt + 1, self.now, None, request.worker, None)
        record.job = job._replace(
            state=State.RUNNING,
            attempt=begun.attempt,
            delivery=begun.delivery,
            claimed_at=self.now,
            lease_expires_at=later(self.now, request.lease),
            worker=request.worker,
            progress=None,
            unique_key=None if record.key is None else record.key.key,
            history=(*job.history, begun)[-HISTORY_KEPT:],
        )

    def settle(self, settlement: Settlement) -> SettleResult:
        """Write how one claim ended, or nothing at all; what can never be done is refused whoever asks."""
        if not self.atomic_across_queues and (
            settlement.kv or needs_more(settlement.then, self.homes[settlement.job_id])
        ):
            return NotAtomicHere("this settlement")
        record = self.jobs.get(settlement.job_id)
        if record is None or record.token != settlement.token:
            known = record is not None and record.settled_by == settlement.token
            return Settled.REPEATED if known else Settled.LOST
        before = self.copy()
        try:
            self._end_claim(record, settlement)
            for new in settlement.then:
                self._enqueue(new)
            self.kv.put(settlement.kv or {})
        except JobConflict as conflict:
            self.__dict__.update(before.__dict__)
            return conflict
        return Settled.DONE

    def _end_claim(self, record: Record, settlement: Settlement) -> None:
        record.settled_by = settlement.token
        match settlement.verdict:
            case ToSucceeded(result, codec):
                record.job = record.job._replace(result=result, result_codec=codec)
                self._close(record, "succeeded")
                self._finish(record, State.SUCCEEDED, keep=settlement.keep)
            case ToDead(failure):
                self._close(record, "failed", failure)
                self._finish(record, State.DEAD, keep=settlement.keep, error=failure.summary)
            case ToCancelled(reason):
                self._close(record, "cancelled")
                self._finish(record, State.CANCELLED, keep=settlement.keep, error=reason)
            case ToRetry(delay, failure):
                self._close(record, "failed", failure)
                self._count(record, "retried")
                self._wait(record, later(self.now, delay), error=failure.summary)
            case ToSnoozed(delay):
                self._close(record, "snoozed")
                self._wait(record, later(self.now, delay), charge=False)
            case ToReleased(started):
                self._close(record, "released")
                if record.freed is not None and not started and self._holder(record.freed.name) is None:
                    self._hold(record, record.freed)
                self._wait(record, record.job.run_at, charge=False)

    def renew(self, job_id: JobId, token: Token, lease: timedelta) -> bool:
        """Extend a lease; False with a stale token."""
        record = self._held(job_id, token)
        if record is None:
            return False
        record.job = record.job._replace(lease_expires_at=later(self.now, lease))
        return True

    def note(self, note: Note) -> bool:
        """Write progress and log lines; False with a stale token."""
        record = self._held(note.job_id, note.token)
        if record is None:
            return False
        job = record.job
        lines = tuple(LogLine(self.now, level, text, job.delivery) for level, text in note.lines)
        record.job = job._replace(progress=note.progress or job.progress, log=(*job.log, *lines)[-LOG_LINES_KEPT:])
        return True

    def cancel(self, job_id: JobId, retention: Retention) -> CancelOutcome:
        """End a waiting job, flag a running one."""
        record = self.jobs.get(job_id)
        if record is None or record.job.state.finished:
            return CancelOutcome.NOT_FOUND
        if record.job.state is State.RUNNING:
            record.job = record.job._replace(cancel_requested=True)
            return CancelOutcome.REQUESTED
        self._finish(record, State.CANCELLED, keep=retention.keeps(record.job.queue, State.CANCELLED))
        return CancelOutcome.REMOVED

    def retry(self, job_id: JobId) -> Changed:
        """Give an ended job a new budget."""
        record = self.jobs.get(job_id)
        if record is None:
            return Changed.NOT_FOUND
        if record.job.state not in {State.DEAD, State.CANCELLED}:
            return Changed.WRONG_STATE
        if (key := record.key) is not None:
            holder = self._holder(key.name)
            if holder is not None and holder.job_id != job_id:
                return Changed.KEY_HELD
            if key.until != "time":
                self._hold(record, key)
        self._note_retry(record)
        self._wait(record, self.now)
        record.job = record.job._replace(
            attempt=0, last_error=None, finished_at=None, result=None, result_codec=None, cancel_requested=False
        )
        return Changed.DONE

    def delete(self, job_id: JobId) -> Changed:
        """Delete an ended job."""
        record = self.jobs.get(job_id)
        if record is None:
            return Changed.NOT_FOUND
        if not record.job.state.finished:
            return Changed.WRONG_STATE
        self._drop(record)
        return Changed.DONE

    def reschedule(self, job_id: JobId, run_at: datetime | None) -> Changed:
        """Let a waiting job run at another time."""
        record = self.jobs.get(job_id)
        if record is None:
            return Changed.NOT_FOUND
        if not record.job.state.waiting:
            return Changed.WRONG_STATE
        state, at = waiting_place(run_at, self.now)
        record.job = record.job._replace(state=state, run_at=at)
        return Changed.DONE

    def rescue(self, request: RescueRequest, retention: Retention, answer: Collection[JobId]) -> list[Rescued]:
        """Take claims back."""
        passed = self.busy.difference(answer)
        lost = [record for record in self._lost(request) if record.job.id not in passed]
        return [self._rescue(record, request, retention) for record in lost]

    def _lost(self, request: RescueRequest) -> Iterable[Record]:
        for record in self._in(State.RUNNING):
            job = record.job
            expired = job.lease_expires_at is not None and job.lease_expires_at <= self.now
            in_queue = request.queues is None or job.queue in request.queues
            of_worker = request.workers is None or job.worker in request.workers
            if in_queue and of_worker and (expired or request.force):
                yield record

    def _rescue(self, record: Record, request: RescueRequest, retention: Retention) -> Rescued:
        job = record.job
        failure = ORPHANED if request.force and request.to == "dead" else LEASE_EXPIRED
        self._close(record, "rescued", failure)
        self._count(record, "rescued")
        if job.attempt < job.max_attempts and request.to == "retry":
            self._wait(record, self.now, error=failure.summary)
            return Rescued(job.id, State.PENDING)
        self._finish(record, State.DEAD, keep=retention.keeps(job.queue, State.DEAD), error=failure.summary)
        return Rescued(job.id, State.DEAD)

    def promote(self, queues: Collection[str] | None = None) -> None:
        """Make what has come due pending."""
        for record in self._in(State.SCHEDULED):
            if record.job.run_at <= self.now and (queues is None or record.job.queue in queues):
                record.job = record.job._replace(state=State.PENDING)

    def prune(self, removed: Collection[JobId], retention: Retention) -> bool:
        """Delete what the store deleted; return whether that is what it had to delete.

        Among records that ended in the same moment a store may choose, hence the question and not the answer.
        """
        ended = [record.job for record in self.jobs.values() if record.job.state.finished]
        for job in ended:
            if job.id in removed:
                self._drop(self.jobs[job.id])
        places = {(job.queue, job.state) for job in ended}
        return all(pruned_well(ended, removed, retention, self.now, place) for place in places)

    def fire(self, firing: Firing) -> Fired:
        """Make the jobs of a schedule and move it on, or nothing at all."""
        own = self.schedules.by_id.get(firing.schedule_id)
        last = None if own is None else own.last_job_id
        if own is not None and own.revision == firing.revision:
            self._check_reach(firing.jobs, own.queue)
        if own is None or not self.schedules.may_fire(firing, self.now):
            return Fired(FireOutcome.LOST, last)
        before = None if last is None else self.jobs.get(last)
        if own.overlap == "skip" and firing.jobs and before is not None and not before.job.state.finished:
            self.schedules.skip(firing)
            return Fired(FireOutcome.OVERLAPS, last)
        made = [enqueued.id for enqueued in self.enqueue(firing.jobs)]
        self.schedules.fire(firing, made[-1] if made else None)
        return Fired(FireOutcome.DONE, made[-1] if made else last)

    def totals(self, queue: str) -> Totals:
        """Return what ever happened on a queue."""
        sums = dict.fromkeys(Totals._fields, 0)
        for (_, of, _), counts in self.counts.items():
            for name, count in counts.items():
                sums[name] += count if of == queue else 0
        return Totals(**sums)

    def _held(self, job_id: JobId, token: Token) -> Record | None:
        record = self.jobs.get(job_id)
        return record if record is not None and record.token == token else None

    def _holder(self, name: str) -> Holder | None:
        holder = self.holders.get(name)
        over = holder is not None and holder.ends_at is not None and holder.ends_at <= self.now
        return None if over else holder

    def _hold(self, record: Record, key: Hold) -> None:
        record.key = key
        record.job = record.job._replace(unique_key=key.key)
        self.holders[key.name] = Holder(record.job.id, digest(record.job.payload), None)

    def _free(self, record: Record) -> None:
        if record.key is None or record.key.until == "time":
            return
        holder = self.holders.get(record.key.name)
        if holder is not None and holder.job_id == record.job.id:
            del self.holders[record.key.name]

    def _in(self, state: State) -> list[Record]:
        return [record for record in self.jobs.values() if record.job.state is state]

    def _wanted(self, new: PreparedJob) -> datetime | None:
        return new.run_at if new.delay is None else later(self.now, new.delay)

    def _wait(self, record: Record, run_at: datetime, *, charge: bool = True, error: str | None = None) -> None:
        job, record.token, record.freed = record.job, None, None
        record.job = job._replace(
            state=State.SCHEDULED if run_at > self.now else State.PENDING,
            attempt=job.attempt if charge else job.attempt - 1,
            run_at=run_at,
            last_error=error or job.last_error,
            claimed_at=None,
            lease_expires_at=None,
            worker=None,
        )

    def _finish(self, record: Record, end: State, *, keep: bool, error: str | None = None) -> None:
        job, record.token, record.freed = record.job, None, None
        record.job = job._replace(
            state=end, finished_at=self.now, lease_expires_at=None, last_error=error or job.last_error
        )
        self._free(record)
        self._count(record, end.value)
        if not keep:
            self._drop(record)

    def _close(self, record: Record, outcome: str, failure: Failure | None = None) -> None:
        *before, last = record.job.history
        ended = last._replace(ended_at=self.now, outcome=outcome, failure=failure)
        record.job = record.job._replace(history=(*before, ended))

    def _note_retry(self, record: Record) -> None:
        job = record.job
        ended_at = job.finished_at or self.now
        *before, last = job.history or [Delivery(0, 0, ended_at, ended_at, None, "cancelled")]
        record.job = job._replace(history=(*before, last._replace(retried_at=self.now)))

    def _drop(self, record: Record) -> None:
        if record.settled_by is not None:
            self.gone.add(record.settled_by)
        del self.jobs[record.job.id]

    def _count(self, record: Record, name: str) -> None:
        minute = self.now.replace(second=0, microsecond=0)
        counts = self.counts.setdefault((minute, record.job.queue, record.job.kind or ""), {})
        counts[name] = counts.get(name, 0) + 1


def _wants(request: ClaimRequest, job: Job) -> bool:
    return request.kinds is None or job.kind in request.kinds
