"""Rows of schedules to records and back."""

from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from windlass.core.duration import to_micros
from windlass.core.ids import JobId
from windlass.core.schedule import CatchUp, Overlap, Schedule
from windlass.kit.damage import DECODE_ERRORS, is_sound, read_damaged_schedule
from windlass.kit.records import headers_of, headers_text
from windlass.stores.sqlite.damaged import has_unreadable
from windlass.stores.sqlite.rows import moment


class ScheduleStanding(NamedTuple):
    """What a firing needs to know of a schedule; the columns of `schedule_standing.sql`."""

    id: str
    overlap: Overlap
    paused: int
    next_run_at: int | None
    last_run_at: int | None
    last_job_id: JobId | None
    revision: int


class ScheduleRow(NamedTuple):
    """The columns of a schedule: `{schedule_columns}` in the statements."""

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
    declared: int
    paused: int
    next_run_at: int | None
    last_run_at: int | None
    last_job_id: JobId | None
    revision: int
    payload: bytes


def schedule_row(schedule: Schedule, revision: int) -> ScheduleRow:
    """Return a schedule as it is kept, with the revision that the store gives it."""
    return ScheduleRow(
        id=schedule.id,
        rule=schedule.rule,
        timezone=schedule.timezone,
        queue=schedule.queue,
        kind=schedule.kind,
        codec=schedule.codec,
        headers=headers_text(schedule.headers) if schedule.headers else None,
        tenant=schedule.tenant,
        priority=schedule.priority,
        max_attempts=schedule.max_attempts,
        catch_up=schedule.catch_up,
        overlap=schedule.overlap,
        declared=int(schedule.declared),
        paused=int(schedule.paused),
        next_run_at=micros(schedule.next_run_at),
        last_run_at=micros(schedule.last_run_at),
        last_job_id=schedule.last_job_id,
        revision=revision,
        payload=schedule.payload,
    )


def schedule_of(row: ScheduleRow) -> Schedule:
    """Return the schedule of a row; one that does not read whole with its damage."""
    damage = "cannot be decoded"
    if not has_unreadable(row):
        try:
            schedule = _sound_schedule(row)
        except DECODE_ERRORS as error:
            damage = str(error)
        else:
            if is_sound(schedule):
                return schedule
    schedule = read_damaged_schedule(row._asdict())
    return schedule if schedule.damage is not None else replace(schedule, damage=damage)


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
        declared=bool(row.declared),
        paused=bool(row.paused),
        next_run_at=moment(row.next_run_at),
        last_run_at=moment(row.last_run_at),
        last_job_id=row.last_job_id,
        revision=row.revision,
    )


def micros(at: datetime | None) -> int | None:
    """Return a point in time as it is kept, or None."""
    return None if at is None else to_micros(at)
