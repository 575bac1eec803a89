"""One store and one model, side by side: how calls are made on both, and how all that can be read is compared."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from hypothesis.stateful import RuleBasedStateMachine, invariant

from windlass.core.clock import Clock, Rng
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job, PreparedJob, Token
from windlass.core.looks import DeadJob, death_of
from windlass.core.schedule import Schedule
from windlass.core.states import State
from windlass.core.stats import KindStats, QueueStats, Totals
from windlass.core.store import Store
from windlass.testing import draws
from windlass.testing.call import Call
from windlass.testing.calls import in_full, visible
from windlass.testing.clock import FakeClock
from windlass.testing.model import Minute, Model
from windlass.testing.one_queue import brought_into
from windlass.testing.rng import SeededRng
from windlass.testing.schedule_model import ScheduleModel

T = TypeVar("T")
Place: TypeAlias = Callable[[Clock, Rng], Store]
"""Makes a store, not open yet, in one place: a second one made there finds the jobs of the first."""
Fresh: TypeAlias = Callable[[], AbstractContextManager[Place]]


class View(NamedTuple):
    """All that can be read of a store, without what is its own business."""

    jobs: list[Job]
    holders: dict[JobId, tuple[bool, Token | None]]
    queues: dict[str, tuple[bool, Totals]]
    minutes: dict[Minute, Totals]
    values: list[tuple[bytes, bytes]]


class Compared(RuleBasedStateMachine):
    """One store, one model, and what was read of them so far; the rules are added by others."""

    def __init__(self, fresh: Fresh) -> None:
        """Open a fresh store."""
        super().__init__()
        self.clock = FakeClock()
        self.begun_at = self.clock.now()
        self.ids: list[JobId] = []
        self.read: list[Schedule] = []
        self.revisions: set[int] = set()
        self.runner = asyncio.Runner()
        self.where: AbstractContextManager[Place] = fresh()
        self.place: Place = self.where.__enter__()
        self.rng = SeededRng()
        self.store: Store = self.place(self.clock, self.rng)
        atomic = self.store.features.atomic_across_queues
        self.model = Model(self.clock.now(), atomic, schedules=ScheduleModel(movable=atomic))
        self.run(self.store.open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do one call of the store."""
        return self.runner.run(work)

    def teardown(self) -> None:
        """Close the store, whatever happened."""
        try:
            self.run(self.store.close())
        finally:
            self.runner.close()
            self.where.__exit__(None, None, None)

    @invariant()
    def everything_is_as_the_model_says(self) -> None:
        """Read everything back, in every way that a store can be read."""
        seen, wanted = self.view(), self.wanted(self.model)

        assert seen.jobs == wanted.jobs
        assert seen.holders == wanted.holders
        assert seen.queues == wanted.queues
        assert seen.minutes == wanted.minutes
        assert seen.values == wanted.values
        assert self.model.schedules.look(self.schedules())

    def do(self, call: Call, *, repeat: bool = False) -> Any:  # noqa: ANN401 - each call has an answer of its own
        answer = self.run(gathered([call.make(self.store)]))[0]
        assert call.explain(self.model, answer), (call.name, answer)
        if repeat:
            assert self.run(gathered([call.make(self.store)])) == [answer]
        return answer

    def view(self) -> View:
        listed = self.in_line(self.listing())
        read = self.run(self.store.get([*(job.id for job in listed), *self.ids]))
        assert [job and visible(job) for job in read[: len(listed)]] == [
            visible(job)._replace(headers=dict(job.headers)) for job in listed
        ]
        assert {job.id for job in read if job is not None} == {job.id for job in listed}
        assert all(job.attempt <= job.max_attempts for job in listed)
        glances = self.run(self.store.glance(self.ids))
        return View(
            jobs=[in_full(job, self.clock.now()) for job in read[: len(listed)] if job is not None],
            holders={
                job_id: (glance.cancel_requested, glance.token if glance.state is State.RUNNING else None)
                for job_id, glance in glances.items()
            },
            queues=self._queues(listed),
            minutes=self._minutes(),
            values=self.run(self.store.kv_scan(b"", after=None, limit=draws.MANY)),
        )

    def wanted(self, model: Model) -> View:
        made = {record.job.id: record for record in sorted(model.jobs.values(), key=lambda record: record.job.seq)}
        records = [made[job.id] for job in self.in_line([record.job for record in made.values()])]
        return View(
            jobs=[in_full(record.job, self.clock.now()) for record in records],
            holders={record.job.id: (record.job.cancel_requested, record.token) for record in records},
            queues={queue: (paused, model.totals(queue)) for queue, paused in sorted(model.paused.items())},
            minutes={minute: Totals(**counts) for minute, counts in model.counts.items()},
            values=sorted(model.kv.values.items()),
        )

    def schedules(self) -> list[Schedule]:
        """Return the schedules that there are; how each was at any time can be picked from then on."""
        now, schedules = self.run(self.store.schedules())
        assert now == self.clock.now()
        fresh = [schedule for schedule in schedules if schedule.revision not in self.revisions]
        self.read += fresh
        self.revisions.update(schedule.revision for schedule in fresh)
        return schedules

    def _queues(self, listed: Sequence[Job]) -> dict[str, tuple[bool, Totals]]:
        rows = self.run(self.store.stats())
        for row in rows:
            # the counts of one moment equal a listing of the same moment
            here = [job for job in listed if job.queue == row.queue]
            assert row == _counted(row, here)
        assert [row.queue for row in rows] == sorted(row.queue or "" for row in rows)
        self._look_closer(rows, listed)
        return {row.queue or "": (row.paused, row.totals) for row in rows}

    def _look_closer(self, rows: Sequence[QueueStats], listed: Sequence[Job]) -> None:
        """Ask in other words for what was told already."""
        names = [row.queue or "" for row in rows]
        assert self.run(self.store.paused([*names, "unknown"])) == [row.queue for row in rows if row.paused]
        for queue in names:
            ready = {job.kind for job in listed if job.queue == queue and job.state is State.PENDING}
            assert self.run(self.store.kinds(queue)) == sorted(kind for kind in ready if kind is not None)
            assert self.run(self.store.kinds(queue, ["x"])) == sorted(ready - {None, "x"}, key=str)
        assert self.run(self.store.waiting()) == _waiting(listed)
        assert self.run(self.store.dead(None, before=None, limit=draws.MANY)) == _dead(listed)

    def _minutes(self) -> dict[Minute, Totals]:
        since, until = self.begun_at - timedelta(minutes=1), self.clock.now() + timedelta(minutes=1)
        rows = self.run(self.store.minutes(since=since, until=until))
        return {(row.minute, row.queue, row.kind): row.counts for row in rows if any(row.counts)}

    def listing(self) -> list[Job]:
        return self.run(self.store.jobs(JobFilter(), after=None, limit=draws.MANY))

    def in_line(self, jobs: Sequence[Job]) -> list[Job]:
        """Return a listing as far as its order counts: on a store that is not atomic over queues, within each."""
        assert all(one.seq < other.seq for one, other in pairwise(jobs))
        return list(jobs) if self.model.atomic_across_queues else sorted(jobs, key=lambda job: job.queue)

    def lines(self, ids: Sequence[JobId]) -> list[list[JobId]]:
        """Return which of the jobs that one call named stand in one line, in their order."""
        if self.model.atomic_across_queues:
            return [list(ids)]
        homes = self.model.homes
        return [[job_id for job_id in ids if homes[job_id] == queue] for queue in {homes[job_id] for job_id in ids}]

    def named(self, jobs: Sequence[PreparedJob], *, far: bool, queue: str | None = None) -> list[PreparedJob]:
        """Give each job of one call an id that was never used.

        On a store that is not atomic over queues they are brought into `queue`, or that of the first, unless `far`.
        """
        if jobs and not far and not self.model.atomic_across_queues:
            jobs = brought_into(jobs, queue or jobs[0].queue)
        first = len(self.ids) + 1
        named = [job._replace(id=JobId(str(UUID(int=first + n)))) for n, job in enumerate(jobs)]
        self.ids += [job.id for job in named]
        self.model.homes.update((job.id, job.queue) for job in named)
        return named


async def gathered(work: Iterable[Awaitable[Any]]) -> list[Any]:
    """Make calls at once, and return their answers in order."""
    return await asyncio.gather(*work)


def _counted(row: QueueStats, jobs: Sequence[Job]) -> QueueStats:
    waiting = [job.run_at for job in jobs if job.state is State.PENDING]
    states = Counter(job.state for job in jobs)
    return replace(
        row,
        scheduled=states[State.SCHEDULED],
        pending=states[State.PENDING],
        running=states[State.RUNNING],
        succeeded=states[State.SUCCEEDED],
        dead=states[State.DEAD],
        cancelled=states[State.CANCELLED],
        oldest_waiting=min(waiting, default=None),
    )


def _dead(jobs: Iterable[Job]) -> list[DeadJob]:
    return sorted((DeadJob(death_of(job), job) for job in jobs if job.state is State.DEAD), reverse=True)


def _waiting(jobs: Iterable[Job]) -> list[KindStats]:
    times: dict[tuple[str, str], list[datetime]] = {}
    for job in jobs:
        if job.state is State.PENDING:
            times.setdefault((job.queue, job.kind or ""), []).append(job.run_at)
    return [KindStats(*pair, len(due), min(due)) for pair, due in sorted(times.items())]
