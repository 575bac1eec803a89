"""What the state machine does with schedules: puts, removals, looks and firings, with revisions of any age."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from windlass.core.schedule import Firing, Schedule
from windlass.testing import draws
from windlass.testing import schedule_calls as calls
from windlass.testing.call import Call
from windlass.testing.compared import Compared


class ScheduleRules(Compared):
    """Two schedules, and every revision of them that was ever read."""

    @initialize(puts=st.lists(draws.puts, min_size=1, max_size=2))
    def begin_with_schedules(self, puts: list[draws.Put]) -> None:
        """Begin with schedules: they are few beside all else that is done."""
        for put in puts:
            self.do(self.schedule_call(put))

    @rule(put=draws.puts)
    def write_schedule(self, put: draws.Put) -> None:
        """Write a schedule that may be there, gone, or changed since it was read."""
        self.do(self.schedule_call(put))

    @rule(removal=draws.removals)
    def remove_schedule(self, removal: draws.Remove) -> None:
        """Remove a schedule that may not be there."""
        self.do(self.schedule_call(removal))

    @rule(fire=draws.fires)
    def fire_late(self, fire: draws.Fire) -> None:
        """Fire a schedule as it was read at any time."""
        self.do(self.schedule_call(fire))

    @rule(put=draws.puts, fires=st.lists(draws.fires, min_size=1, max_size=4))
    def fire(self, put: draws.Put, fires: list[draws.Fire]) -> None:
        """Fire schedules as they are at that moment, one after the other: each meets what the one before left."""
        self.do(self.schedule_call(put._replace(pick=None)))
        for fire in fires:
            now = self.schedules()
            assert self.model.schedules.look(now)
            self.do(self._fire(fire, now))

    @rule(declared=st.sets(draws.schedule_ids), limit=st.sampled_from([0, 1, draws.MANY]))
    def look_at_schedules(self, declared: Collection[str], limit: int) -> None:
        """Ask which schedules are due, and for some by their ids."""
        self.do(calls.due_schedules(declared, limit))

        known = self.model.schedules.by_id
        found = self.run(self.store.schedules([*declared, "unknown"])).schedules
        assert found == [known[schedule_id] for schedule_id in sorted(declared) if schedule_id in known]

    def schedule_call(self, rival: draws.Put | draws.Remove | draws.Fire) -> Call:
        """Return the call that was drawn."""
        match rival:
            case draws.Put(schedule, next_run, pick):
                return self._write(replace(schedule, next_run_at=self._next(next_run)), pick)
            case draws.Remove(schedule_id):
                return calls.remove_schedule(schedule_id)
            case draws.Fire():
                return self._fire(rival, self.read)

    def _write(self, wanted: Schedule, pick: int | None) -> Call:
        if pick is None or not self.read:
            return calls.write_schedule(wanted, None)
        before = _picked(self.read, pick)
        changed = replace(wanted, id=before.id, last_run_at=before.last_run_at, last_job_id=before.last_job_id)
        return calls.write_schedule(changed, before.revision)

    def _fire(self, fire: draws.Fire, among: Sequence[Schedule]) -> Call:
        if not among:
            return calls.fire(Firing("s1", 1, self.named(fire.jobs, far=fire.far)))
        schedule = _picked(among, fire.pick)
        jobs = self.named(fire.jobs, far=fire.far, queue=schedule.queue)
        made = [job._replace(schedule_id=schedule.id) for job in jobs]
        tick = None if fire.now else schedule.next_run_at or self.clock.now()
        return calls.fire(Firing(schedule.id, schedule.revision, made, tick, self._next(fire.next_run)))

    def _next(self, seconds: int | None) -> datetime | None:
        return None if seconds is None else self.clock.now() + timedelta(seconds=seconds)


def _picked(among: Sequence[Schedule], pick: int) -> Schedule:
    return among[-1 - pick % len(among)]
