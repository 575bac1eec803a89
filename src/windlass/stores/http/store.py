"""The store over HTTP: each call is one of another process, `windlass serve`, which has the jobs."""

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any, Final

from windlass.core.clock import Rng
from windlass.core.errors import ClientClosed, NotTransactional
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Claim, Enqueued, Job, Note, PreparedJob, Token
from windlass.core.looks import AuditEntry, Finding, Glance, JobPage, Place, ServerRecord
from windlass.core.moving import HeldKey, Moved, Packed, Parcel, Unpacked
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
from windlass.core.schedule import DueSchedules, Fired, Firing, Schedule, ScheduleList
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount
from windlass.core.store import Borrowed, Features, Joined
from windlass.core.topics import Hub, Topic
from windlass.kit.reaching import told_when_slow
from windlass.stores.http.options import Options
from windlass.stores.http.room import Room

_KIND: Final = "an http:// store"


class HttpStore:
    """Jobs in another process; see `core.store.Store` for what each method promises.

    Belongs to the event loop that opened it. After a fork the child opens connections of its own at its first call.
    """

    def __init__(self, options: Options, *, rng: Rng) -> None:
        """Keep jobs where `options` say; nothing is opened yet. Times are those of whoever serves."""
        self._options = options
        self._rng = rng
        self._hub = Hub()
        self._room: Room | None = None
        self._closed = False
        self._atomic_across_queues = True

    @property
    def features(self) -> Features:
        """What this store can do; whether one call may touch several queues is known when it is open."""
        return Features(
            transactional=False,
            wakes_waiters=True,
            between_processes=True,
            survives_process=True,
            replies_can_be_lost=True,
            atomic_across_queues=self._atomic_across_queues,
            # what serves it may be a store where a job can be locked
            locked_for=timedelta(seconds=self._options.timeout * 0.8),
            served=True,
        )

    async def open(self) -> None:
        """Ask who serves; raises `StoreUnavailable` when that is not Windlass, or does not know our token."""
        if self._room is not None:
            return
        room = Room(self._options, self._rng, self._hub)
        try:
            with told_when_slow(self._options.where, self._options.timeout, lambda: room.runner.met):
                about = await room.looks.about()
        except BaseException:
            await room.close()
            raise
        self._atomic_across_queues = about.atomic_across_queues
        self._room = room
        self._hear(room)

    async def close(self) -> None:
        """Finish what was handed over and let go of every connection."""
        self._closed = True
        room, self._room = self._room, None
        if room is not None and room.pid == os.getpid():
            await room.close()

    def sibling(self) -> "HttpStore":
        """Return another store on the same server."""
        return HttpStore(self._options, rng=self._rng)

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` at every news on `topics`."""
        stop = self._hub.listen(topics, ring)
        if self._room is not None and self._room.pid == os.getpid():
            self._room.listener.start()
        return stop

    def join(self, borrowed: Borrowed) -> Joined:  # noqa: ARG002 - there is none to join
        """Refuse: there are no transactions of callers here."""
        raise NotTransactional(_KIND)

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Refuse: there are no transactions of callers here."""
        raise NotTransactional(_KIND)

    async def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> list[Enqueued]:
        """Put jobs in line."""
        return await self._here().moves.enqueue(jobs, request_id)

    async def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> list[Claim]:
        """Give ready jobs to the caller."""
        return await self._here().moves.claim(request, request_id)

    async def settle(self, settlements: Sequence[Settlement], *, request_id: str | None = None) -> list[SettleResult]:
        """Write how claims ended."""
        return await self._here().moves.settle(settlements, request_id)

    async def renew(self, claims: Sequence[tuple[JobId, Token]], lease: timedelta) -> list[Renewed | None]:
        """Let claims hold for longer."""
        return await self._here().moves.renew(claims, lease)

    async def note(self, notes: Sequence[Note]) -> list[bool | None]:
        """Write progress and log lines."""
        return await self._here().moves.note(notes)

    async def cancel(self, ids: Sequence[JobId], retention: Retention) -> list[CancelOutcome]:
        """End waiting jobs, flag running ones."""
        return await self._here().moves.cancel(ids, retention)

    async def retry(self, ids: Sequence[JobId]) -> list[Changed]:
        """Give finished jobs a new life."""
        return await self._here().moves.retry(ids)

    async def delete(self, ids: Sequence[JobId]) -> list[Changed]:
        """Delete finished jobs."""
        return await self._here().moves.delete(ids)

    async def reschedule(self, ids: Sequence[JobId], run_at: datetime | None) -> list[Changed]:
        """Give waiting jobs another time."""
        return await self._here().moves.reschedule(ids, run_at)

    async def set_paused(self, queue: str, *, paused: bool) -> None:
        """Stop or start giving claims from a queue."""
        await self._here().moves.set_paused(queue, paused=paused)

    async def rescue(self, request: RescueRequest, retention: Retention) -> list[Rescued]:
        """Take back claims."""
        return await self._here().moves.rescue(request, retention)

    async def promote(self, *, limit: int) -> int:
        """Make due jobs pending."""
        return await self._here().moves.promote(limit=limit)

    async def prune(self, retention: Retention, *, limit: int) -> int:
        """Delete records past their retention."""
        return await self._here().moves.prune(retention, limit=limit)

    async def write_schedule(self, schedule: Schedule, *, expected: int | None) -> int | None:
        """Write a schedule if its revision is still the expected one."""
        return await self._here().moves.write_schedule(schedule, expected=expected)

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule."""
        return await self._here().moves.remove_schedule(schedule_id)

    async def fire(self, firing: Firing) -> Fired:
        """Enqueue the jobs of a schedule and move its next run on."""
        return await self._here().moves.fire(firing)

    async def kv_write(self, write: KvWrite) -> bool:
        """Write one of the caller's own values."""
        return await self._here().moves.kv_write(write)

    async def lock(self, name: str, holder: str, ttl: timedelta) -> bool:
        """Take or renew a lock."""
        return await self._here().moves.lock(name, holder, ttl)

    async def unlock(self, name: str, holder: str) -> bool:
        """Let go of a lock."""
        return await self._here().moves.unlock(name, holder)

    async def beat(self, server: ServerRecord) -> None:
        """Write that a server is live."""
        await self._here().moves.beat(server)

    async def write_timings(self, timings: Sequence[TimingCount]) -> None:
        """Add to the counts of how long attempts took."""
        await self._here().moves.write_timings(timings)

    async def ended_servers(self) -> list[str]:
        """Return the servers whose process has ended for sure."""
        return await self._here().looks.ended_servers()

    async def leave(self, server_id: str) -> None:
        """Take a server out."""
        await self._here().moves.leave(server_id)

    async def write_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Keep what people did."""
        await self._here().moves.write_audit(entries)

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        """Return jobs with history and log."""
        return await self._here().looks.get(ids)

    async def glance(self, ids: Collection[JobId]) -> dict[JobId, Glance]:
        """Return where jobs stand."""
        return await self._here().looks.glance(ids)

    async def jobs(self, chosen: JobFilter, *, after: int | None, limit: int) -> list[Job]:
        """Return a page of jobs."""
        return await self._here().looks.jobs(chosen, after=after, limit=limit)

    async def newest(self, chosen: JobFilter, *, before: int | None, limit: int, most: int) -> JobPage:
        """Return a page of the newest jobs."""
        return await self._here().looks.newest(chosen, before=before, limit=limit, most=most)

    async def place(self, job_id: JobId) -> Place | None:
        """Return what stands between a job and its claim."""
        return await self._here().looks.place(job_id)

    async def stats(self, queue: str | None = None) -> list[QueueStats]:
        """Count by state."""
        return await self._here().looks.stats(queue)

    async def due_in(self, queues: Sequence[str]) -> timedelta | None:
        """Return how long it is until the next scheduled job comes due."""
        return await self._here().looks.due_in(queues)

    async def paused(self, queues: Sequence[str]) -> list[str]:
        """Return which queues are paused."""
        return await self._here().looks.paused(queues)

    async def kinds(self, queue: str, known: Collection[str] = ()) -> list[str]:
        """Return the kinds of pending jobs that are not known."""
        return await self._here().looks.kinds(queue, known)

    async def waiting(self) -> list[KindStats]:
        """Count the pending jobs by queue and kind."""
        return await self._here().looks.waiting()

    async def minutes(self, *, since: datetime, until: datetime) -> list[MinuteCounts]:
        """Return the counts of each minute."""
        return await self._here().looks.minutes(since=since, until=until)

    async def timings(self, *, since: datetime, until: datetime) -> list[TimingCount]:
        """Return how long attempts took."""
        return await self._here().looks.timings(since=since, until=until)

    async def servers(self) -> list[ServerRecord]:
        """Return every server."""
        return await self._here().looks.servers()

    async def schedules(self, ids: Collection[str] | None = None) -> ScheduleList:
        """Return schedules, and the store's time."""
        return await self._here().looks.schedules(ids)

    async def due_schedules(self, declared: Collection[str], *, limit: int) -> DueSchedules:
        """Return what is due."""
        return await self._here().looks.due_schedules(declared, limit=limit)

    async def audit(self, *, limit: int) -> list[AuditEntry]:
        """Return what people did."""
        return await self._here().looks.audit(limit=limit)

    async def stranded(self, *, dead_after: timedelta) -> int:
        """Count leases that nobody will rescue."""
        return await self._here().looks.stranded(dead_after=dead_after)

    async def kv_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the caller's own values."""
        return await self._here().looks.kv_get(keys)

    async def kv_scan(self, prefix: bytes, *, after: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        """Return the caller's own values by prefix."""
        return await self._here().looks.kv_scan(prefix, after=after, limit=limit)

    async def moved(self) -> Moved | None:
        """Return where the jobs go or went."""
        return await self._here().moving.moved()

    async def set_moved(self, moved: Moved | None) -> None:
        """Let the store take nothing new, or take jobs again."""
        await self._here().moving.set_moved(moved)

    async def pack(self, queue: str, *, limit: int) -> Packed:
        """Return waiting jobs, whole."""
        return await self._here().moving.pack(queue, limit=limit)

    async def unpack(self, parcel: Parcel) -> bool:
        """Put the jobs of a parcel in line."""
        return await self._here().moving.unpack(parcel)

    async def unpacked(self, move: str, queue: str) -> Unpacked | None:
        """Return the last parcel that was unpacked."""
        return await self._here().moving.unpacked(move, queue)

    async def let_go(
        self,
        *,
        move: str | None = None,
        jobs: Sequence[JobId] = (),
        keys: Sequence[str] = (),
        kv: Sequence[bytes] = (),
        schedules: Sequence[str] = (),
    ) -> bool:
        """Forget what another store has now."""
        return await self._here().moving.let_go(move=move, jobs=jobs, keys=keys, kv=kv, schedules=schedules)

    async def timed_keys(self, *, limit: int) -> list[HeldKey]:
        """Return keys that only time frees."""
        return await self._here().moving.timed_keys(limit=limit)

    async def take_keys(self, keys: Sequence[HeldKey]) -> None:
        """Let keys be held, those that are free."""
        await self._here().moving.take_keys(keys)

    async def check(self) -> list[Finding]:
        """Look over what serves, and how it is heard."""
        room = self._here()
        found = await room.looks.check()
        return found if self._hub.silent else [*found, _news(hears=room.listener.connected)]

    def _here(self) -> Room:
        """Return what this process has open."""
        room = self._room
        return room if room is not None and room.pid == os.getpid() else self._reopen()

    def _reopen(self) -> Room:
        """Begin with connections of our own in a forked process."""
        if self._closed or self._room is None:
            raise ClientClosed
        self._room.abandon()
        self._room = Room(self._options, self._rng, self._hub)
        self._hear(self._room)
        return self._room

    def _hear(self, room: Room) -> None:
        if not self._hub.silent:
            room.listener.start()


def _news(*, hears: bool) -> Finding:
    if hears:
        return Finding("news over HTTP", "ok", "new jobs are heard of at once")
    message = "news is not heard: everybody looks each second"
    return Finding("news over HTTP", "warning", message, "look at the log of `windlass serve`")
