"""Rows of schedules to records and back."""

from datetime import datetime
from typing import NamedTuple

from windlass.core.ids import JobId
from windlass.core.schedule import CatchUp, Overlap, Schedule
from windlass.kit.damage import DECODE_ERRORS, is_sound, read_damaged_schedule
from windlass.kit.records import headers_of, headers_text
from windlass.stores.postgres.rows import plain_text, readable
from windlass.stores.postgres.timestamps import out_of_range


class ScheduleStanding(NamedTuple):
    """What a firing needs to know of a schedule; the columns of `schedule_standing.sql`."""

    id: str
    overlap: Overlap
    next_run_at: datetime | None
    last_run_at: datetime | None
    last_job_id: JobId | None
    revision: int
    due: bool
    """Whether its time has come, and it is not paused."""


class ScheduleRow(NamedTuple):
    """The columns of a schedule that `schedules.sql`, `schedules_of.sql` and `upcoming_schedules.sql` select."""

    id: str
    rule: str
    timezone: str
    queue: str
    kind: str | None
    codec: str
    headers: str | None
    tenant: str | None
    priority: int
    max_attempts: int
    catch_up: CatchUp
    overlap: Overlap
    declared: bool
    paused: bool
    next_run_at: datetime | None
    last_run_at: datetime | None
    last_job_id: JobId | None
    revision: int
    payload: bytes


def schedule_values(schedule: Schedule) -> dict[str, object]:
    """Return the parameters of `insert_schedule.sql`, which `update_schedule.sql` takes too."""
    return {
        "id": schedule.id,
        "rule": plain_text(schedule.rule),
        "timezone": plain_text(schedule.timezone),
        "queue": schedule.queue,
        "kind": schedule.kind,
        "codec": schedule.codec,
        "headers": headers_text(schedule.headers) if schedule.headers else None,
        "tenant": schedule.tenant,
        "priority": schedule.priority,
        "max_attempts": schedule.max_attempts,
        "catch_up": schedule.catch_up,
        "overlap": schedule.overlap,
        "declared": schedule.declared,
        "paused": schedule.paused,
        "next_run_at": schedule.next_run_at,
        "last_run_at": schedule.last_run_at,
        "last_job_id": schedule.last_job_id,
        "payload": schedule.payload,
    }


def schedule_of(row: ScheduleRow) -> Schedule:
    """Return the schedule of a row; what cannot be read of it is named in its `damage`."""
    if not out_of_range(row.next_run_at) and not out_of_range(row.last_run_at):
        try:
            schedule = _sound_schedule(row)
        except DECODE_ERRORS:
            pass
        else:
            if is_sound(schedule):
                return schedule
    return read_damaged_schedule(dict(zip(row._fields, readable(row), strict=True)))


def _sound_schedule(row: ScheduleRow) -> Schedule:
    return Schedule(
        id=row.id,
        rule=row.rule,
        timezone=row.timezone,
        queue=row.queue,
        kind=row.kind,
        payload=row.payload,
        codec=row.codec,
        headers=headers_of(row.headers),
        tenant=row.tenant,
        priority=row.priority,
        max_attempts=row.max_attempts,
        catch_up=row.catch_up,
        overlap=row.overlap,
        declared=row.declared,
        paused=row.paused,
        next_run_at=row.next_run_at,
        last_run_at=row.last_run_at,
        last_job_id=row.last_job_id,
        revision=row.revision,
    )
