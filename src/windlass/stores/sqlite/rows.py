"""Rows to records and back."""

from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple

import msgspec

from windlass.core.duration import EPOCH, from_micros, to_micros
from windlass.core.ids import JobId
from windlass.core.job import (
    NOTHING_APART,
    WAITING_FIELDS,
    Claim,
    Delivery,
    Failure,
    Job,
    LogLine,
    Progress,
    Token,
    job_from_columns,
)
from windlass.core.states import State
from windlass.kit.damage import DECODE_ERRORS, Unreadable, read_damaged_job, shown
from windlass.kit.records import STATES, headers_of
from windlass.stores.sqlite.damaged import has_unreadable

LAST_INTEGER: Final = 2**63 - 1
EARLIEST: Final = to_micros(datetime.min.replace(tzinfo=UTC))
LATEST: Final = to_micros(datetime.max.replace(tzinfo=UTC))
"""The first and the last time that can be read."""
_HELD_UNTIL: Final = (None, "claimed", "finished", "time")
_progress_decoder: Final = msgspec.json.Decoder(Progress)


class Standing(NamedTuple):
    """What a move needs to know of a job: `{standing_columns}` in the statements."""

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


STANDING_COLUMNS: Final = tuple("state" if field == "state_name" else field for field in Standing._fields)


class ClaimedRow(NamedTuple):
    """The columns of a job that is claimed: `{claimed_columns}` in the statements."""

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
CLAIMED_QUEUE: Final = _COLUMN["queue"]
PLACE: Final = itemgetter(_COLUMN["priority"], _COLUMN["run_at"], _COLUMN["seq"])
"""Where the job of a claimed row stood in its queue; rows stay plain tuples, since there is one for every job."""
_UNIQUE_KEY: Final = _COLUMN["unique_key"]
_HOLD_UNTIL: Final = _COLUMN["hold_until"]


def frees_key(row: tuple[Any, ...]) -> bool:
    """Whether this claim is the one that frees the unique key of its job."""
    return row[_HOLD_UNTIL] == "claimed" and row[_UNIQUE_KEY] is not None


class JobRow(NamedTuple):
    """The columns of a job that is read: `{job_columns}` in the statements."""

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
    hold: str | None
    hold_until: Literal["claimed", "finished", "time"] | None


BARE_COLUMNS: Final = (
    "seq", "id", "queue", "kind", "payload", "codec", "priority", "state", "max_attempts", "created_at", "run_at",
)  # fmt: skip
"""The columns of a job that has nothing but these."""
ENQUEUED_COLUMNS: Final = (
    *BARE_COLUMNS, "headers", "tenant", "unique_key", "parent_id", "schedule_id", "limit_key", "hold", "hold_until",
)  # fmt: skip
"""The columns that an enqueue writes."""
MOVED_COLUMNS: Final = (*(field.name for field in WAITING_FIELDS), "hold", "hold_until", "log_lines")
"""The columns that a job brings from another store."""


def claim_of(row: tuple[Any, ...], claimed_at: datetime, lease_expires_at: datetime, worker: str | None) -> Claim:
    """Return the claim that a row of `ClaimedRow`'s columns proves."""
    (
        seq, job_id, queue, kind, payload, codec, headers, tenant, priority, attempt, max_attempts, delivery, created,
        run_at, last_error, cancel_requested, unique_key, parent_id, schedule_id, limit_key, token, hold_until, _,
    ) = row  # fmt: skip
    created_at = from_micros(created)
    columns = (
        seq, job_id, queue, kind, payload, codec, headers_of(headers), tenant, priority, State.RUNNING, attempt,
        max_attempts, delivery, created_at, created_at if run_at == created else from_micros(run_at), claimed_at,
        lease_expires_at, None, worker, last_error, None, None, None, bool(cancel_requested),
        None if hold_until == "claimed" else unique_key, parent_id, schedule_id, limit_key,
    )  # fmt: skip
    job = job_from_columns(columns + NOTHING_APART)
    return Claim(job, token)


def job_of(row: JobRow) -> Job:
    """Return the job of a row, without history and log; one that does not read whole with its damage."""
    if not has_unreadable(row) and row.hold_until in _HELD_UNTIL:
        try:
            return sound_job(row)
        except DECODE_ERRORS as error:
            return _damaged_job(row, str(error))
    return _damaged_job(row, "")


def _damaged_job(row: JobRow, error: str) -> Job:
    job = read_damaged_job(row._asdict())
    return job._replace(damage="; ".join([job.damage or error, *damage_of_hold(row.hold, row.hold_until)]).strip("; "))


def damage_of_hold(hold: object, hold_until: object) -> list[str]:
    """Return the damage of what a job remembers of its unique key, which `Job` does not show."""
    named = {"hold": hold, "hold_until": hold_until}
    damage = [f"{name} {value.why}" for name, value in named.items() if isinstance(value, Unreadable)]
    if not damage and hold_until not in _HELD_UNTIL:
        damage.append(f"hold_until is none of claimed, finished, time: {shown(hold_until)}")
    return damage


def damage_of_claim(row: ClaimedRow) -> str | None:
    """Return what is damaged of a job that is about to be claimed; None when its claim reads."""
    if not has_unreadable(row):
        try:
            claim_of(row, EPOCH, EPOCH, None)
        except DECODE_ERRORS as error:
            return _damage_of(row) or str(error)
        # the claim counts one more
        return _damage_of_counts(row)
    return _damage_of(row)


def _damage_of(row: ClaimedRow) -> str | None:
    job = read_damaged_job({**row._asdict(), "state": State.PENDING})
    return "; ".join([*([job.damage] if job.damage else []), *damage_of_hold(row.hold, row.hold_until)]) or None


def _damage_of_counts(row: ClaimedRow) -> str | None:
    full = [name for name in ("attempt", "delivery") if getattr(row, name) >= LAST_INTEGER]
    return "; ".join(f"{name} is out of range: {LAST_INTEGER}" for name in full) or None


def sound_job(row: JobRow) -> Job:
    """Return the job of a row that is known to read, without history and log."""
    (
        seq, job_id, queue, kind, payload, codec, headers, tenant, priority, state, attempt, max_attempts, delivery,
        created_at, run_at, claimed_at, lease_expires_at, finished_at, worker, last_error, result, result_codec,
        progress, cancel_requested, unique_key, parent_id, schedule_id, limit_key, _, _, _,
    ) = row  # fmt: skip
    columns = (
        seq, job_id, queue, kind, payload, codec, headers_of(headers), tenant, priority, STATES[state], attempt,
        max_attempts, delivery, from_micros(created_at), from_micros(run_at), moment(claimed_at),
        moment(lease_expires_at), moment(finished_at), worker, last_error, result, result_codec,
        None if progress is None else _progress_decoder.decode(progress), bool(cancel_requested), unique_key,
        parent_id, schedule_id, limit_key,
    )  # fmt: skip
    return job_from_columns(columns + NOTHING_APART)


def delivery_of(row: tuple[Any, ...]) -> Delivery:
    """Return a delivery of a row of `deliveries.sql`."""
    failure = None if row[6] is None else Failure(row[6], row[7], row[8], row[9])
    return Delivery(row[0], row[1], from_micros(row[2]), from_micros(row[3]), row[4], row[5], failure, moment(row[10]))


def log_line_of(row: tuple[Any, ...]) -> LogLine:
    """Return a line of a row of `log.sql`."""
    return LogLine(from_micros(row[0]), row[1], row[2], row[3])


def moment(micros: int | None) -> datetime | None:
    """Return the point in time, or None."""
    return None if micros is None else from_micros(micros)


def json_list(values: list[Any]) -> str:
    """Return a JSON array, for `json_each`."""
    return msgspec.json.encode(values).decode()
