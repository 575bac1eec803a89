"""Schedules, as the API writes and reads them."""

from typing import Annotated

from msgspec import UNSET, Meta, Raw, UnsetType

from windlass.api.jobs import NewJob, asked, is_json
from windlass.api.shape import Asked, Count, Id, Moment, Name, Seconds, Told
from windlass.core import schedule as core
from windlass.core.ids import JobId
from windlass.core.schedule import CatchUp, Overlap


class Schedule(Told, kw_only=True):
    """A rule and the job that it makes; `rule` is a cron expression, or an interval as in `every 300s`."""

    id: Name
    rule: str
    timezone: str = "UTC"
    queue: Name
    kind: Name | None = None
    payload_base64: bytes = b""
    payload: Raw | UnsetType = UNSET
    codec: Name
    headers: dict[str, str] = {}
    tenant: Name | None = None
    priority: int
    max_attempts: int
    catch_up: CatchUp = "one"
    overlap: Overlap = "allow"
    declared: bool = False
    paused: bool = False
    next_run_at: Moment | None = None
    last_run_at: Moment | None = None
    last_job_id: Id | None = None
    revision: Count = 0
    orphaned: bool = False


def schedule_told(schedule: core.Schedule, *, as_bytes: bool = False) -> Schedule:
    """Return a schedule as it is told."""
    shown = schedule.codec == "json" and not as_bytes and is_json(schedule.payload)
    return Schedule(
        id=schedule.id,
        rule=schedule.rule,
        timezone=schedule.timezone,
        queue=schedule.queue,
        kind=schedule.kind,
        payload=Raw(schedule.payload) if shown else UNSET,
        payload_base64=b"" if shown else schedule.payload,
        codec=schedule.codec,
        headers=dict(schedule.headers),
        tenant=schedule.tenant,
        priority=schedule.priority,
        max_attempts=schedule.max_attempts,
        catch_up=schedule.catch_up,
        overlap=schedule.overlap,
        declared=schedule.declared,
        paused=schedule.paused,
        next_run_at=schedule.next_run_at,
        last_run_at=schedule.last_run_at,
        last_job_id=schedule.last_job_id,
        revision=schedule.revision,
        orphaned=schedule.orphaned,
    )


def schedule_of(told: Schedule) -> core.Schedule:
    """Return the schedule that was told or sent."""
    return core.Schedule(
        id=told.id,
        rule=told.rule,
        timezone=told.timezone,
        queue=told.queue,
        kind=told.kind,
        payload=told.payload_base64 if isinstance(told.payload, UnsetType) else bytes(told.payload),
        codec=told.codec,
        headers=told.headers,
        tenant=told.tenant,
        priority=told.priority,
        max_attempts=told.max_attempts,
        catch_up=told.catch_up,
        overlap=told.overlap,
        declared=told.declared,
        paused=told.paused,
        next_run_at=told.next_run_at,
        last_run_at=told.last_run_at,
        last_job_id=None if told.last_job_id is None else JobId(told.last_job_id),
        revision=told.revision,
        orphaned=told.orphaned,
    )


class Schedules(Told, kw_only=True):
    """Schedules in order of id, and the store's time of the look."""

    now: Moment
    schedules: list[Schedule]


class DueSchedules(Told, kw_only=True):
    """Schedules whose time has come, and when the next one comes."""

    now: Moment
    due: list[Schedule]
    next_run_at: Moment | None = None


class DueAsked(Asked, kw_only=True):
    """Which schedules are due; of those that code declares only the ones `declared` here count."""

    declared: list[Name] = []
    limit: Annotated[int, Meta(ge=0, le=10_000)] = 100


class ScheduleWritten(Asked, kw_only=True):
    """A schedule, to be written if its revision is still `expected`; null: if there is none of this id."""

    schedule: Schedule
    expected: Count | None = None


class Revision(Told, kw_only=True):
    """The revision that was written, and null when the condition did not hold."""

    revision: int | None = None


class SchedulePut(Asked, kw_only=True):
    """A rule and the job that it makes: `rule` is a cron expression, or a number of seconds."""

    id: Name
    rule: str | Seconds
    job: NewJob
    timezone: str = "UTC"
    catch_up: CatchUp = "one"
    overlap: Overlap = "allow"


class Firing(Asked, kw_only=True):
    """What a schedule does now: the jobs it makes, and when it is due again."""

    id: Name
    revision: Count
    jobs: list[NewJob] = []
    tick: Moment | None = None
    next_run_at: Moment | None = None


def firing_asked(firing: core.Firing) -> Firing:
    """Return a firing as it is sent."""
    return Firing(
        id=firing.schedule_id,
        revision=firing.revision,
        jobs=[asked(job) for job in firing.jobs],
        tick=firing.tick,
        next_run_at=firing.next_run_at,
    )


class Fired(Told, kw_only=True):
    """What became of a firing."""

    outcome: core.FireOutcome
    job_id: str | None = None
