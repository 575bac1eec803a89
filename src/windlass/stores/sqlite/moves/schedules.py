"""Schedules: written and removed by people and code, and fired with the jobs that they make."""

from typing import NamedTuple

from windlass.core.duration import to_micros
from windlass.core.errors import WindlassError
from windlass.core.failpoint import reach, removed
from windlass.core.ids import JobId
from windlass.core.schedule import Fired, FireOutcome, Firing, Schedule
from windlass.core.topics import SCHEDULES
from windlass.stores.sqlite.moves.enqueue import EnqueueCall, enqueue
from windlass.stores.sqlite.rows import Standing
from windlass.stores.sqlite.schedule_rows import ScheduleStanding, micros, schedule_row
from windlass.stores.sqlite.transaction import Transaction


class WriteCall(NamedTuple):
    """A schedule, and the revision that it must have now."""

    schedule: Schedule
    expected: int | None


def write(tx: Transaction, calls: list[WriteCall]) -> list[int | None]:
    """Write the schedules whose revision is the expected one; return the new ones."""
    return [_write(tx, call) for call in calls]


def _write(tx: Transaction, call: WriteCall) -> int | None:
    found = _standing(tx, call.schedule.id)
    if (None if found is None else found.revision) != call.expected:
        return None
    revision = _next_revision(tx)
    tx.run("write_schedule", schedule_row(call.schedule, revision))
    tx.topics.add(SCHEDULES)
    return revision


def remove(tx: Transaction, ids: list[str]) -> list[bool]:
    """Remove schedules; their jobs stay."""
    return [_remove(tx, schedule_id) for schedule_id in ids]


def _remove(tx: Transaction, schedule_id: str) -> bool:
    if not tx.run("remove_schedule", (schedule_id,)):
        return False
    tx.topics.add(SCHEDULES)
    return True


def fire(tx: Transaction, firings: list[Firing]) -> list[Fired | WindlassError]:
    """Enqueue the jobs of schedules and move their next runs on, both or neither of each."""
    return [_fire(tx, firing) for firing in firings]


def _fire(tx: Transaction, firing: Firing) -> Fired | WindlassError:
    schedule = _standing(tx, firing.schedule_id)
    if schedule is None or not _may_fire(tx, schedule, firing):
        return Fired(FireOutcome.LOST, None if schedule is None else schedule.last_job_id)
    if firing.jobs and schedule.overlap == "skip" and _unfinished(tx, schedule.last_job_id):
        if firing.tick is not None:
            _move(tx, schedule._replace(next_run_at=micros(firing.next_run_at)))
        return Fired(FireOutcome.OVERLAPS, schedule.last_job_id)
    reach("sqlite.fire.before_jobs")
    [made] = enqueue(tx, [EnqueueCall(firing.jobs)])
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
    row = None if job_id is None else tx.row("standing", (job_id,))
    return row is not None and not Standing(*row).state.finished


def _after(schedule: ScheduleStanding, firing: Firing) -> ScheduleStanding:
    """Return a schedule that has fired; a run that somebody asked for moves nothing, and no job is no run."""
    if firing.tick is None:
        return schedule
    last_run_at = to_micros(firing.tick) if firing.jobs else schedule.last_run_at
    return schedule._replace(last_run_at=last_run_at, next_run_at=micros(firing.next_run_at))


def _standing(tx: Transaction, schedule_id: str) -> ScheduleStanding | None:
    row = tx.row("schedule_standing", (schedule_id,))
    return None if row is None else ScheduleStanding(*row)


def _move(tx: Transaction, schedule: ScheduleStanding) -> None:
    parameters = {
        "id": schedule.id,
        "next_run_at": schedule.next_run_at,
        "last_run_at": schedule.last_run_at,
        "last_job_id": schedule.last_job_id,
        "revision": _next_revision(tx),
    }
    tx.run("move_schedule", parameters)


def _next_revision(tx: Transaction) -> int:
    return int(tx.row("next_revision", ())[0])
