"""Rows to records and back."""

import re
from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec

from windlass.core.ids import JobId
from windlass.core.job import NO_HEADERS, Claim, Delivery, Failure, Job, LogLine, Progress, Token
from windlass.core.names import LOG_LINES_KEPT
from windlass.core.states import State
from windlass.kit.records import STATES, headers_of, in_utf8, whole_history
from windlass.stores.postgres.work import Row

NO_TOKEN: Final = Token("00000000-0000-0000-0000-000000000000")
"""A token that no claim has: tokens are random UUIDs, whose version is never 0."""
_TOKEN: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


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
    priority: int
    run_at: datetime
    claimed_at: datetime | None
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
    """The columns that a claim returns."""

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
    created_at: datetime
    run_at: datetime
    last_error: str | None
    cancel_requested: bool
    unique_key: str | None
    parent_id: JobId | None
    schedule_id: str | None
    limit_key: str | None
    token: Token
    hold_until: str | None
    hold: str | None


_COLUMN: Final = {name: at for at, name in enumerate(ClaimedRow._fields)}
PLACE: Final = itemgetter(_COLUMN["priority"], _COLUMN["run_at"], _COLUMN["seq"])
"""Where the job of a claimed row stood in its queue; rows stay as the driver gives them: there is one for every job."""
_UNIQUE_KEY: Final = _COLUMN["unique_key"]
_HOLD_UNTIL: Final = _COLUMN["hold_until"]


def frees_key(row: Row) -> bool:
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
    created_at: datetime
    run_at: datetime
    claimed_at: datetime | None
    lease_expires_at: datetime | None
    finished_at: datetime | None
    worker: str | None
    last_error: str | None
    result: bytes | None
    result_codec: str | None
    progress: str | None
    cancel_requested: bool
    unique_key: str | None
    parent_id: JobId | None
    schedule_id: str | None
    limit_key: str | None
    log_lines: int


class DeliveryRow(NamedTuple):
    """How a delivery ended, as `get.sql` tells it."""

    delivery: int
    attempt: int
    started_at: datetime
    ended_at: datetime
    worker: str | None
    outcome: str
    message: str | None
    type: str | None
    traceback: str | None


_deliveries_decoder = msgspec.json.Decoder(list[DeliveryRow])
_log_decoder = msgspec.json.Decoder(list[LogLine])


def claim_of(row: Row, claimed_at: datetime, lease_expires_at: datetime, worker: str | None) -> Claim:
    """Return the claim that a row of `ClaimedRow`'s columns proves."""
    (
        seq, job_id, queue, kind, payload, codec, headers, tenant, priority, attempt, max_attempts, delivery, created,
        run_at, last_error, cancel_requested, unique_key, parent_id, schedule_id, limit_key, token, hold_until, _,
    ) = row  # fmt: skip
    job = Job(
        seq, job_id, queue, kind, payload, codec, NO_HEADERS if headers is None else headers_of(headers), tenant,
        priority, State.RUNNING, attempt, max_attempts, delivery, created, run_at, claimed_at, lease_expires_at,
        None, worker, last_error, None, None, None, cancel_requested,
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
        created_at=row.created_at,
        run_at=row.run_at,
        claimed_at=row.claimed_at,
        lease_expires_at=row.lease_expires_at,
        finished_at=row.finished_at,
        worker=row.worker,
        last_error=row.last_error,
        result=row.result,
        result_codec=row.result_codec,
        progress=None if row.progress is None else Progress(*msgspec.json.decode(row.progress)),
        cancel_requested=row.cancel_requested,
        unique_key=row.unique_key,
        parent_id=row.parent_id,
        schedule_id=row.schedule_id,
        limit_key=row.limit_key,
    )


def history_of(job: Job, ended: Sequence[DeliveryRow]) -> tuple[Delivery, ...]:
    """Return the deliveries of `job`: those that were kept and the one that the job itself tells of."""
    return whole_history(job, [delivery_of(row) for row in ended])


def delivery_of(row: DeliveryRow) -> Delivery:
    """Return a delivery that `get.sql` found."""
    failure = None if row.message is None else Failure(row.message, row.type, row.traceback)
    return Delivery(row.delivery, row.attempt, row.started_at, row.ended_at, row.worker, row.outcome, failure)


def deliveries_of(text: str | None) -> list[DeliveryRow]:
    """Return the deliveries in a row of `get.sql`."""
    return [] if text is None else _deliveries_decoder.decode(text)


def log_of(text: str | None) -> tuple[LogLine, ...]:
    """Return the log in a row of `get.sql`."""
    return () if text is None else tuple(_log_decoder.decode(text)[-LOG_LINES_KEPT:])


def json_text(value: Any) -> str:  # noqa: ANN401 - whatever JSON can say
    """Return a value as JSON."""
    return msgspec.json.encode(value).decode()


def plain_text(text: str) -> str:
    """Return a text that Postgres can keep: it knows no zero character, and only what UTF-8 can say."""
    return in_utf8(text).replace("\0", "\\0")


def possible_token(token: str) -> Token:
    """Return a caller's token if it can be one, else one that no claim has: nothing else reaches a uuid parameter."""
    return Token(token) if _TOKEN.fullmatch(token) else NO_TOKEN
