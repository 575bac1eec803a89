"""Schedules, as the API writes and reads them."""

from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

from msgspec import UNSET, Meta, Raw, UnsetType

from windlass.api.calls import MOST_JOBS
from windlass.api.carried_call import CarriedCall, PlainCall
from windlass.api.jobs import NewJob, asked, is_json
from windlass.api.shape import HEADER_SCHEMA, NAME_PATTERN, Asked, Count, Id, Moment, Name, Told
from windlass.core import schedule as core
from windlass.core.commands import FireSchedule, WriteSchedule
from windlass.core.duration import LONGEST
from windlass.core.ids import JobId
from windlass.core.names import MAX_ATTEMPTS, MAX_PRIORITY, check_name
from windlass.core.queries import ListDueSchedules
from windlass.core.rule import SHORTEST
from windlass.core.schedule import CatchUp, Overlap

MOST_RULE = 1_000
"""Characters of a rule and of a time zone."""
_HEADERS = Meta(extra_json_schema={"propertyNames": {"pattern": NAME_PATTERN}, "additionalProperties": HEADER_SCHEMA})
_SHORT = Meta(extra_json_schema={"maxLength": MOST_RULE})


Interval: TypeAlias = Annotated[float, Meta(ge=SHORTEST.total_seconds(), le=LONGEST.total_seconds())]
"""Seconds between two due times."""


class Schedule(Told, kw_only=True):
    """A rule and the job that it makes; `rule` is a cron expression, or an interval as in `every 300s`."""

    id: Name
    rule: Annotated[str, _SHORT]
    timezone: Annotated[str, _SHORT] = "UTC"
    queue: Name
    kind: Name | None = None
    payload_base64: bytes = b""
    payload: Raw | UnsetType = UNSET
    codec: Name
    headers: Annotated[dict[str, str], _HEADERS] = {}
    tenant: Name | None = None
    priority: Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": MAX_PRIORITY})]
    max_attempts: Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": MAX_ATTEMPTS})]
    catch_up: CatchUp = "one"
    overlap: Overlap = "allow"
    declared: bool = False
    paused: bool = False
    next_run_at: Moment | None = None
    last_run_at: Moment | None = None
    last_job_id: Id | None = None
    revision: Count = 0
    orphaned: bool = False
    damage: str | None = None
    """The fields of the stored record that cannot be read, each with the reason; such a field has a stand-in here."""


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
        damage=schedule.damage,
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
        damage=told.damage,
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
    rule: Annotated[str, Meta(extra_json_schema={"format": "windlass-rule"})] | Interval
    job: NewJob
    timezone: Annotated[str, Meta(extra_json_schema={"format": "iana-timezone"})] = "UTC"
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


def schedules_told(schedules: Sequence[core.Schedule]) -> list[Schedule]:
    """Return schedules for a response: JSON with spaces around it as bytes, which would be sent without them."""
    return [schedule_told(each, as_bytes=each.payload != each.payload.strip()) for each in schedules]


WRITE_SCHEDULE: Final = CarriedCall(
    WriteSchedule,
    ScheduleWritten,
    Revision,
    request=lambda command: ScheduleWritten(
        schedule=schedule_told(command.schedule, as_bytes=True), expected=command.expected
    ),
    reply=lambda told: told.revision,
)
DUE_SCHEDULES: Final = PlainCall(
    ListDueSchedules,
    DueAsked,
    DueSchedules,
    request=lambda query: DueAsked(declared=list(query.declared), limit=min(query.limit, MOST_JOBS)),
    read=lambda asked: ListDueSchedules([check_name(each, "schedule id") for each in asked.declared], asked.limit),
    response=lambda _, found: DueSchedules(now=found.now, due=schedules_told(found.due), next_run_at=found.next_run_at),
    reply=lambda told: core.DueSchedules(told.now, [schedule_of(one) for one in told.due], told.next_run_at),
)
FIRE: Final = CarriedCall(
    FireSchedule,
    Firing,
    Fired,
    request=lambda command: firing_asked(command.firing),
    reply=lambda told: core.Fired(told.outcome, None if told.job_id is None else JobId(told.job_id)),
)
