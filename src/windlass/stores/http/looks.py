"""What is looked at where it is served."""

from collections.abc import Collection, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, Final

from windlass.api import operations
from windlass.api.about import About
from windlass.api.calls import MOST_JOBS, Nothing
from windlass.api.job_calls import GetAsked
from windlass.api.jobs import job_of
from windlass.api.kv_calls import KvKeysAsked, KvScanAsked
from windlass.api.looks import (
    MOST_LOOKED,
    JobIds,
    Listing,
    NewestAsked,
    glance_of,
    place_of,
    queue_of,
    server_of,
    totals_of,
    waiting_of,
)
from windlass.api.queue_calls import KindsAsked, MinutesAsked, NamesAsked, QueuesAsked
from windlass.api.schedule_calls import ScheduleIdsAsked
from windlass.api.schedules import DueAsked, schedule_of
from windlass.api.server_calls import StrandedAsked
from windlass.api.shape import blob, data
from windlass.api.timings import timings_of
from windlass.api.upkeep_calls import AuditAsked
from windlass.core.errors import JobNotFound, StoreUnavailable
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import AuditEntry, Finding, Glance, JobPage, Place, ServerRecord
from windlass.core.schedule import DueSchedules, ScheduleList
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount
from windlass.stores.http.calls import Calls, pages
from windlass.stores.http.reply import ReplyTooLarge

SHORTEST: Final = timedelta(minutes=1)
"""Of a time whose counts are not asked for in halves any more."""


class Looks:
    """The looks of one store, in one process."""

    def __init__(self, calls: Calls) -> None:
        """Ask through `calls`."""
        self._calls = calls

    async def about(self) -> About:
        """Return what serves there, and who we are to it."""
        return await self._calls.look(operations.ABOUT, Nothing())

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        """Return jobs with history and log."""
        found: list[Job | None] = []
        for page in pages(ids, MOST_JOBS):
            found += await self._get(page)
        return found

    async def _get(self, ids: Sequence[JobId]) -> list[Job | None]:
        """Return a page of jobs, in halves where one reply would be too large."""
        try:
            told = await self._calls.look(operations.GET, GetAsked(ids=list(ids), payload="base64"))
        except StoreUnavailable as error:
            if len(ids) == 1 or not isinstance(error.__cause__, ReplyTooLarge):
                raise
            half = len(ids) // 2
            return [*await self._get(ids[:half]), *await self._get(ids[half:])]
        return [None if one is None else job_of(one) for one in told.jobs]

    async def glance(self, ids: Collection[JobId]) -> dict[JobId, Glance]:
        """Return where jobs stand."""
        found: dict[JobId, Glance] = {}
        for page in pages(list(ids), MOST_JOBS):
            told = await self._calls.look(operations.GLANCE, JobIds(ids=list(page)))
            found |= {JobId(job_id): glance_of(one) for job_id, one in told.jobs.items()}
        return found

    async def jobs(self, chosen: JobFilter, *, after: int | None, limit: int) -> list[Job]:
        """Return a page of jobs; one that is too large for one call is of several moments."""
        found: list[Job] = []
        while len(found) < limit:
            most = min(limit - len(found), MOST_JOBS)
            wanted = Listing(**_choice(chosen), after=after, limit=most, payload="base64")
            told = await self._calls.look(operations.JOBS, wanted)
            found += [job_of(one) for one in told.jobs]
            after = told.next
            if after is None:
                break
        return found

    async def newest(self, chosen: JobFilter, *, before: int | None, limit: int, most: int) -> JobPage:
        """Return a page of the newest jobs, as many as one call tells."""
        if limit < 1 or most < 1:
            return JobPage([], before)
        wanted = NewestAsked(
            **_choice(chosen), before=before, limit=min(limit, MOST_JOBS), most=min(most, MOST_LOOKED), payload="base64"
        )
        told = await self._calls.look(operations.NEWEST, wanted)
        return JobPage([job_of(one) for one in told.jobs], told.next)

    async def place(self, job_id: JobId) -> Place | None:
        """Return what stands between a job and its claim."""
        try:
            return place_of(await self._calls.look(operations.PLACE, Nothing(), job_id=job_id))
        except JobNotFound:
            return None

    async def stats(self, queue: str | None) -> list[QueueStats]:
        """Count by state."""
        told = await self._calls.look(operations.QUEUES, QueuesAsked(queue=queue))
        return [queue_of(one) for one in told.queues]

    async def due_in(self, queues: Sequence[str]) -> timedelta | None:
        """Return how long it is until the next scheduled job comes due."""
        told = [
            (await self._calls.look(operations.DUE_IN, NamesAsked(queues=list(page)))).due_in
            for page in pages(queues, MOST_JOBS)
        ]
        return min((timedelta(seconds=one) for one in told if one is not None), default=None)

    async def paused(self, queues: Sequence[str]) -> list[str]:
        """Return which queues are paused."""
        found: list[str] = []
        for page in pages(queues, MOST_JOBS):
            found += (await self._calls.look(operations.PAUSED, NamesAsked(queues=list(page)))).names
        return found

    async def kinds(self, queue: str, known: Collection[str]) -> list[str]:
        """Return the kinds of pending jobs that are not known."""
        return (await self._calls.look(operations.KINDS, KindsAsked(queue=queue, known=list(known)))).names

    async def waiting(self) -> list[KindStats]:
        """Count the pending jobs by queue and kind."""
        return [waiting_of(one) for one in (await self._calls.look(operations.WAITING, Nothing())).waiting]

    async def minutes(self, *, since: datetime, until: datetime) -> list[MinuteCounts]:
        """Return the counts of each minute."""
        told = await self._calls.look(operations.MINUTES, MinutesAsked(since=since, until=until))
        return [MinuteCounts(one.minute, one.queue, one.kind, totals_of(one.counts)) for one in told.minutes]

    async def timings(self, *, since: datetime, until: datetime) -> list[TimingCount]:
        """Return how long attempts took, in halves of the time where one reply would be too large."""
        try:
            told = await self._calls.look(operations.TIMINGS, MinutesAsked(since=since, until=until))
        except StoreUnavailable as error:
            half = (until - since) / 2
            if half < SHORTEST or not isinstance(error.__cause__, ReplyTooLarge):
                raise
            earlier = await self.timings(since=since, until=since + half)
            return earlier + await self.timings(since=since + half, until=until)
        return timings_of(told.timings)

    async def servers(self) -> list[ServerRecord]:
        """Return every server."""
        return [server_of(one) for one in (await self._calls.look(operations.SERVERS, Nothing())).servers]

    async def ended_servers(self) -> list[str]:
        """Return the servers whose process has ended for sure."""
        return (await self._calls.look(operations.ENDED, Nothing())).names

    async def schedules(self, ids: Collection[str] | None) -> ScheduleList:
        """Return schedules, and the store's time."""
        wanted = ScheduleIdsAsked(ids=None if ids is None else list(ids))
        told = await self._calls.look(operations.SCHEDULES, wanted)
        return ScheduleList(told.now, [schedule_of(one) for one in told.schedules])

    async def due_schedules(self, declared: Collection[str], *, limit: int) -> DueSchedules:
        """Return what is due."""
        wanted = DueAsked(declared=list(declared), limit=min(limit, MOST_JOBS))
        told = await self._calls.look(operations.DUE_SCHEDULES, wanted)
        return DueSchedules(told.now, [schedule_of(one) for one in told.due], told.next_run_at)

    async def audit(self, *, limit: int) -> list[AuditEntry]:
        """Return what people did, as far as one call can tell it."""
        if limit < 1:
            return []
        told = await self._calls.look(operations.AUDIT, AuditAsked(limit=min(limit, MOST_JOBS)))
        return [AuditEntry(one.at, one.actor, one.action, one.target, one.detail) for one in told.entries]

    async def stranded(self, *, dead_after: timedelta) -> int:
        """Count leases that nobody will rescue."""
        wanted = StrandedAsked(dead_after=dead_after.total_seconds())
        return (await self._calls.look(operations.STRANDED, wanted)).count

    async def kv_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the caller's own values."""
        found: list[bytes | None] = []
        for page in pages(keys, MOST_JOBS):
            told = await self._calls.look(operations.KV_GET, KvKeysAsked(keys=[blob(key) for key in page]))
            found += [None if value is None else data(value) for value in told.values]
        return found

    async def kv_scan(self, prefix: bytes, *, after: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        """Return the caller's own values by prefix."""
        found: list[tuple[bytes, bytes]] = []
        while len(found) < limit:
            most = min(limit - len(found), MOST_JOBS)
            wanted = KvScanAsked(prefix=blob(prefix), after=None if after is None else blob(after), limit=most)
            told = (await self._calls.look(operations.KV_SCAN, wanted)).pairs
            found += [(data(pair.key), b"" if pair.value is None else data(pair.value)) for pair in told]
            if len(told) < most:
                break
            after = found[-1][0]
        return found

    async def check(self) -> list[Finding]:
        """Look over what serves there."""
        told = await self._calls.look(operations.CHECK, Nothing())
        return [Finding(one.name, one.level, one.message, one.advice) for one in told.findings]


def _choice(chosen: JobFilter) -> dict[str, Any]:
    """Return a filter as the fields of what is asked for."""
    return {each.name: getattr(chosen, each.name) for each in fields(chosen)}
