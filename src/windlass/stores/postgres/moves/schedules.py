"""Schedules: written and removed by people and code, and fired with the jobs that they make."""

from windlass.core import commands
from windlass.core.failpoint import reach, removed
from windlass.core.ids import JobId
from windlass.core.schedule import Fired, FireOutcome, Firing
from windlass.core.topics import SCHEDULES
from windlass.stores.postgres.moves.enqueue import insert_any
from windlass.stores.postgres.rows import state_of
from windlass.stores.postgres.schedule_rows import ScheduleStanding, schedule_values
from windlass.stores.postgres.work import Changes, Statement, Work


def write(changes: Changes, command: commands.WriteSchedule) -> Work[int | None]:
    """Write a schedule if its revision is the expected one; return the new one."""
    values = schedule_values(command.schedule)
    if command.expected is None:
        rows = yield Statement("insert_schedule", values)
    else:
        rows = yield Statement("update_schedule", {**values, "revision": command.expected})
    if not rows:
        return None
    changes.topics.add(SCHEDULES)
    return int(rows[0][0])


def remove(changes: Changes, command: commands.RemoveSchedule) -> Work[bool]:
    """Remove a schedule; its jobs stay."""
    rows = yield Statement("remove_schedule", {"id": command.schedule_id})
    if not rows:
        return False
    changes.topics.add(SCHEDULES)
    return True


def fire(changes: Changes, command: commands.FireSchedule) -> Work[Fired]:
    """Enqueue the jobs of a schedule and move its next run on, both or neither."""
    firing = command.firing
    schedule = yield from _standing(changes, firing.schedule_id)
    if schedule is None or not _may_fire(schedule, firing):
        return Fired(FireOutcome.LOST, None if schedule is None else schedule.last_job_id)
    if firing.jobs and schedule.overlap == "skip" and (yield from _unfinished(schedule.last_job_id)):
        if firing.tick is not None:
            yield from _move(schedule._replace(next_run_at=firing.next_run_at))
        return Fired(FireOutcome.OVERLAPS, schedule.last_job_id)
    reach("postgres.fire.before_jobs")
    made = yield from insert_any(changes, firing.jobs)
    reach("postgres.fire.before_move")
    last_job_id = made[-1].id if made else schedule.last_job_id
    yield from _move(_after(schedule._replace(last_job_id=last_job_id), firing))
    return Fired(FireOutcome.DONE, last_job_id)


def _standing(changes: Changes, schedule_id: str) -> Work[ScheduleStanding | None]:
    rows = yield Statement("schedule_standing", {"now": changes.now, "id": schedule_id})
    return ScheduleStanding(*rows[0]) if rows else None


def _may_fire(schedule: ScheduleStanding, firing: Firing) -> bool:
    if removed("tick"):
        return True
    return schedule.revision == firing.revision and (firing.tick is None or schedule.due)


def _unfinished(job_id: JobId | None) -> Work[bool]:
    if job_id is None:
        return False
    rows = yield Statement("glance", {"ids": [job_id]})
    return bool(rows) and not state_of(rows[0][1]).finished


def _after(schedule: ScheduleStanding, firing: Firing) -> ScheduleStanding:
    """Return a schedule that has fired; a run that somebody asked for moves nothing, and no job is no run."""
    if firing.tick is None:
        return schedule
    last_run_at = firing.tick if firing.jobs else schedule.last_run_at
    return schedule._replace(last_run_at=last_run_at, next_run_at=firing.next_run_at)


def _move(schedule: ScheduleStanding) -> Work[None]:
    parameters = {
        "id": schedule.id,
        "next_run_at": schedule.next_run_at,
        "last_run_at": schedule.last_run_at,
        "last_job_id": schedule.last_job_id,
    }
    yield Statement("move_schedule", parameters)
