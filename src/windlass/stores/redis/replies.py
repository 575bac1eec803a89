"""What scripts answer, unpacked into records."""

from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, cast

import msgspec

from windlass.core.duration import from_micros
from windlass.core.errors import StoreCorrupt, UniqueConflict, WindlassError
from windlass.core.ids import JobId
from windlass.core.job import NO_HEADERS, Claim, Delivery, Failure, Job, LogLine, Progress, Token
from windlass.core.schedule import CatchUp, Overlap, Schedule
from windlass.core.states import State
from windlass.core.stats import MinuteCounts, QueueStats, TimingCount, Totals
from windlass.kit.records import STATES, whole_history
from windlass.stores.redis.damaged import Damage

_LATEST: Final = 253402300799999999
"""The last microsecond that a datetime can tell; scripts count in doubles, and may round it up."""


class Head(NamedTuple):
    """What a script needs to know of a job and never changes."""

    seq: int
    queue: str
    kind: str
    priority: int
    max_attempts: int
    created_at: int


class Body(NamedTuple):
    """What a job carries."""

    codec: str
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


class ClaimsTold(NamedTuple):
    """What `claim.lua` answers."""

    due: bool
    """Whether more jobs came due than could be promoted."""
    cut: bool
    """Whether the rest is for the next claim."""
    claims: list[ClaimRow]
    damaged: list[Damage]
    """Those that stay in line."""


class JobRow(NamedTuple):
    """A job, as `parts/whole.lua` shows it."""

    id: str
    state: str
    run_at: int | None
    attempt: int
    delivery: int
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


class WholeRow(NamedTuple):
    """A job with its history and log."""

    job: JobRow
    history: list[DeliveryRow]
    log: list[tuple[int, str, str, int]]


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
    totals: tuple[int, int, int, int, int, int]


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
    jobs: list[JobRow]


_claims = msgspec.msgpack.Decoder(ClaimsTold)
_outcomes = msgspec.msgpack.Decoder(list[str | Damage])


def time_of(micros: int) -> datetime:
    """Return the point in time that a script tells."""
    return from_micros(min(micros, _LATEST))


def maybe_time(micros: int | None) -> datetime | None:
    """Return the point in time, or None."""
    return None if micros is None else time_of(micros)


def claims_in(reply: bytes) -> ClaimsTold:
    """Return what `claim.lua` answers; it looks at nearly all that could keep this from being read."""
    try:
        return _claims.decode(reply)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        message = (
            f"what was claimed cannot be read ({error}), and goes back when its lease is over: one of these jobs is "
            "damaged; claim them one by one to find it, and restore it from a backup"
        )
        raise StoreCorrupt(message) from error


def outcomes_in(reply: bytes) -> list[str]:
    """Return what became of each job that was named; raises for the first damaged one, when the others were seen to."""
    outcomes = _outcomes.decode(reply)
    for outcome in outcomes:
        if not isinstance(outcome, str):
            raise damaged(*outcome, also="; what the call did to other jobs is done")
    return cast("list[str]", outcomes)


def claim_of(row: ClaimRow, worker: str | None) -> Claim:
    """Return the claim of a row."""
    (
        job_id, token, attempt, delivery, claimed, lease, run_at, error, cancel, key,
        (seq, queue, kind, priority, max_attempts, created), (codec, payload), more,
    ) = row  # fmt: skip
    headers, tenant, parent_id, schedule_id, limit_key = more or NO_MORE
    created_at = from_micros(created)
    job = Job(
        seq, JobId(job_id), queue, kind or None, payload, codec, headers or NO_HEADERS, tenant, priority, State.RUNNING,
        attempt, max_attempts, delivery, created_at, created_at if run_at is None else time_of(run_at),
        time_of(claimed), time_of(lease), None, worker, error, None, None, None, cancel, key,
        maybe_id(parent_id), schedule_id, limit_key,
    )  # fmt: skip
    return Claim(job, Token(token))


def job_of(row: JobRow) -> Job:
    """Return the job of a row, without history and log."""
    more = row.more or NO_MORE
    return Job(
        seq=row.head.seq,
        id=JobId(row.id),
        queue=row.head.queue,
        kind=row.head.kind or None,
        payload=row.body.payload,
        codec=row.body.codec,
        headers=more.headers or NO_HEADERS,
        tenant=more.tenant,
        priority=row.head.priority,
        state=STATES[row.state],
        attempt=row.attempt,
        max_attempts=row.head.max_attempts,
        delivery=row.delivery,
        created_at=from_micros(row.head.created_at),
        run_at=time_of(row.head.created_at if row.run_at is None else row.run_at),
        claimed_at=maybe_time(row.claimed_at),
        lease_expires_at=maybe_time(row.lease),
        finished_at=maybe_time(row.finished_at),
        worker=row.worker,
        last_error=row.error,
        result=row.result,
        result_codec=row.result_codec,
        progress=None if row.progress is None else Progress(*row.progress),
        cancel_requested=row.cancel,
        unique_key=row.key,
        parent_id=maybe_id(more.parent_id),
        schedule_id=more.schedule_id,
        limit_key=more.limit_key,
    )


def whole_job_of(row: WholeRow) -> Job:
    """Return the job of a row, with history and log."""
    job = job_of(row.job)
    log = tuple(LogLine(from_micros(at), level, text, delivery) for at, level, text, delivery in row.log)
    return job._replace(history=whole_history(job, [_delivery(ended) for ended in row.history]), log=log)


def _delivery(row: DeliveryRow) -> Delivery:
    failure = None if row.failure is None else Failure(*row.failure)
    times = (from_micros(row.started_at), from_micros(row.ended_at))
    return Delivery(row.delivery, row.attempt, *times, row.worker, row.outcome, failure)


def stats_of(row: StatsRow) -> QueueStats:
    """Return what a queue holds."""
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
        totals=Totals(*row.totals),
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


def minutes_of(rows: list[tuple[int, list[str]]]) -> list[MinuteCounts]:
    """Return what was counted, in order of minute, queue and kind."""
    counted: dict[tuple[datetime, str, str], dict[str, int]] = {}
    for minute, fields in rows:
        for name, times in zip(fields[::2], fields[1::2], strict=True):
            queue, kind, what = name.split("|")
            counted.setdefault((from_micros(minute), queue, kind), {})[what] = int(times)
    return [MinuteCounts(*key, Totals(**counts)) for key, counts in sorted(counted.items())]


def timings_of(rows: list[tuple[int, list[str]]]) -> list[TimingCount]:
    """Return how long attempts took, in order of minute, queue, kind, what and range."""
    found: list[TimingCount] = []
    for minute, fields in rows:
        for name, times in zip(fields[::2], fields[1::2], strict=True):
            queue, kind, what, number = name.split("|")
            found.append(
                TimingCount(
                    from_micros(minute), queue, kind, cast("Literal['waited', 'ran']", what), int(number), int(times)
                )
            )
    return sorted(found)


def refusal_of(*answer: Any) -> WindlassError:  # noqa: ANN401 - as the script has it
    """Return why nothing was written: a job is damaged, or a key refuses what is to be enqueued."""
    match answer:
        case (job_id, why):
            return damaged(job_id, why)
        case _:
            return UniqueConflict(*answer)


def damaged(job_id: str, why: str, *, also: str = "") -> StoreCorrupt:
    """Return the error of whoever asks for a damaged job."""
    return StoreCorrupt(
        f"job {job_id} is left as it is, since a key is damaged that it needs ({why}): look at those that end with its "
        f"id, and at its unique key, and restore them from a backup{also}",
        job_id=job_id,
    )
