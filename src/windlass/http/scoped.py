"""A store as somebody sees it who is limited to some queues: what is in others is not there."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice, takewhile
from typing import Any

from windlass.core.errors import NotTransactional
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Claim, Enqueued, Job, Note, PreparedJob, Token
from windlass.core.looks import AuditEntry, Finding, Glance, JobPage, Place, ServerRecord
from windlass.core.moving import Moved
from windlass.core.requests import (
    CancelOutcome,
    Changed,
    ClaimRequest,
    KvWrite,
    Renewed,
    Rescued,
    RescueRequest,
    Settlement,
    SettleResult,
)
from windlass.core.retention import Retention
from windlass.core.schedule import DueSchedules, Fired, FireOutcome, Firing, Schedule, ScheduleList
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount
from windlass.core.store import Borrowed, Features, Joined, Store
from windlass.core.topics import Topic, queue_topic
from windlass.http.beyond import refuse_beyond
from windlass.http.scoped_moving import ScopedMoving


class ScopedStore(ScopedMoving):
    """Lets through what is about some queues alone.

    A job, schedule or server of another queue is answered as one that is not there; a call that names another queue,
    or that is about the whole store, raises `NotAllowed`. News that tells of all queues at once is not heard: whoever
    waits looks again each `poll_interval`, and learns nothing of when others work.
    """

    def __init__(self, store: Store, queues: Collection[str]) -> None:
        """See only `queues` of `store`, which is opened and closed elsewhere."""
        self._store = store
        self._queues = frozenset(queues)
        self._topics = frozenset(queue_topic(queue) for queue in queues)

    @property
    def features(self) -> Features:
        """What the store can do."""
        return self._store.features

    async def open(self) -> None:
        """Do nothing: it is open."""

    async def close(self) -> None:
        """Do nothing: others use it."""

    def sibling(self) -> "ScopedStore":
        """Return the same view of another store on the same jobs."""
        return ScopedStore(self._store.sibling(), self._queues)

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Listen to news of these queues alone."""
        return self._store.listen(self._topics.intersection(topics), ring)

    def join(self, borrowed: Borrowed) -> Joined:
        """Refuse: a caller's transaction is not here."""
        del borrowed
        raise NotTransactional("a store over HTTP")

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Refuse: transactions do not go over HTTP."""
        raise NotTransactional("a store over HTTP")

    def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> Awaitable[list[Enqueued]]:
        """Put jobs of these queues in line."""
        self._check_jobs(jobs)
        return self._store.enqueue(jobs, request_id=request_id)

    def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> Awaitable[list[Claim]]:
        """Claim from these queues."""
        self._check(request.queues)
        return self._store.claim(request, request_id=request_id)

    async def due_in(self, queues: Sequence[str]) -> timedelta | None:
        """Look at these queues."""
        self._check(queues)
        return await self._store.due_in(queues)

    def settle(
        self, settlements: Sequence[Settlement], *, request_id: str | None = None
    ) -> Awaitable[list[SettleResult]]:
        """Settle by tokens, which only a claim of these queues can have given; what comes with it stays in them."""
        for settlement in settlements:
            self._check_jobs(settlement.then)
            self._check_kv(settlement.kv)
        return self._store.settle(settlements, request_id=request_id)

    async def renew(self, claims: Sequence[tuple[JobId, Token]], lease: timedelta) -> list[Renewed | None]:
        """Renew by tokens."""
        return await self._store.renew(claims, lease)

    async def note(self, notes: Sequence[Note]) -> Sequence[bool | None]:
        """Note by tokens."""
        return await self._store.note(notes)

    async def cancel(self, ids: Sequence[JobId], retention: Retention) -> list[CancelOutcome]:
        """Cancel jobs of these queues."""
        ours = await self._ours(ids)
        outcomes = iter(await self._store.cancel(_only(ids, ours), retention))
        return [next(outcomes) if each in ours else CancelOutcome.NOT_FOUND for each in ids]

    async def retry(self, ids: Sequence[JobId]) -> list[Changed]:
        """Retry jobs of these queues."""
        return await self._change(ids, self._store.retry)

    async def delete(self, ids: Sequence[JobId]) -> list[Changed]:
        """Delete jobs of these queues."""
        return await self._change(ids, self._store.delete)

    async def reschedule(self, ids: Sequence[JobId], run_at: datetime | None) -> list[Changed]:
        """Reschedule jobs of these queues."""
        return await self._change(ids, lambda ours: self._store.reschedule(ours, run_at))

    async def set_paused(self, queue: str, *, paused: bool) -> None:
        """Pause or resume one of these queues."""
        self._check([queue])
        await self._store.set_paused(queue, paused=paused)

    async def rescue(self, request: RescueRequest, retention: Retention) -> list[Rescued]:
        """Rescue jobs of these queues."""
        if request.queues is None:
            request = request._replace(queues=sorted(self._queues))
        self._check(request.queues or ())
        return await self._store.rescue(request, retention)

    async def promote(self, *, limit: int) -> int:
        """Refuse: it is about all queues."""
        del limit
        refuse_beyond("promotion")

    async def prune(self, retention: Retention, *, limit: int) -> int:
        """Refuse: it is about all queues."""
        del retention, limit
        refuse_beyond("pruning")

    async def write_schedule(self, schedule: Schedule, *, expected: int | None) -> int | None:
        """Write a schedule that makes jobs in these queues, over none of another queue."""
        self._check([schedule.queue])
        if await self._is_foreign(schedule.id):
            return None
        return await self._store.write_schedule(schedule, expected=expected)

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule of these queues."""
        return not await self._is_foreign(schedule_id) and await self._store.remove_schedule(schedule_id)

    async def due_schedules(self, declared: Collection[str], *, limit: int) -> DueSchedules:
        """Refuse: it is about all queues."""
        del declared, limit
        refuse_beyond("a look at all due schedules")

    async def fire(self, firing: Firing) -> Fired:
        """Fire a schedule of these queues."""
        self._check_jobs(firing.jobs)
        if await self._is_foreign(firing.schedule_id):
            return Fired(FireOutcome.LOST)
        return await self._store.fire(firing)

    async def kv_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Refuse: the key space belongs to all."""
        del keys
        refuse_beyond("the kv space")

    async def kv_write(self, write: KvWrite) -> bool:
        """Refuse: the key space belongs to all."""
        del write
        refuse_beyond("the kv space")

    async def kv_scan(self, prefix: bytes, *, after: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        """Refuse: the key space belongs to all."""
        del prefix, after, limit
        refuse_beyond("the kv space")

    async def lock(self, name: str, holder: str, ttl: timedelta) -> bool:
        """Refuse: locks belong to all."""
        del name, holder, ttl
        refuse_beyond("a lock")

    async def unlock(self, name: str, holder: str) -> bool:
        """Refuse: locks belong to all."""
        del name, holder
        refuse_beyond("a lock")

    async def beat(self, server: ServerRecord) -> None:
        """Write that a server is live that works on these queues, over no other one's record.

        What it declares must be of these queues too: a schedule fires while a live server declares it.
        """
        self._check(server.queues)
        if await self._is_foreign_server(server.id):
            refuse_beyond(f"server {server.id}")
        for schedule_id in server.schedules:
            if await self._is_foreign(schedule_id):
                refuse_beyond(f"schedule {schedule_id!r}")
        await self._store.beat(server)

    async def write_timings(self, timings: Sequence[TimingCount]) -> None:
        """Add to the counts of these queues."""
        self._check({row.queue for row in timings})
        await self._store.write_timings(timings)

    async def ended_servers(self) -> list[str]:
        """Tell of none: others look after them."""
        return []

    async def leave(self, server_id: str) -> None:
        """Take a server of these queues out."""
        if not await self._is_foreign_server(server_id):
            await self._store.leave(server_id)

    async def write_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Keep what people did."""
        await self._store.write_audit(entries)

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        """Return jobs of these queues."""
        return [job if job is not None and job.queue in self._queues else None for job in await self._store.get(ids)]

    async def glance(self, ids: Collection[JobId]) -> dict[JobId, Glance]:
        """Glance at jobs of these queues."""
        return await self._store.glance(await self._ours(list(ids)))

    async def jobs(self, chosen: JobFilter, *, after: int | None, limit: int) -> list[Job]:
        """List jobs of these queues."""
        if chosen.queue is not None:
            found = chosen.queue in self._queues
            return await self._store.jobs(chosen, after=after, limit=limit) if found else []
        pages = [
            await self._store.jobs(replace(chosen, queue=queue), after=after, limit=limit)
            for queue in sorted(self._queues)
        ]
        return list(islice(merge(*pages, key=lambda job: job.seq), limit))

    async def newest(self, chosen: JobFilter, *, before: int | None, limit: int, most: int) -> JobPage:
        """List the newest jobs of these queues."""
        if chosen.queue is not None:
            if chosen.queue not in self._queues:
                return JobPage([], None)
            return await self._store.newest(chosen, before=before, limit=limit, most=most)
        # a share of `most` for each: whoever is limited to many queues costs the store no more than others
        share = max(1, most // max(1, len(self._queues)))
        pages = [
            await self._store.newest(replace(chosen, queue=queue), before=before, limit=limit, most=share)
            for queue in sorted(self._queues)
        ]
        return merged(pages, limit)

    async def place(self, job_id: JobId) -> Place | None:
        """Look at a job of these queues; who holds its key is told where that is of these queues too."""
        if not await self._ours([job_id]):
            return None
        place = await self._store.place(job_id)
        if place is None or place.key_holder is None or await self._ours([place.key_holder]):
            return place
        return place._replace(key_holder=None)

    async def stats(self, queue: str | None = None) -> list[QueueStats]:
        """Count in these queues."""
        if queue is not None and queue not in self._queues:
            return []
        return [row for row in await self._store.stats(queue) if row.queue in self._queues]

    async def paused(self, queues: Sequence[str]) -> list[str]:
        """Look at these queues."""
        self._check(queues)
        return await self._store.paused(queues)

    async def kinds(self, queue: str, known: Collection[str] = ()) -> list[str]:
        """Look at these queues."""
        self._check([queue])
        return await self._store.kinds(queue, known)

    async def waiting(self) -> list[KindStats]:
        """Count in these queues."""
        return [row for row in await self._store.waiting() if row.queue in self._queues]

    async def minutes(self, *, since: datetime, until: datetime) -> list[MinuteCounts]:
        """Return what happened in these queues."""
        return [row for row in await self._store.minutes(since=since, until=until) if row.queue in self._queues]

    async def timings(self, *, since: datetime, until: datetime) -> list[TimingCount]:
        """Return how long attempts took in these queues."""
        return [row for row in await self._store.timings(since=since, until=until) if row.queue in self._queues]

    async def servers(self) -> list[ServerRecord]:
        """Return the servers that work on these queues alone."""
        return [record for record in await self._store.servers() if self._is_ours(record)]

    async def schedules(self, ids: Collection[str] | None = None) -> ScheduleList:
        """Return the schedules that make jobs in these queues."""
        now, found = await self._store.schedules(ids)
        return ScheduleList(now, [schedule for schedule in found if schedule.queue in self._queues])

    async def audit(self, *, limit: int) -> list[AuditEntry]:
        """Refuse: it is about all queues."""
        del limit
        refuse_beyond("the audit")

    async def stranded(self, *, dead_after: timedelta) -> int:
        """Tell of none: they may be of other queues."""
        del dead_after
        return 0

    async def check(self) -> list[Finding]:
        """Refuse: it is about the whole store."""
        refuse_beyond("a check of the store")

    async def moved(self) -> Moved | None:
        """Tell where the jobs of the store go: an enqueue tells that to everybody too."""
        return await self._store.moved()

    def _check(self, queues: Iterable[str]) -> None:
        for queue in queues:
            if queue not in self._queues:
                refuse_beyond(f"queue {queue!r}")

    def _check_jobs(self, jobs: Iterable[PreparedJob]) -> None:
        for job in jobs:
            self._check([job.queue])
            self._check_kv(job.kv)
            if job.unique is not None and not job.unique.name.startswith("queue|"):
                refuse_beyond("a unique key over several queues")

    def _check_kv(self, kv: object) -> None:
        if kv:
            refuse_beyond("the kv space")

    async def _ours(self, ids: Sequence[JobId]) -> list[JobId]:
        jobs = await self._store.get(ids)
        return [job.id for job in jobs if job is not None and job.queue in self._queues]

    async def _change(
        self, ids: Sequence[JobId], change: Callable[[list[JobId]], Awaitable[list[Changed]]]
    ) -> list[Changed]:
        ours = await self._ours(ids)
        changed = iter(await change(_only(ids, ours)))
        return [next(changed) if each in ours else Changed.NOT_FOUND for each in ids]

    async def _is_foreign(self, schedule_id: str) -> bool:
        _, found = await self._store.schedules([schedule_id])
        return any(schedule.queue not in self._queues for schedule in found)

    async def _is_foreign_server(self, server_id: str) -> bool:
        return any(record.id == server_id and not self._is_ours(record) for record in await self._store.servers())

    def _is_ours(self, record: ServerRecord) -> bool:
        return bool(record.queues) and self._queues.issuperset(record.queues)


def merged(pages: Sequence[JobPage], limit: int) -> JobPage:
    """Return the newest of all pages, as far back as each of them has been looked at, and where to look on."""
    looked = max((page.next for page in pages if page.next is not None), default=None)
    found = merge(*(page.jobs for page in pages), key=lambda job: -job.seq)
    jobs = list(takewhile(lambda job: looked is None or job.seq >= looked, found))
    if len(jobs) > limit:
        return JobPage(jobs[:limit], jobs[limit - 1].seq)
    return JobPage(jobs, looked)


def _only(ids: Sequence[JobId], ours: Collection[JobId]) -> list[JobId]:
    return [each for each in ids if each in ours]
