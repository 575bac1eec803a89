"""Rows to records and back."""

from datetime import datetime
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec

from windlass.core.duration import from_micros
from windlass.core.ids import JobId
from windlass.core.job import Claim, Delivery, Failure, Job, LogLine, Progress, Token
from windlass.core.states import State
from windlass.kit.records import STATES, headers_of, whole_history


class Standing(NamedTuple):
    """What a move needs to know of a job; the columns of `standing.sql` and `expired.sql`."""

    seq: int
    id: JobId
    queue: str
    kind: str | None
    state_name: str
    attempt: int
    max_attempts: int
    delivery: int
    run_at: int
    claimed_at: int | None
    worker: str | None
    token: Token | None
    unique_key: str | None
    hold: str | None
    hold_until: str | None
    log_lines: int

    @property
    def state(self) -> State:
        """Where the job stands."""
        return STATES[self.state_name]


class ClaimedRow(NamedTuple):
    """The columns that `claim.sql` and `claim_these.sql` return."""

    seq: int
    id: JobId
    queue: str
    kind: str | None
    payload: bytes
    codec: str
    headers: str | None
    tenant: str | None
    priority: int
    attempt: int
    max_attempts: int
    delivery: int
    created_at: int
    run_at: int
    last_error: str | None
    cancel_requested: int
    unique_key: str | None
    parent_id: JobId | None
    schedule_id: str | None
    limit_key: str | None
    token: Token
    hold_until: str | None
    hold: str | None


_COLUMN: Final = {name: at for at, name in enumerate(ClaimedRow._fields)}
PLACE: Final = itemgetter(_COLUMN["priority"], _COLUMN["run_at"], _COLUMN["seq"])
"""Where the job of a claimed row stood in its queue; rows stay plain tuples, since there is one for every job."""
_UNIQUE_KEY: Final = _COLUMN["unique_key"]
_HOLD_UNTIL: Final = _COLUMN["hold_until"]


def frees_key(row: tuple[Any, ...]) -> bool:
    """Whether this claim is the one that frees the unique key of its job."""
    return row[_HOLD_UNTIL] == "claimed" and row[_UNIQUE_KEY] is not None


class JobRow(NamedTuple):
    """The columns that `get.sql`, `jobs.sql` and `dead_jobs.sql` select."""

    seq: int
    id: JobId
    queue: str
    kind: str | None
    payload: bytes
    codec: str
    headers: str | None
    tenant: str | None
    priority: int
    state: str
    attempt: int
    max_attempts: int
    delivery: int
    created_at: int
    run_at: int
    claimed_at: int | None
    lease_expires_at: int | None
    finished_at: int | None
    worker: str | None
    last_error: str | None
    result: bytes | None
    result_codec: str | None
    progress: str | None
    cancel_requested: int
    unique_key: str | None
    parent_id: JobId | None
    schedule_id: str | None
    limit_key: str | None
    log_lines: int


def claim_of(row: tuple[Any, ...], claimed_at: datetime, lease_expires_at: datetime, worker: str | None) -> Claim:
    """Return the claim that a row of `ClaimedRow`'s columns proves."""
    (
        seq, job_id, queue, kind, payload, codec, headers, tenant, priority, attempt, max_attempts, delivery, created,
        run_at, last_error, cancel_requested, unique_key, parent_id, schedule_id, limit_key, token, hold_until, _,
    ) = row  # fmt: skip
    created_at = from_micros(created)
    job = Job(
        seq, job_id, queue, kind, payload, codec, headers_of(headers), tenant, priority, State.RUNNING, attempt,
        max_attempts, delivery, created_at, created_at if run_at == created else from_micros(run_at), claimed_at,
        lease_expires_at, None, worker, last_error, None, None, None, bool(cancel_requested),
        None if hold_until == "claimed" else unique_key, parent_id, schedule_id, limit_key,
    )  # fmt: skip
    return Claim(job, token)


def job_of(row: JobRow) -> Job:
    """Return the job of a row, without history and log."""
    return Job(
        seq=row.seq,
        id=row.id,
        queue=row.queue,
        kind=row.kind,
        payload=row.payload,
        codec=row.codec,
        headers=headers_of(row.headers),
        tenant=row.tenant,
        priority=row.priority,
        state=STATES[row.state],
        attempt=row.attempt,
        max_attempts=row.max_attempts,
        delivery=row.delivery,
        created_at=from_micros(row.created_at),
        run_at=from_micros(row.run_at),
        claimed_at=moment(row.claimed_at),
        lease_expires_at=moment(row.lease_expires_at),
        finished_at=moment(row.finished_at),
        worker=row.worker,
        last_error=row.last_error,
        result=row.result,
        result_codec=row.result_codec,
        progress=None if row.progress is None else Progress(*msgspec.json.decode(row.progress)),
        cancel_requested=bool(row.cancel_requested),
        unique_key=row.unique_key,
        parent_id=row.parent_id,
        schedule_id=row.schedule_id,
        limit_key=row.limit_key,
    )


def history_of(job: Job, ended: list[tuple[Any, ...]]) -> tuple[Delivery, ...]:
    """Return the deliveries of `job`: those that `deliveries.sql` kept and the one that the job itself tells of."""
    return whole_history(job, [delivery_of(row) for row in ended])


def delivery_of(row: tuple[Any, ...]) -> Delivery:
    """Return a delivery of a row of `deliveries.sql`."""
    failure = None if row[6] is None else Failure(row[6], row[7], row[8])
    return Delivery(row[0], row[1], from_micros(row[2]), from_micros(row[3]), row[4], row[5], failure)


def log_line_of(row: tuple[Any, ...]) -> LogLine:
    """Return a line of a row of `log.sql`."""
    return LogLine(from_micros(row[0]), row[1], row[2], row[3])


def moment(micros: int | None) -> datetime | None:
    """Return the point in time, or None."""
    return None if micros is None else from_micros(micros)


def json_list(values: list[Any]) -> str:
    """Return a JSON array, for `json_each`."""
    return msgspec.json.encode(values).decode()
