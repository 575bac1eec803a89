"""A job as a record of Python."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from windlass.core.ids import JobId
from windlass.core.job import Delivery, Failure, Job, LogLine, PreparedJob, Progress, Token
from windlass.core.names import HISTORY_KEPT
from windlass.core.states import State
from windlass.core.unique import Hold

NOWHERE: Final = 0

Ended: TypeAlias = tuple[int, int, datetime, datetime, str | None, str, Failure | None]
"""A `Delivery` that has ended. The garbage collector soon leaves plain tuples of plain values alone, but not others."""


class Record(msgspec.Struct, gc=False, array_like=True):
    """One job, changed in place; readers get a `Job` of the moment.

    `token` is that of the last claim until the job is claimed again or rescued, so a repeated settlement is known
    by it. `hold` is the key that the job holds or could take back. `place` is where a store in memory lets it stand.
    A record leads to nothing that leads back to it, so the garbage collector need not look at it: with a million jobs
    that is what takes its time.
    """

    seq: int
    created_at: datetime
    run_at: datetime
    id: JobId
    queue: str
    kind: str | None
    payload: bytes
    codec: str
    headers: Mapping[str, str]
    tenant: str | None
    priority: int
    max_attempts: int
    hold: Hold | None
    unique_key: str | None
    parent_id: JobId | None
    schedule_id: str | None
    limit_key: str | None
    state: State = State.PENDING
    place: int = NOWHERE
    attempt: int = 0
    delivery: int = 0
    claimed_at: datetime | None = None
    lease_expires_at: datetime | None = None
    finished_at: datetime | None = None
    worker: str | None = None
    token: Token | None = None
    last_error: str | None = None
    result: bytes | None = None
    result_codec: str | None = None
    progress: Progress | None = None
    cancel_requested: bool = False
    history: tuple[Ended, ...] = ()
    log: tuple[LogLine, ...] = ()

    def job(self, history: tuple[Delivery, ...] = (), log: tuple[LogLine, ...] = ()) -> Job:
        """Return the job as it is now."""
        return Job(
            self.seq,
            self.id,
            self.queue,
            self.kind,
            self.payload,
            self.codec,
            self.headers,
            self.tenant,
            self.priority,
            self.state,
            self.attempt,
            self.max_attempts,
            self.delivery,
            self.created_at,
            self.run_at,
            self.claimed_at,
            self.lease_expires_at,
            self.finished_at,
            self.worker,
            self.last_error,
            self.result,
            self.result_codec,
            self.progress,
            self.cancel_requested,
            self.unique_key,
            self.parent_id,
            self.schedule_id,
            self.limit_key,
            history,
            log,
        )

    def whole_job(self) -> Job:
        """Return the job as it is now, with its history and log."""
        history = [Delivery(*ended) for ended in self.history]
        if self.state is State.RUNNING:
            history.append(Delivery(self.delivery, self.attempt, self._started_at(), None, self.worker, None))
        return self.job(tuple(history[-HISTORY_KEPT:]), self.log)

    def end_delivery(self, now: datetime, outcome: str, failure: Failure | None) -> None:
        """Write how the delivery that runs ended."""
        ended = (self.delivery, self.attempt, self._started_at(), now, self.worker, outcome, failure)
        self.history = (*self.history, ended)[-HISTORY_KEPT:]

    def _started_at(self) -> datetime:
        return self.claimed_at or self.created_at


def record_of(job: Job, hold: Hold | None) -> Record:
    """Return the record of a waiting job of another store; it stands nowhere yet, and has no number."""
    ended = tuple(
        (each.delivery, each.attempt, each.started_at, each.ended_at, each.worker, each.outcome, each.failure)
        for each in job.history
        if each.ended_at is not None and each.outcome is not None
    )
    return Record(
        0, job.created_at, job.run_at, job.id, job.queue, job.kind, job.payload, job.codec, job.headers, job.tenant,
        job.priority, job.max_attempts, hold, job.unique_key, job.parent_id, job.schedule_id, job.limit_key,
        state=job.state,
        attempt=job.attempt,
        delivery=job.delivery,
        last_error=job.last_error,
        result=job.result,
        result_codec=job.result_codec,
        progress=job.progress,
        cancel_requested=job.cancel_requested,
        history=ended,
        log=tuple(job.log),
    )  # fmt: skip


def new_record(seq: int, given: PreparedJob, now: datetime, run_at: datetime) -> Record:
    """Return the record of a job that stands nowhere yet."""
    (
        job_id, queue, kind, payload, codec, headers, tenant, priority, max_attempts,
        _, _, hold, _, parent_id, schedule_id, limit_key,
    ) = given  # fmt: skip
    return Record(
        seq, now, run_at, job_id, queue, kind, payload, codec, headers, tenant, priority, max_attempts,
        hold, None if hold is None else hold.key, parent_id, schedule_id, limit_key,
    )  # fmt: skip
