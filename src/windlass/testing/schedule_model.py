"""The schedules of the model, and what a firing does to one.

Revisions are the store's own: the model is told them by a write, and after a firing by the next look.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from windlass.core.errors import NotAtomicHere
from windlass.core.ids import JobId
from windlass.core.schedule import DueSchedules, Firing, Schedule

UNREAD: Final = -1
"""The revision of a schedule that has fired since the last look: it is not one that anybody knows."""


@dataclass
class ScheduleModel:
    """Every schedule by id, and every revision that the store ever gave."""

    by_id: dict[str, Schedule] = field(default_factory=dict[str, Schedule])
    given: set[int] = field(default_factory=set[int])
    movable: bool = True
    """Whether one that is there may move to another queue; else that raises `NotAtomicHere`."""

    def copy(self) -> "ScheduleModel":
        """Return another one that knows the same."""
        return replace(self, by_id=dict(self.by_id), given=set(self.given))

    def look(self, seen: Sequence[Schedule]) -> bool:
        """Whether these are all schedules, in order; what is told of revisions is learned."""
        known = [self.by_id[schedule_id] for schedule_id in sorted(self.by_id)]
        if [replace(each, revision=UNREAD) for each in known] != [replace(each, revision=UNREAD) for each in seen]:
            return False
        return all(self._learn(own, each.revision) for own, each in zip(known, seen, strict=True))

    def write(self, schedule: Schedule, expected: int | None, revision: int | None) -> bool:
        """Write if the condition holds; whether `revision` is the answer to that."""
        own = self.by_id.get(schedule.id)
        if (None if own is None else own.revision) != expected:
            return revision is None
        if own is not None and own.queue != schedule.queue and not self.movable:
            raise NotAtomicHere(f"moving schedule {schedule.id!r}")
        self.by_id[schedule.id] = fresh = replace(schedule, revision=UNREAD, orphaned=False)
        return revision is not None and self._learn(fresh, revision)

    def remove(self, schedule_id: str) -> bool:
        """Remove; return whether it was there."""
        return self.by_id.pop(schedule_id, None) is not None

    def due(self, declared: Collection[str], limit: int, now: datetime) -> DueSchedules:
        """Return what is due, and the next time of the others."""
        counting = [each for each in self.by_id.values() if not each.declared or each.id in declared]
        timed = sorted((each.next_run_at, each.id) for each in counting if each.next_run_at and not each.paused)
        due = [self.by_id[schedule_id] for at, schedule_id in timed if at <= now][:limit]
        others = [at for at, schedule_id in timed if self.by_id[schedule_id] not in due]
        return DueSchedules(now, due, min(others, default=None))

    def may_fire(self, firing: Firing, now: datetime) -> bool:
        """Whether a firing is not lost."""
        own = self.by_id.get(firing.schedule_id)
        if own is None or own.revision != firing.revision:
            return False
        is_due = own.next_run_at is not None and own.next_run_at <= now and not own.paused
        return firing.tick is None or is_due

    def skip(self, firing: Firing) -> None:
        """Move a schedule on that makes no job because its last one is unfinished."""
        own = self.by_id[firing.schedule_id]
        if firing.tick is not None:
            self.by_id[own.id] = replace(own, next_run_at=firing.next_run_at, revision=UNREAD)

    def fire(self, firing: Firing, job_id: JobId | None) -> None:
        """Write that a schedule has fired, and which job was the last that it made."""
        own = self.by_id[firing.schedule_id]
        changed = replace(own, last_job_id=job_id or own.last_job_id, revision=UNREAD)
        if firing.tick is not None:
            last_run_at = own.last_run_at if job_id is None else firing.tick
            changed = replace(changed, next_run_at=firing.next_run_at, last_run_at=last_run_at)
        self.by_id[own.id] = changed

    def _learn(self, own: Schedule, revision: int) -> bool:
        if own.revision != UNREAD:
            return own.revision == revision
        fresh = revision not in self.given
        self.given.add(revision)
        self.by_id[own.id] = replace(own, revision=revision)
        return fresh
