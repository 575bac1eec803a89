"""Jobs, as the API writes and reads them."""

import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import UNSET, MsgspecError, Raw, UnsetType, ValidationError
from msgspec.json import Decoder
from msgspec.structs import astuple

from windlass.api.shape import (
    Asked,
    Attempts,
    HeaderText,
    Id,
    KvPair,
    Moment,
    Name,
    Priority,
    Seconds,
    Told,
    kv_of,
    pairs,
    seconds,
)
from windlass.core import job as core
from windlass.core.states import State
from windlass.core.unique import Hold, OnConflict, Scope, Unique

JSON = "json"
RAW = "raw"
_Order: TypeAlias = Callable[[tuple[Any, ...]], tuple[Any, ...]]
_anything = Decoder().decode
_as_it_is = Decoder(Raw).decode
_LARGE_NUMBER = re.compile(rb"[eE]\+?[0-9]{3}")
_LONG_NUMBER = b"0" * 309
_DIGITS = bytes(ord("0" if chr(each) in "0123456789" else " ") for each in range(256))
_SCOPES: Final[Mapping[str, Scope]] = {scope: scope for scope in get_args(Scope)}


class UniqueKey(Asked, kw_only=True):
    """A key that at most one live job holds; `until` is a moment of the job's life, or a number of seconds."""

    key: Name
    scope: Scope = "queue"
    until: Literal["claimed", "finished"] | Seconds = "claimed"
    on_conflict: OnConflict = "keep"
    match_payload: bool = False


class NewJob(Asked, kw_only=True):
    """A job to be enqueued. The payload is plain JSON in `payload`, or bytes in `payload_base64`.

    What is left out is taken from the settings of the serving side.
    """

    queue: Name
    payload: Raw | UnsetType = UNSET
    payload_base64: bytes | None = None
    codec: Name | None = None
    """What wrote the bytes of `payload_base64`: `raw` unless it is said."""
    id: Id | None = None
    kind: Name | None = None
    priority: Priority | None = None
    run_at: Moment | None = None
    delay: Seconds | None = None
    max_attempts: Attempts | None = None
    unique: Name | UniqueKey | None = None
    headers: dict[Name, HeaderText] | None = None
    tenant: Name | None = None
    kv: list[KvPair] | None = None
    parent_id: Id | UnsetType | None = UNSET
    """The job that this one comes of: left out, of those that come with the end of a job it is that one."""
    schedule_id: Name | None = None
    limit_key: Name | None = None

    def carried(self) -> tuple[bytes, str]:
        """Return the payload and the name of its codec."""
        if not isinstance(self.payload, UnsetType):
            if self.payload_base64 is not None or self.codec is not None:
                raise ValidationError("`payload` is JSON and stands alone: leave out `payload_base64` and `codec`")
            return bytes(self.payload), JSON
        return self.payload_base64 or b"", self.codec or RAW

    def wanted_key(self) -> Unique | str | None:
        """Return the unique key that it is to hold."""
        match self.unique:
            case UniqueKey(key=key, scope=scope, until=until, on_conflict=on_conflict, match_payload=match):
                return Unique(key, scope, until, on_conflict, match)
            case key:
                return key

    def writes(self) -> dict[bytes, bytes | None] | None:
        """Return the kv writes that go with it."""
        return None if self.kv is None else kv_of(self.kv)


def asked(job: core.PreparedJob) -> NewJob:
    """Return a job that was prepared by a client, as it is sent."""
    return NewJob(
        queue=job.queue,
        payload_base64=job.payload,
        codec=job.codec,
        id=job.id,
        kind=job.kind,
        priority=job.priority,
        run_at=job.run_at,
        delay=seconds(job.delay),
        max_attempts=job.max_attempts,
        unique=None if job.unique is None else _key(job.unique),
        headers=dict(job.headers) or None,
        tenant=job.tenant,
        kv=pairs(job.kv) or None,
        parent_id=UNSET if job.parent_id is None else job.parent_id,
        schedule_id=job.schedule_id,
        limit_key=job.limit_key,
    )


def follower_asked(job: core.PreparedJob) -> NewJob:
    """Return a job that comes with the end of another one, as it is sent: it says so if that is not its parent."""
    made = asked(job)
    made.parent_id = job.parent_id
    return made


def _key(hold: Hold) -> UniqueKey:
    # the holder's name begins with it: `core.unique.hold`
    scope = _SCOPES[hold.name.partition("|")[0]]
    until = hold.until if hold.until != "time" else (seconds(hold.hold_for) or 0.0)
    return UniqueKey(
        key=hold.key, scope=scope, until=until, on_conflict=hold.on_conflict, match_payload=hold.match_payload
    )


class Enqueued(Told, kw_only=True):
    """What became of one job; `created` is false when it was there already, by its id or its unique key."""

    id: str
    created: bool


class Progress(Told):
    """How far a running job says it is."""

    done: float
    total: float | None = None
    note: str | None = None


class LogLine(Told):
    """One line that a job wrote while it ran."""

    at: Moment
    level: str
    text: str
    delivery: int


class Failure(Told):
    """Why an attempt failed."""

    message: str
    type: str | None = None
    traceback: str | None = None
    module: str | None = None
    """Where the class of the exception is defined."""


class Delivery(Told):
    """One claim in a job's life and how it ended; without `outcome` it runs."""

    delivery: int
    attempt: int
    started_at: Moment
    ended_at: Moment | None = None
    worker: str | None = None
    outcome: str | None = None
    failure: Failure | None = None
    retried_at: Moment | None = None
    """When an operator retried the job after this delivery."""


class Job(Told):
    """A job, as it was when it was read; `history` and `log` are told of single jobs alone.

    The payload is in `payload` where it is JSON, unless bytes were asked for, else in `payload_base64`; the result
    likewise.
    """

    seq: int
    id: str
    queue: str
    state: State
    priority: int
    attempt: int
    max_attempts: int
    delivery: int
    created_at: Moment
    run_at: Moment
    codec: str
    payload: Raw | UnsetType = UNSET
    payload_base64: bytes | None = None
    kind: str | None = None
    headers: dict[str, str] = {}
    tenant: str | None = None
    claimed_at: Moment | None = None
    lease_expires_at: Moment | None = None
    finished_at: Moment | None = None
    worker: str | None = None
    last_error: str | None = None
    result: Raw | UnsetType = UNSET
    result_base64: bytes | None = None
    result_codec: str | None = None
    progress: Progress | None = None
    cancel_requested: bool = False
    unique_key: str | None = None
    parent_id: str | None = None
    schedule_id: str | None = None
    limit_key: str | None = None
    history: list[Delivery] = []
    log: list[LogLine] = []
    damage: str | None = None
    """The fields of the stored record that cannot be read, each with the reason; such a field has a stand-in here."""


def told(job: core.Job, *, as_bytes: bool = False) -> Job:
    """Return a job as it is told: with `as_bytes` its payload and result are in base64 whatever they are."""
    told = Job(*_in_order_of_json(job))
    told.payload, told.payload_base64 = _shown(job.payload, job.codec, as_bytes=as_bytes)
    told.result, told.result_base64 = _shown(job.result, job.result_codec, as_bytes=as_bytes)
    told.headers = dict(job.headers)
    told.progress = progress_told(job.progress)
    told.history = [_delivery(each) for each in job.history]
    told.log = log_told(job.log)
    return told


def job_of(told: Job) -> core.Job:
    """Return the job that was told, its payload and result in bytes."""
    values = list(_in_order_of_job(astuple(told)))
    values[_PAYLOAD] = told.payload_base64 or b""
    values[_RESULT] = told.result_base64
    values[_HEADERS] = told.headers or core.NO_HEADERS
    values[_PROGRESS] = None if told.progress is None else core.Progress(*astuple(told.progress))
    values[_HISTORY] = tuple([_delivery_of(each) for each in told.history])
    values[_LOG] = tuple([core.LogLine(*astuple(line)) for line in told.log])
    return core.job_from_columns(tuple(values))


_JSON_FIELDS: Final = Job.__struct_fields__
_MISSING: Final = [f"{field.name}: {field.type}" for field in core.JOB_FIELDS if field.name not in _JSON_FIELDS]
if _MISSING:
    raise TypeError("add to Job in api/jobs.py: " + ", ".join(_MISSING))
_place = core.Job._fields.index
_in_order_of_json: Final[_Order] = itemgetter(*[_place(name.removesuffix("_base64")) for name in _JSON_FIELDS])
_in_order_of_job: Final[_Order] = itemgetter(*map(_JSON_FIELDS.index, core.Job._fields))
_PAYLOAD, _RESULT, _HEADERS = _place("payload"), _place("result"), _place("headers")
_PROGRESS, _HISTORY, _LOG = _place("progress"), _place("history"), _place("log")
"""What JSON has in another form than the job; all other values are the same in both, in another order."""


def _shown(value: bytes | None, codec: str | None, *, as_bytes: bool) -> tuple[Raw | UnsetType, bytes | None]:
    if value is None:
        return UNSET, None
    if codec == JSON and not as_bytes and is_json(value):
        return Raw(value), None
    return UNSET, value


def is_json(value: bytes) -> bool:
    """Whether these bytes can stand in JSON as they are."""
    try:
        if not value.isascii():
            value.decode()
        # to look it over takes a part of the time that it takes to make values of it
        (_anything if _may_have_too_large_a_number(value) else _as_it_is)(value)
    except (ValueError, RecursionError, MsgspecError):
        return False
    return True


def _may_have_too_large_a_number(value: bytes) -> bool:
    # which only those find out who make a number of it
    return _LARGE_NUMBER.search(value) is not None or _LONG_NUMBER in value.translate(_DIGITS)


def progress_told(progress: core.Progress | None) -> Progress | None:
    """Return how far a job is, as it is told."""
    return None if progress is None else Progress(*progress)


def log_told(lines: Sequence[core.LogLine]) -> list[LogLine]:
    """Return lines of a log as they are told."""
    return [LogLine(*line) for line in lines]


def _delivery(ended: core.Delivery) -> Delivery:
    failure = None if ended.failure is None else failure_told(ended.failure)
    return Delivery(
        ended.delivery, ended.attempt, ended.started_at, ended.ended_at, ended.worker, ended.outcome, failure,
        ended.retried_at,
    )  # fmt: skip


def _delivery_of(told: Delivery) -> core.Delivery:
    failure = None if told.failure is None else failure_of(told.failure)
    return core.Delivery(
        told.delivery, told.attempt, told.started_at, told.ended_at, told.worker, told.outcome, failure, told.retried_at
    )


def failure_told(failure: core.Failure) -> Failure:
    """Return why an attempt failed, as it is told."""
    return Failure(*failure)


def failure_of(told: Failure) -> core.Failure:
    """Return why an attempt failed."""
    return core.Failure(*astuple(told))
