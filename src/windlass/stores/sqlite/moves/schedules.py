"""Schedules: written and removed by people and code, and fired with the jobs that they make."""

from windlass.core.commands import EnqueueJobs, FireSchedule, RemoveSchedule, WriteSchedule
from windlass.core.duration import to_micros
from windlass.core.errors import WindlassError
from windlass.core.failpoint import reach, removed
from windlass.core.ids import JobId
from windlass.core.schedule import Fired, FireOutcome, Firing
from windlass.core.topics import SCHEDULES
from windlass.kit.records import STATES
from windlass.stores.sqlite.moves.enqueue import enqueue
from windlass.stores.sqlite.moves.receipts import SqliteRequest
from windlass.stores.sqlite.rows import Standing
from windlass.stores.sqlite.schedule_rows import ScheduleStanding, micros, schedule_row
from windlass.stores.sqlite.transaction import Transaction


def write(tx: Transaction, command: WriteSchedule) -> int | None:
    """Write a schedule if its revision is the expected one; return the new one."""
    found = _standing(tx, command.schedule.id)
    if (None if found is None else found.revision) != command.expected:
        return None
    revision = _next_revision(tx)
    tx.run("write_schedule", schedule_row(command.schedule, revision))
    tx.topics.add(SCHEDULES)
    return revision


def remove(tx: Transaction, command: RemoveSchedule) -> bool:
    """Remove a schedule; its jobs stay."""
    if not tx.run("remove_schedule", {"schedule_id": command.schedule_id}):
        return False
    tx.topics.add(SCHEDULES)
    return True


def fire(tx: Transaction, command: FireSchedule) -> Fired | WindlassError:
    """Enqueue the jobs of a schedule and move its next run on, both or neither."""
    firing = command.firing
    schedule = _standing(tx, firing.schedule_id)
    if schedule is None or not _may_fire(tx, schedule, firing):
        return Fired(FireOutcome.LOST, None if schedule is None else schedule.last_job_id)
    if firing.jobs and schedule.overlap == "skip" and _unfinished(tx, schedule.last_job_id):
        if firing.tick is not None:
            _move(tx, schedule._replace(next_run_at=micros(firing.next_run_at)))
        return Fired(FireOutcome.OVERLAPS, schedule.last_job_id)
    reach("sqlite.fire.before_jobs")
    [made] = enqueue(tx, [SqliteRequest(EnqueueJobs(firing.jobs))])
    if isinstance(made, WindlassError):
        return made
    reach("sqlite.fire.before_move")
    last_job_id = made[-1].id if made else schedule.last_job_id
    _move(tx, _after(schedule._replace(last_job_id=last_job_id), firing))
    return Fired(FireOutcome.DONE, last_job_id)


def _may_fire(tx: Transaction, schedule: ScheduleStanding, firing: Firing) -> bool:
    if removed("tick"):
        return True
    if schedule.revision != firing.revision:
        return False
    if firing.tick is None:
        return True
    return not schedule.paused and schedule.next_run_at is not None and schedule.next_run_at <= tx.now


def _unfinished(tx: Transaction, job_id: JobId | None) -> bool:
    row = tx.row("standing", {"job_id": job_id}) if isinstance(job_id, str) else None
    # a job whose state does not read is in no line, and never runs
    state = None if row is None else STATES.get(Standing(*row).state_name)
    return state is not None and not state.finished


def _after(schedule: ScheduleStanding, firing: Firing) -> ScheduleStanding:
    """Return a schedule that has fired; a run that somebody asked for moves nothing, and no job is no run."""
    if firing.tick is None:
        return schedule
    last_run_at = to_micros(firing.tick) if firing.jobs else schedule.last_run_at
    return schedule._replace(last_run_at=last_run_at, next_run_at=micros(firing.next_run_at))


def _standing(tx: Transaction, schedule_id: str) -> ScheduleStanding | None:
    row = tx.row("schedule_standing", {"schedule_id": schedule_id})
    return None if row is None else ScheduleStanding(*row)


def _move(tx: Transaction, schedule: ScheduleStanding) -> None:
    parameters = {
        "schedule_id": schedule.id,
        "next_run_at": schedule.next_run_at,
        "last_run_at": schedule.last_run_at,
        "last_job_id": schedule.last_job_id,
        "revision": _next_revision(tx),
    }
    tx.run("move_schedule", parameters)


def _next_revision(tx: Transaction) -> int:
    return int(tx.row("next_revision", ())[0])
