"""Schedules: rules that make jobs in time, and the one step in which they do."""

from collections.abc import Callable, Collection, MutableMapping
from dataclasses import replace
from datetime import datetime

from windlass.core.ids import JobId
from windlass.core.schedule import DueSchedules, Fired, FireOutcome, Firing, Schedule
from windlass.core.topics import SCHEDULES
from windlass.kit.moves import enqueuing
from windlass.kit.moves.table import Table


class Schedules:
    """The schedules of a store by id; each change gives a revision that no schedule has had."""

    def __init__(
        self, table: Table, schedules: MutableMapping[str, Schedule], next_revision: Callable[[], int]
    ) -> None:
        self._table = table
        self._schedules = schedules
        self._next_revision = next_revision

    def chosen(self, ids: Collection[str] | None) -> list[Schedule]:
        """Return all, or those of these ids that are here, in order of id."""
        found = self._schedules.values() if ids is None else map(self._schedules.get, set(ids))
        return sorted((schedule for schedule in found if schedule is not None), key=lambda schedule: schedule.id)

    def write(self, schedule: Schedule, expected: int | None) -> int | None:
        """Write a schedule if its revision is `expected`; return the new one."""
        found = self._schedules.get(schedule.id)
        if (None if found is None else found.revision) != expected:
            return None
        self._table.news.add(SCHEDULES)
        return self._change(schedule)

    def remove(self, schedule_id: str) -> bool:
        """Remove a schedule; return whether it was there."""
        if self._schedules.pop(schedule_id, None) is None:
            return False
        self._table.news.add(SCHEDULES)
        return True

    def due(self, declared: Collection[str], limit: int, now: datetime) -> DueSchedules:
        """Return what is due, the longest first, and when the next one is that is not among it."""
        here = frozenset(declared)
        timed = [
            (schedule.next_run_at, schedule.id)
            for schedule in self._schedules.values()
            if schedule.next_run_at is not None
            and not schedule.paused
            and (not schedule.declared or schedule.id in here)
        ]
        timed.sort()
        due = [self._schedules[schedule_id] for next_run_at, schedule_id in timed[:limit] if next_run_at <= now]
        return DueSchedules(now, due, timed[len(due)][0] if len(timed) > len(due) else None)

    def fire(self, firing: Firing, now: datetime) -> Fired:
        """Enqueue the jobs of a schedule and move its next run on; raises a `JobConflict` before any write."""
        schedule = self._schedules.get(firing.schedule_id)
        if schedule is None or not _may_fire(schedule, firing, now):
            return Fired(FireOutcome.LOST, None if schedule is None else schedule.last_job_id)
        if firing.jobs and schedule.overlap == "skip" and self._unfinished(schedule.last_job_id):
            if firing.tick is not None:
                self._change(replace(schedule, next_run_at=firing.next_run_at))
            return Fired(FireOutcome.OVERLAPS, schedule.last_job_id)
        made = enqueuing.enqueue(self._table, firing.jobs, now)
        last_job_id = made[-1].id if made else schedule.last_job_id
        self._change(_after(replace(schedule, last_job_id=last_job_id), firing))
        return Fired(FireOutcome.DONE, last_job_id)

    def _change(self, schedule: Schedule) -> int:
        revision = self._next_revision()
        self._schedules[schedule.id] = replace(schedule, revision=revision, orphaned=False)
        return revision

    def _unfinished(self, job_id: JobId | None) -> bool:
        record = None if job_id is None else self._table.jobs.get(job_id)
        return record is not None and not record.state.finished


def _may_fire(schedule: Schedule, firing: Firing, now: datetime) -> bool:
    if schedule.revision != firing.revision:
        return False
    if firing.tick is None:
        return True
    return not schedule.paused and schedule.next_run_at is not None and schedule.next_run_at <= now


def _after(schedule: Schedule, firing: Firing) -> Schedule:
    """Return a schedule that has fired; a run that somebody asked for moves nothing, and no job is no run."""
    if firing.tick is None:
        return schedule
    last_run_at = firing.tick if firing.jobs else schedule.last_run_at
    return replace(schedule, last_run_at=last_run_at, next_run_at=firing.next_run_at)
