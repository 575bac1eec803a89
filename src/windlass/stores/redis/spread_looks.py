"""Looks where every queue has a hash tag of its own: each queue is of one moment, not all of them together."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from operator import itemgetter

from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import AuditEntry, Glance, JobPage, Place, ServerRecord
from windlass.core.schedule import DueSchedules, ScheduleList
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount
from windlass.kit.moves.looking import STRANDED_MOST
from windlass.stores.redis.failures import Failures
from windlass.stores.redis.looks import Looks
from windlass.stores.redis.queues import Queues


class SpreadLooks:
    """See `Looks`: each call goes to the queue that it is about, or to all."""

    def __init__(self, queues: Queues) -> None:
        """Look into `queues`."""
        self._queues = queues

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        """Return jobs with history and log."""
        failures = Failures()
        found = await failures.gather([looks.get(ids) for looks in await self._all()])
        jobs = [next((job for job in each if job is not None), None) for each in zip(*found, strict=True)]
        # one that was not found may be in a queue that does not answer
        failures.throw_unless(bool(jobs) and None not in jobs)
        return jobs or [None for _ in ids]

    async def glance(self, ids: Collection[JobId]) -> dict[JobId, Glance]:
        """Return where jobs stand."""
        found: dict[JobId, Glance] = {}
        failures = Failures()
        for glances in await failures.gather([looks.glance(ids) for looks in await self._all()]):
            found = glances | found
        failures.throw_unless(found.keys() >= set(ids))
        return found

    async def jobs(self, chosen: JobFilter, *, after: int | None, limit: int) -> list[Job]:
        """Return a page of jobs; those of two queues stand nearly in the order of their enqueue."""
        names = await self._queues.names() if chosen.queue is None else [chosen.queue]
        found = await asyncio.gather(
            *[self._queues.looks(name).jobs(chosen, after=after, limit=limit) for name in names]
        )
        return sorted((job for part in found for job in part), key=itemgetter(0))[:limit]

    async def newest(self, chosen: JobFilter, *, before: int | None, limit: int, most: int) -> JobPage:
        """Return a page of jobs, the newest first; each queue is looked at as far back as the others."""
        names = await self._queues.names() if chosen.queue is None else [chosen.queue]
        each = max(most // max(len(names), 1), 1)
        pages = await asyncio.gather(
            *[self._queues.looks(name).newest(chosen, before=before, limit=limit, most=each) for name in names]
        )
        horizon = max((page.next for page in pages if page.next is not None), default=None)
        found = sorted((job for page in pages for job in page.jobs), key=itemgetter(0), reverse=True)
        # beyond it a queue may have jobs that were not looked at
        seen = [job for job in found if horizon is None or job.seq >= horizon]
        if len(seen) <= limit:
            return JobPage(seen, horizon)
        return JobPage(seen[:limit], seen[limit - 1].seq)

    async def place(self, job_id: JobId) -> Place | None:
        """Return what stands between a job and its claim."""
        at = (await self._queues.places_of([job_id])).get(job_id)
        return None if at is None else await self._queues.looks(at).place(job_id)

    async def stats(self, queue: str | None = None) -> list[QueueStats]:
        """Count by state."""
        names = await self._queues.names() if queue is None else [queue]
        found = await asyncio.gather(*[looks.stats(name) for name, looks in self._each(names)])
        return [stats for part in found for stats in part]

    async def due_in(self, queues: Sequence[str]) -> timedelta | None:
        """Return how long it is until the next scheduled job comes due, of those queues that answer."""
        failures = Failures()
        found = await failures.gather([looks.due_in([name]) for name, looks in self._each(queues)])
        failures.throw_unless(bool(found))
        return min((span for span in found if span is not None), default=None)

    async def paused(self, queues: Sequence[str]) -> list[str]:
        """Return which queues are paused, of those that answer."""
        failures = Failures()
        found = await failures.gather([looks.paused([name]) for name, looks in self._each(queues)])
        failures.throw_unless(bool(found))
        return [name for part in found for name in part]

    async def kinds(self, queue: str, known: Collection[str] = ()) -> list[str]:
        """Return the kinds of pending jobs that are not known."""
        return await self._queues.looks(queue).kinds(queue, known)

    async def waiting(self) -> list[KindStats]:
        """Count the pending jobs by queue and kind."""
        found = await asyncio.gather(*[looks.waiting() for looks in await self._all()])
        return sorted(row for part in found for row in part)

    async def minutes(self, *, since: datetime, until: datetime) -> list[MinuteCounts]:
        """Return the counts of each minute."""
        found = await asyncio.gather(*[looks.minutes(since=since, until=until) for looks in await self._all()])
        return sorted(counts for part in found for counts in part)

    async def timings(self, *, since: datetime, until: datetime) -> list[TimingCount]:
        """Return how long attempts took in each minute."""
        return await self._queues.home.looks.timings(since=since, until=until)

    async def servers(self) -> list[ServerRecord]:
        """Return every server."""
        return await self._queues.home.looks.servers()

    async def schedules(self, ids: Collection[str] | None = None) -> ScheduleList:
        """Return schedules, and the store's time."""
        home = await self._queues.home.looks.schedules([])
        failures = Failures()
        found = await failures.gather([looks.schedules(ids) for looks in await self._all()])
        schedules = [schedule for part in found for schedule in part.schedules]
        failures.throw_unless(ids is not None and {schedule.id for schedule in schedules} >= set(ids))
        return ScheduleList(home.now, sorted(schedules, key=lambda schedule: schedule.id))

    async def due_schedules(self, declared: Collection[str], *, limit: int) -> DueSchedules:
        """Return what is due, in those queues that answer: schedules of the others must not keep these waiting."""
        failures = Failures()
        home = await self._queues.home.looks.due_schedules(declared, limit=limit)
        found = await failures.gather([looks.due_schedules(declared, limit=limit) for looks in await self._all()])
        failures.throw_unless(bool(found))
        due = [(schedule.next_run_at or home.now, schedule.id, schedule) for part in found for schedule in part.due]
        due.sort(key=lambda one: one[:2])
        ahead = [part.next_run_at for part in found if part.next_run_at is not None] + [one[0] for one in due[limit:]]
        return DueSchedules(home.now, [schedule for _, _, schedule in due[:limit]], min(ahead, default=None))

    async def audit(self, *, limit: int) -> list[AuditEntry]:
        """Return what people did."""
        return await self._queues.home.looks.audit(limit=limit)

    async def stranded(self, *, dead_after: timedelta) -> int:
        """Count leases that nobody will rescue."""
        home = await self._queues.home.looks.schedules([])
        if any(server.seen_at > home.now - dead_after for server in await self.servers()):
            return 0
        found = await asyncio.gather(*[looks.stranded(dead_after=dead_after) for looks in await self._all()])
        return min(sum(found), STRANDED_MOST)

    async def kv_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the caller's own values."""
        return await self._queues.home.looks.kv_get(keys)

    async def kv_scan(self, prefix: bytes, *, after: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        """Return the caller's own values by prefix."""
        return await self._queues.home.looks.kv_scan(prefix, after=after, limit=limit)

    async def _all(self) -> list[Looks]:
        return [looks for _, looks in self._each(await self._queues.names())]

    def _each(self, names: Sequence[str]) -> list[tuple[str, Looks]]:
        """Return the looks at each of these queues: of several, one that does not answer is given up soon."""
        looks = self._queues.looks if len(names) == 1 else self._queues.round_looks
        return [(name, looks(name)) for name in names]
