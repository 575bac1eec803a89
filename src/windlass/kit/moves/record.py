"""A job as a record of Python."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from windlass.core.ids import JobId
from windlass.core.job import Delivery, Failure, Job, LogLine, PreparedJob, Progress, Token, job_from_columns
from windlass.core.names import HISTORY_KEPT, MAX_NAME, MAX_PRIORITY
from windlass.core.states import State
from windlass.core.unique import Hold
from windlass.kit.records import details_of

NOWHERE: Final = 0

Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
Moment: TypeAlias = Annotated[datetime, Meta(tz=True)]
"""What is stored may be anything: these types refuse what could be read, and would fail wherever it is used."""

Ended: TypeAlias = tuple[int, int, Moment, Moment, str | None, str, tuple[str, str | None, str | None] | None]
"""A `Delivery` that has ended. The garbage collector soon leaves plain tuples of plain values alone, but not others."""


class Record(msgspec.Struct, gc=False, array_like=True):
    """One job, changed in place; readers get a `Job` of the moment.

    `token` is that of the last claim until the job is claimed again or rescued, so a repeated settlement is known
    by it. `hold` is the key that the job holds or could take back. `place` is where a store in memory lets it stand.
    `damage` is what could not be read of a stored record: no worker is given such a job.
    `has_followers` says that other jobs wait for the end of this one.
    A record leads to nothing that leads back to it, so the garbage collector need not look at it: with a million jobs
    that is what takes its time.
    """

    seq: Count
    created_at: Moment
    run_at: Moment
    id: JobId
    queue: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
    kind: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)] | None
    payload: bytes
    codec: Annotated[str, Meta(min_length=1)]
    headers: Mapping[str, str]
    tenant: str | None
    priority: Annotated[int, Meta(ge=0, le=MAX_PRIORITY)]
    max_attempts: Count
    hold: Hold | None
    unique_key: str | None
    parent_id: JobId | None
    schedule_id: str | None
    limit_key: str | None
    state: State = State.PENDING
    place: int = NOWHERE
    attempt: Count = 0
    delivery: Count = 0
    claimed_at: Moment | None = None
    lease_expires_at: Moment | None = None
    finished_at: Moment | None = None
    worker: str | None = None
    token: Token | None = None
    last_error: str | None = None
    result: bytes | None = None
    result_codec: str | None = None
    progress: Progress | None = None
    cancel_requested: bool = False
    history: tuple[Ended, ...] = ()
    log: tuple[LogLine, ...] = ()
    details: tuple[tuple[Count, str | None, Moment | None], ...] = ()
    damage: str | None = None
    has_followers: bool = False

    def job(self, history: tuple[Delivery, ...] = (), log: tuple[LogLine, ...] = ()) -> Job:
        """Return the job as it is now."""
        columns = (
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
        )
        apart = (history, log, self.damage)
        return job_from_columns(columns + apart)

    def whole_job(self) -> Job:
        """Return the job as it is now, with its history and log."""
        history = self._ended_deliveries()
        if self.state is State.RUNNING:
            history.append(Delivery(self.delivery, self.attempt, self._started_at(), None, self.worker, None))
        return self.job(tuple(history[-HISTORY_KEPT:]), self.log)

    def end_delivery(self, now: datetime, outcome: str, failure: Failure | None) -> None:
        """Write how the delivery that runs ended."""
        text = None if failure is None else (failure.message, failure.type, failure.traceback)
        ended = (self.delivery, self.attempt, self._started_at(), now, self.worker, outcome, text)
        self.history = (*self.history, ended)[-HISTORY_KEPT:]
        if failure is not None and failure.module is not None:
            self._add_detail(failure.module, None)

    def note_retry(self, now: datetime) -> None:
        """Write that an operator retries the job, which is still as it ended."""
        if not self.delivery and not self.history:
            ended_at = self.finished_at or now
            outcome = "cancelled" if self.state is State.CANCELLED else "failed"
            self.history = ((0, 0, ended_at, ended_at, None, outcome, None),)
        self._add_detail(None, now)

    def _add_detail(self, module: str | None, retried_at: datetime | None) -> None:
        """Add to what is known of the last delivery; of deliveries whose history has gone nothing is kept."""
        number = self.delivery
        others = [each for each in self.details if number - HISTORY_KEPT < each[0] != number]
        known = next((each for each in self.details if each[0] == number), (number, None, None))
        self.details = (*others, (number, known[1] if module is None else module, retried_at or known[2]))

    def _ended_deliveries(self) -> list[Delivery]:
        details = {number: (module, retried_at) for number, module, retried_at in self.details}
        deliveries: list[Delivery] = []
        for number, attempt, started_at, ended_at, worker, outcome, text in self.history:
            module, retried_at = details.get(number, (None, None))
            failure = None if text is None else Failure(*text, module)
            deliveries.append(Delivery(number, attempt, started_at, ended_at, worker, outcome, failure, retried_at))
        return deliveries

    def _started_at(self) -> datetime:
        return self.claimed_at or self.created_at


def record_of(job: Job, hold: Hold | None) -> Record:
    """Return the record of a waiting job of another store; it stands nowhere yet, and has no number."""
    ended = tuple(
        (
            each.delivery, each.attempt, each.started_at, each.ended_at, each.worker, each.outcome,
            None if each.failure is None else (each.failure.message, each.failure.type, each.failure.traceback),
        )
        for each in job.history
        if each.ended_at is not None and each.outcome is not None
    )  # fmt: skip
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
        details=details_of(job.history),
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
