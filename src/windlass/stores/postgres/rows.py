"""Rows to records and back."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from windlass.core.ids import JobId
from windlass.core.job import (
    NO_HEADERS,
    NOTHING_APART,
    Claim,
    Delivery,
    Failure,
    Job,
    LogLine,
    Progress,
    Token,
    job_from_columns,
)
from windlass.core.names import LOG_LINES_KEPT
from windlass.core.states import State
from windlass.kit.damage import DECODE_ERRORS, Unreadable, read_damaged_job
from windlass.kit.records import STATES, headers_of, in_utf8, whole_history
from windlass.stores.postgres.timestamps import out_of_range
from windlass.stores.postgres.work import Row

T = TypeVar("T")

NO_TOKEN: Final = Token("00000000-0000-0000-0000-000000000000")
"""A token that no claim has: tokens are random UUIDs, whose version is never 0."""
_TOKEN: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def state_of(name: str) -> State:
    """Return a state by its stored name; a job whose state does not read is neither waiting nor running."""
    return STATES.get(name, State.DEAD)


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
        return state_of(self.state_name)


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
    module: str | None
    retried_at: datetime | None


_deliveries_decoder = msgspec.json.Decoder(list[DeliveryRow])
_log_decoder = msgspec.json.Decoder(list[LogLine])
_progress_decoder = msgspec.json.Decoder(Progress)


def claim_of(row: Row, claimed_at: datetime, lease_expires_at: datetime, worker: str | None) -> Claim:
    """Return the claim that a row of `ClaimedRow`'s columns proves."""
    (
        seq, job_id, queue, kind, payload, codec, headers, tenant, priority, attempt, max_attempts, delivery, created,
        run_at, last_error, cancel_requested, unique_key, parent_id, schedule_id, limit_key, token, hold_until, _,
    ) = row  # fmt: skip
    columns = (
        seq, job_id, queue, kind, payload, codec, NO_HEADERS if headers is None else headers_of(headers), tenant,
        priority, State.RUNNING, attempt, max_attempts, delivery, created, run_at, claimed_at, lease_expires_at,
        None, worker, last_error, None, None, None, cancel_requested,
        None if hold_until == "claimed" else unique_key, parent_id, schedule_id, limit_key,
    )  # fmt: skip
    job = job_from_columns(columns + NOTHING_APART)
    return Claim(job, token)


def damage_of_claim(row: Row) -> str:
    """Return why `claim_of` failed for a row."""
    job = read_damaged_job(_by_name(ClaimedRow(*row)._asdict() | {"state": str(State.RUNNING)}))
    return job.damage or "it does not decode"


def job_of(row: JobRow) -> Job:
    """Return the job of a row, without history and log; what cannot be read of it is named in its `damage`."""
    times = (row.created_at, row.run_at, row.claimed_at, row.lease_expires_at, row.finished_at)
    if row.queue and row.codec and not any(map(out_of_range, times)):
        try:
            return sound_job(row)
        except DECODE_ERRORS:
            pass
    return read_damaged_job(_by_name(row._asdict()))


def readable(values: Iterable[object]) -> tuple[object, ...]:
    """Return stored values with the reason in place of each time that no datetime can hold."""
    return tuple(
        [Unreadable(why) if isinstance(value, datetime) and (why := out_of_range(value)) else value for value in values]
    )


def _by_name(stored: Mapping[str, object]) -> dict[str, object]:
    return dict(zip(stored, readable(stored.values()), strict=True))


def sound_job(row: JobRow) -> Job:
    """Return the job of a row that is known to read, without history and log."""
    (
        seq, job_id, queue, kind, payload, codec, headers, tenant, priority, state, attempt, max_attempts, delivery,
        created_at, run_at, claimed_at, lease_expires_at, finished_at, worker, last_error, result, result_codec,
        progress, cancel_requested, unique_key, parent_id, schedule_id, limit_key, _,
    ) = row  # fmt: skip
    columns = (
        seq, job_id, queue, kind, payload, codec, headers_of(headers), tenant, priority, STATES[state], attempt,
        max_attempts, delivery, created_at, run_at, claimed_at, lease_expires_at,
        finished_at, worker, last_error, result, result_codec,
        None if progress is None else _progress_decoder.decode(progress), cancel_requested, unique_key,
        parent_id, schedule_id, limit_key,
    )  # fmt: skip
    return job_from_columns(columns + NOTHING_APART)


def with_history(job: Job, deliveries: str | None, lines: str | None) -> Job:
    """Return `job` with the deliveries and the log that `get.sql` found; its `damage` counts those that do not read."""
    ended, lost_deliveries = _each(_deliveries_decoder, DeliveryRow, deliveries)
    log, lost_lines = _each(_log_decoder, LogLine, lines)
    damage = [job.damage] if job.damage is not None else []
    if lost_deliveries:
        damage.append(f"history has {lost_deliveries} deliveries that cannot be read")
    if lost_lines:
        damage.append(f"log has {lost_lines} lines that cannot be read")
    history = whole_history(job, [_delivery_of(row) for row in ended])
    return job._replace(history=history, log=tuple(log[-LOG_LINES_KEPT:]), damage="; ".join(damage) or None)


def _each(decoder: "msgspec.json.Decoder[list[T]]", kind: type[T], text: str | None) -> tuple[list[T], int]:
    """Return the records of a JSON array, and how many of them cannot be read."""
    if text is None:
        return [], 0
    try:
        return decoder.decode(text), 0
    except msgspec.ValidationError:
        stored: list[object] = msgspec.json.decode(text)
    records: list[T] = []
    for record in stored:
        try:
            records.append(msgspec.convert(record, kind))
        except msgspec.ValidationError:
            continue
    return records, len(stored) - len(records)


def _delivery_of(row: DeliveryRow) -> Delivery:
    failure = None if row.message is None else Failure(row.message, row.type, row.traceback, row.module)
    times = row.started_at, row.ended_at
    return Delivery(row.delivery, row.attempt, *times, row.worker, row.outcome, failure, row.retried_at)


def json_text(value: Any) -> str:  # noqa: ANN401 - whatever JSON can say
    """Return a value as JSON."""
    return msgspec.json.encode(value).decode()


def plain_text(text: str) -> str:
    """Return a text that Postgres can keep: it knows no zero character, and only what UTF-8 can say."""
    return in_utf8(text).replace("\0", "\\0")


def possible_token(token: str) -> Token:
    """Return a caller's token if it can be one, else one that no claim has: nothing else reaches a uuid parameter."""
    return Token(token) if _TOKEN.fullmatch(token) else NO_TOKEN
