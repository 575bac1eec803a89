"""What scripts answer, unpacked into records."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

import msgspec

from windlass.core.duration import from_micros
from windlass.core.errors import StoreCorrupt
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
from windlass.core.schedule import CatchUp, Overlap, Schedule
from windlass.core.states import State
from windlass.core.stats import MinuteCounts, QueueStats, TimingCount, Totals
from windlass.kit.damage import DECODE_ERRORS, read_each
from windlass.kit.records import STATES, whole_history
from windlass.stores.redis.damaged import Damage, counted_as_0, left_out

_LATEST: Final = 253402300799999999
"""The last microsecond that a datetime can tell; scripts count in doubles, and may round it up."""
_ROUNDED: Final = _LATEST + 1


MOST_EXACT: Final = 2**53
"""Scripts count in doubles, which know each whole number up to this one."""
Exact: TypeAlias = Annotated[int, msgspec.Meta(ge=-MOST_EXACT, le=MOST_EXACT)]


Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class Head(NamedTuple):
    """What a script needs to know of a job and never changes."""

    seq: Exact
    queue: Name
    kind: str
    priority: Exact
    max_attempts: Exact
    created_at: int


class Body(NamedTuple):
    """What a job carries."""

    codec: Name
    payload: bytes


class More(NamedTuple):
    """What only some jobs have."""

    headers: dict[str, str]
    tenant: str | None
    parent_id: str | None
    schedule_id: str | None
    limit_key: str | None


NO_MORE: Final = More({}, None, None, None, None)


class ClaimRow(NamedTuple):
    """A claim, as `claim.lua` gives it."""

    id: str
    token: str
    attempt: int
    delivery: int
    claimed_at: int
    lease: int
    run_at: int | None
    error: str | None
    cancel: bool
    key: str | None
    head: Head
    body: Body
    more: More | None


class DamagedClaim(NamedTuple):
    """A job that a claim has set aside, or with a token one that was claimed before, and is to be set aside."""

    id: str
    why: str
    token: str | None = None


class ClaimsTold(NamedTuple):
    """What `claim.lua` answers."""

    due: bool
    """Whether more jobs came due than could be promoted."""
    cut: bool
    """Whether the rest is for the next claim."""
    claims: list[ClaimRow]
    damaged: list[DamagedClaim]


class FramedClaims(NamedTuple):
    """What `claim.lua` answers where each claim is framed: its id, its token and its packed row."""

    due: bool
    cut: bool
    claims: list[tuple[str, str, bytes]]
    damaged: list[DamagedClaim]


class JobRow(NamedTuple):
    """A job, as `parts/whole.lua` shows it."""

    id: str
    state: str
    run_at: int | None
    attempt: Exact
    delivery: Exact
    claimed_at: int | None
    finished_at: int | None
    worker: str | None
    error: str | None
    result_codec: str | None
    cancel: bool
    key: str | None
    head: Head
    body: Body
    lease: int | None
    result: bytes | None
    progress: tuple[float, float | None, str | None] | None
    more: More | None


class DeliveryRow(NamedTuple):
    """How a delivery ended."""

    delivery: int
    attempt: int
    started_at: int
    ended_at: int
    worker: str | None
    outcome: str
    failure: tuple[str, str | None, str | None] | None


class DetailRow(NamedTuple):
    """Of a delivery what its history does not tell: the module of the failure, and when an operator retried the job."""

    delivery: int
    module: str | Literal[False]
    retried_at: int | Literal[False]


_NO_DETAIL: Final = DetailRow(0, module=False, retried_at=False)
LogRow: TypeAlias = tuple[int, str, str, int]
"""A log line: when, how urgent, what, and in which delivery."""


class WholeRow(NamedTuple):
    """A job with its history and log, and what stands beside the history."""

    job: JobRow
    history: list[DeliveryRow]
    log: list[LogRow]
    details: list[DetailRow] | None


class StatsRow(NamedTuple):
    """A queue, as `stats.lua` counts it."""

    queue: str
    paused: bool
    scheduled: int
    pending: int
    running: int
    succeeded: int
    dead: int
    cancelled: int
    oldest: int | None
    totals: list[int | Literal[False]]


class ScheduleRecord(NamedTuple):
    """What a firing does not change."""

    rule: str
    timezone: str
    queue: str
    kind: str | None
    payload: bytes
    codec: str
    headers: dict[str, str]
    tenant: str | None
    priority: int
    max_attempts: int
    catch_up: CatchUp


class ScheduleRow(NamedTuple):
    """A schedule, as `parts/schedules.lua` shows it."""

    id: str
    record: ScheduleRecord
    revision: int
    overlap: Overlap
    declared: bool
    paused: bool
    next_run_at: int | None
    last_run_at: int | None
    last_job_id: str | None


class Page(NamedTuple):
    """A page of jobs: the last that was looked at, and whether there are more."""

    last: int | None
    more: bool
    jobs: list[tuple[str, bytes | None]]


_decode_text = msgspec.msgpack.Decoder(str).decode
_PARTS_OF_COUNT: Final = 3
_TIMED: Final[Mapping[str, Literal["waited", "ran"]]] = {"waited": "waited", "ran": "ran"}
_claims = msgspec.msgpack.Decoder(ClaimsTold)
_framed_claims = msgspec.msgpack.Decoder(FramedClaims)
_claim = msgspec.msgpack.Decoder(ClaimRow)
_outcomes = msgspec.msgpack.Decoder(list[str | Damage])


def time_of(micros: int) -> datetime:
    """Return the point in time that a script tells."""
    return from_micros(_LATEST if _LATEST < micros <= _ROUNDED else micros)


def maybe_time(micros: int | None) -> datetime | None:
    """Return the point in time, or None."""
    return None if micros is None else time_of(micros)


def claims_in(reply: bytes, worker: str | None) -> tuple[ClaimsTold, list[Claim]] | None:
    """Return what `claim.lua` answers, and its claims; None where one is damaged in a way that the script misses."""
    try:
        told = _claims.decode(reply)
        return told, [claim_of(row, worker) for row in told.claims]
    except DECODE_ERRORS:
        return None


def framed_claims_in(reply: bytes) -> FramedClaims:
    """Return what `claim.lua` answers where each claim is framed."""
    return _framed_claims.decode(reply)


def framed_claim_of(row: bytes, worker: str | None) -> Claim:
    """Return the claim of a framed row."""
    return claim_of(_claim.decode(row), worker)


def outcomes_in(reply: bytes) -> list[str | Damage]:
    """Return what became of each job that was named, or what is said of a damaged one."""
    return _outcomes.decode(reply)


def claim_of(row: ClaimRow, worker: str | None) -> Claim:
    """Return the claim of a row."""
    (
        job_id, token, attempt, delivery, claimed, lease, run_at, error, cancel, key,
        (seq, queue, kind, priority, max_attempts, created), (codec, payload), more,
    ) = row  # fmt: skip
    headers, tenant, parent_id, schedule_id, limit_key = more or NO_MORE
    created_at = from_micros(created)
    columns = (
        seq, JobId(job_id), queue, kind or None, payload, codec, headers or NO_HEADERS, tenant, priority, State.RUNNING,
        attempt, max_attempts, delivery, created_at, created_at if run_at is None else time_of(run_at),
        time_of(claimed), time_of(lease), None, worker, error, None, None, None, cancel, key,
        maybe_id(parent_id), schedule_id, limit_key,
    )  # fmt: skip
    return Claim(job_from_columns(columns + NOTHING_APART), Token(token))


def job_of(row: JobRow) -> Job:
    """Return the job of a row, without history and log."""
    more = row.more or NO_MORE
    columns = (
        row.head.seq, JobId(row.id), row.head.queue, row.head.kind or None, row.body.payload, row.body.codec,
        more.headers or NO_HEADERS, more.tenant, row.head.priority, STATES[row.state], row.attempt,
        row.head.max_attempts, row.delivery, from_micros(row.head.created_at),
        time_of(row.head.created_at if row.run_at is None else row.run_at), maybe_time(row.claimed_at),
        maybe_time(row.lease), maybe_time(row.finished_at), row.worker, row.error, row.result, row.result_codec,
        None if row.progress is None else Progress(*row.progress), row.cancel, row.key, maybe_id(more.parent_id),
        more.schedule_id, more.limit_key,
    )  # fmt: skip
    return job_from_columns(columns + NOTHING_APART)


def whole_job_of(row: WholeRow) -> Job:
    """Return the job of a row, with history and log."""
    job = job_of(row.job)
    log = tuple(map(log_line_of, row.log))
    details = {detail.delivery: detail for detail in row.details or ()}
    history = [delivery_of(ended, details.get(ended.delivery, _NO_DETAIL)) for ended in row.history]
    return job._replace(history=whole_history(job, history), log=log)


def log_line_of(row: LogRow) -> LogLine:
    """Return the log line of a row."""
    at, level, text, delivery = row
    return LogLine(from_micros(at), level, text, delivery)


def delivery_of(row: DeliveryRow, detail: DetailRow = _NO_DETAIL) -> Delivery:
    """Return how a delivery ended."""
    failure = None if row.failure is None else Failure(*row.failure, None if detail.module is False else detail.module)
    times = (from_micros(row.started_at), from_micros(row.ended_at))
    return Delivery(
        row.delivery, row.attempt, *times, row.worker, row.outcome, failure, maybe_time(detail.retried_at or None)
    )


def stats_of(row: StatsRow) -> QueueStats:
    """Return what a queue holds; a damaged total counts as 0."""
    for name, total in zip(Totals._fields, row.totals, strict=True):
        if total is False:
            counted_as_0("a total of a queue")(f"{name} of {row.queue}")
    return QueueStats(
        queue=row.queue,
        paused=row.paused,
        scheduled=row.scheduled,
        pending=row.pending,
        running=row.running,
        succeeded=row.succeeded,
        dead=row.dead,
        cancelled=row.cancelled,
        oldest_waiting=maybe_time(row.oldest),
        totals=Totals(*(0 if total is False else total for total in row.totals)),
    )


def schedule_of(row: ScheduleRow) -> Schedule:
    """Return the schedule of a row."""
    record = row.record
    return Schedule(
        id=row.id,
        rule=record.rule,
        timezone=record.timezone,
        queue=record.queue,
        kind=record.kind,
        payload=record.payload,
        codec=record.codec,
        headers=record.headers,
        tenant=record.tenant,
        priority=record.priority,
        max_attempts=record.max_attempts,
        catch_up=record.catch_up,
        overlap=row.overlap,
        declared=row.declared,
        paused=row.paused,
        next_run_at=maybe_time(row.next_run_at),
        last_run_at=maybe_time(row.last_run_at),
        last_job_id=maybe_id(row.last_job_id),
        revision=row.revision,
    )


def maybe_id(text: str | None) -> JobId | None:
    """Return the id, or None."""
    return None if text is None else JobId(text)


def minutes_of(rows: list[tuple[int, list[msgspec.Raw]]]) -> list[MinuteCounts]:
    """Return what was counted, in order of minute, queue and kind."""
    counted: dict[tuple[datetime, str, str], dict[str, int]] = {}
    for minute, name, times in read_each(_counts_in(rows), _count_of, left_out("a count of a minute")):
        queue, kind, what = name
        counted.setdefault((minute, queue, kind), {})[what] = times
    found = [(*key, counts) for key, counts in sorted(counted.items())]
    return read_each(found, lambda row: MinuteCounts(*row[:-1], Totals(**row[-1])), left_out("a count of a minute"))


def timings_of(rows: list[tuple[int, list[msgspec.Raw]]]) -> list[TimingCount]:
    """Return how long attempts took, in order of minute, queue, kind, what and range."""
    return sorted(read_each(_counts_in(rows), _timing_of, left_out("a timing of a minute")))


_Count: TypeAlias = tuple[int, bytes, bytes]
"""A minute, the name of what was counted in it, and how often."""


def _counts_in(rows: list[tuple[int, list[msgspec.Raw]]]) -> Iterator[_Count]:
    for minute, fields in rows:
        for name, times in zip(fields[::2], fields[1::2], strict=True):
            yield minute, bytes(name), bytes(times)


def _count_of(row: _Count) -> tuple[datetime, list[str], int]:
    minute, name, times = row
    parts = _decode_text(name).split("|")
    if len(parts) != _PARTS_OF_COUNT or parts[2] not in Totals._fields:
        message = "no such count"
        raise ValueError(message)
    return from_micros(minute), parts, int(_decode_text(times))


def _timing_of(row: _Count) -> TimingCount:
    minute, name, times = row
    queue, kind, what, number = _decode_text(name).split("|")
    return TimingCount(from_micros(minute), queue, kind, _TIMED[what], int(number), int(_decode_text(times)))


def damaged(job_id: str, why: str, *, also: str = "") -> StoreCorrupt:
    """Return the error of whoever asks for a damaged job."""
    return StoreCorrupt(
        f"job {job_id} is left as it is, since its stored record is damaged ({why}): repair the fields of the key that "
        f"ends with job|{job_id}, or the keys that are named{also}",
        job_id=job_id,
    )
