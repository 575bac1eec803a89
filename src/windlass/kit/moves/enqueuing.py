"""Enqueue: all jobs of a call or none."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from windlass.core.duration import later
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.states import State
from windlass.core.unique import Hold
from windlass.kit.job_ids import check_repeat
from windlass.kit.moves.holds import Holder, holder_for, live, refuse
from windlass.kit.moves.record import Record
from windlass.kit.moves.table import Table


def enqueue(table: Table, jobs: Sequence[PreparedJob], now: datetime) -> list[Enqueued]:
    """Put jobs in line in their order; raises a `JobConflict` before anything is written."""
    check(table, jobs, now)
    return put(table, jobs, now)


class Ahead(NamedTuple):
    """What will be different by the time that jobs are put in line: keys with another holder or none, ids, jobs."""

    holders: Mapping[str, Holder | None] = {}
    gone: JobId | None = None
    waiting: JobId | None = None


_PENDING: Final = State.PENDING
AS_IT_IS: Final = Ahead()


def check(table: Table, jobs: Sequence[PreparedJob], now: datetime, ahead: Ahead = AS_IT_IS) -> None:
    """Raise `IdConflict` or `UniqueConflict` if one of `jobs` would be refused by its id or its key; write nothing."""
    plain = {job.id for job in jobs if job.unique is None}
    if len(plain) == len(jobs) and table.jobs.keys().isdisjoint(plain):
        return
    look = _Look(table, now, ahead)
    for job in jobs:
        look.add(job)


class _Look:
    """A look over a batch: what each job would find once those before it are in line."""

    def __init__(self, table: Table, now: datetime, ahead: Ahead) -> None:
        self._table = table
        self._now = now
        self._gone = ahead.gone
        self._waiting = ahead.waiting
        self._holders = dict(ahead.holders)
        self._new: dict[JobId, PreparedJob] = {}

    def add(self, job: PreparedJob) -> None:
        """Raise `IdConflict` or `UniqueConflict` if the job would be refused."""
        found = self._new.get(job.id) or (None if job.id == self._gone else self._table.jobs.get(job.id))
        if found is not None:
            check_repeat(job, found)
        elif job.unique is None or self._takes(job.unique, job.id):
            self._new[job.id] = job

    def _takes(self, hold: Hold, job_id: JobId) -> bool:
        holder = self._holder(hold.name)
        if holder is None:
            self._holders[hold.name] = holder_for(hold, job_id, self._now)
            return True
        refuse(hold, holder, waiting=self._waits(holder.job_id))
        if hold.on_conflict == "replace":
            self._holders[hold.name] = Holder(holder.job_id, hold.digest, holder.ends_at)
        return False

    def _holder(self, name: str) -> Holder | None:
        if name in self._holders:
            return live(self._holders[name], self._now)
        return self._table.holds.holder(name, self._now)

    def _waits(self, job_id: JobId) -> bool:
        record = self._table.jobs.get(job_id)
        return job_id in self._new or job_id == self._waiting or (record is not None and record.state.waiting)


def put(table: Table, jobs: Sequence[PreparedJob], now: datetime) -> list[Enqueued]:
    """Put jobs in line whose ids and keys were checked."""
    ids: list[JobId] = []
    created: list[bool] = []
    for job in jobs:
        job_id = job.id
        is_new = False
        if job_id in table.jobs:
            pass
        elif job.unique is not None and (holder := table.holds.holder(job.unique.name, now)) is not None:
            _hit(table, job, job.unique, holder, now)
            job_id = holder.job_id
        else:
            _create(table, job, now)
            is_new = True
        ids.append(job_id)
        created.append(is_new)
    return list(map(Enqueued, ids, created))


def _create(table: Table, job: PreparedJob, now: datetime) -> None:
    run_at = now if job.run_at is None and job.delay is None else _run_at(job, now)
    record = table.add(job, now, run_at)
    state = State.SCHEDULED if run_at is not now and run_at > now else _PENDING
    table.starts_waiting(record, state, now, is_new=True)
    if job.unique is not None:
        table.holds.take(job.unique, job.id, now)
    if job.kv:
        table.put_values(job.kv)


def _hit(table: Table, job: PreparedJob, hold: Hold, holder: Holder, now: datetime) -> None:
    record = table.jobs.get(holder.job_id)
    if hold.on_conflict != "replace" or record is None:
        return
    _replace(record, job, hold)
    table.holds.rewrite(hold.name, holder, hold.digest)
    table.wait_for(record, _run_at(job, now), now)
    table.put_values(job.kv)


def _replace(record: Record, job: PreparedJob, hold: Hold) -> None:
    record.payload, record.codec = job.payload, job.codec
    if record.hold is not None:
        record.hold = record.hold._replace(digest=hold.digest)


def _run_at(job: PreparedJob, now: datetime) -> datetime:
    """Return when a job is to run; a time in the past counts as now."""
    if job.run_at is not None:
        return max(job.run_at, now)
    return now if job.delay is None else later(now, job.delay)
