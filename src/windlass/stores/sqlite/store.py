"""The SQLite store: writes go to one thread, looks to another, news through a small file."""

import logging
import os
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from windlass.core.clock import Clock, Rng
from windlass.core.errors import ClientClosed
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Claim, Enqueued, Job, Note, PreparedJob, Token
from windlass.core.looks import SERVED, AuditEntry, Finding, Glance, JobPage, Place, ServerRecord
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
from windlass.kit.moves import moving
from windlass.kit.request_names import of_kind
from windlass.stores.sqlite import looks, moving_looks, schedule_looks
from windlass.stores.sqlite.calls import Move
from windlass.stores.sqlite.check import check
from windlass.stores.sqlite.database import Options
from windlass.stores.sqlite.faults import translate
from windlass.stores.sqlite.joined import SqliteJoined
from windlass.stores.sqlite.moves import (
    claim,
    enqueue,
    hold_claims,
    keep,
    leave_store,
    operate,
    promote,
    prune,
    rescue,
    schedules,
    settle,
    unpack,
)
from windlass.stores.sqlite.moves.gate import gated
from windlass.stores.sqlite.newest import newest
from windlass.stores.sqlite.packing import Packer
from windlass.stores.sqlite.room import Room, open_room

logger = logging.getLogger("windlass.sqlite")

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")

FEATURES: Final = Features(
    transactional=True,
    wakes_waiters=True,
    between_processes=True,
    survives_process=True,
    replies_can_be_lost=False,
)

# settlements first and claims last, so that a claim sees what the same commit brought
SETTLE: Final = Move(0, settle.settle)
ENQUEUE: Final = Move(1, enqueue.enqueue)
RENEW: Final = Move(2, hold_claims.renew)
NOTE: Final = Move(3, hold_claims.note)
CANCEL: Final = Move(4, gated(operate.cancel))
RETRY: Final = Move(5, gated(operate.retry))
DELETE: Final = Move(6, operate.delete)
RESCHEDULE: Final = Move(7, gated(operate.reschedule))
PAUSE: Final = Move(8, gated(operate.set_paused))
RESCUE: Final = Move(9, rescue.rescue)
PROMOTE: Final = Move(10, promote.promote)
PRUNE: Final = Move(11, prune.prune)
KV: Final = Move(12, gated(keep.kv_write))
LOCK: Final = Move(13, keep.lock)
UNLOCK: Final = Move(14, keep.unlock)
BEAT: Final = Move(15, keep.beat)
LEAVE: Final = Move(16, keep.leave)
AUDIT: Final = Move(17, keep.write_audit)
TIMINGS: Final = Move(18, keep.write_timings)
WRITE_SCHEDULE: Final = Move(19, gated(schedules.write))
REMOVE_SCHEDULE: Final = Move(20, gated(schedules.remove))
FIRE: Final = Move(21, gated(schedules.fire))
SET_MOVED: Final = Move(22, leave_store.set_moved)
LET_GO: Final = Move(23, leave_store.let_go)
UNPACK: Final = Move(24, gated(unpack.unpack))
TAKE_KEYS: Final = Move(25, gated(unpack.take_keys))
CLAIM: Final = Move(26, claim.claim)


class SqliteStore:
    """Jobs in one file; see `core.store.Store` for what each method promises.

    Belongs to the event loop that opened it. After a fork the child opens the file anew at its first call.
    """

    features = FEATURES

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        rng: Rng,
        synchronous: Literal["full", "normal"] = "full",
        create: bool = True,
        migrate: bool = False,
    ) -> None:
        """Keep jobs at `path`; nothing is opened yet."""
        self._path = path
        self._options = Options(synchronous, create, migrate)
        self._clock = clock
        # for siblings alone: tokens are made by SQLite itself, in the statement that claims
        self._rng = rng
        self._hub = Hub()
        self._room: Room | None = None
        self._packer = Packer()
        self._closed = False

    async def open(self) -> None:
        """Open the file, and make it when there is none."""
        if self._room is None:
            # by its real name: whoever comes by a link meets the same files beside it, and the folder may be left
            self._path = Path(os.path.realpath(self._path))  # noqa: ASYNC240 - a few looks by name, once
            self._room = await open_room(self._path, self._options, self._clock, self._hub)

    async def close(self) -> None:
        """Finish what was handed over and let go of the file."""
        self._closed = True
        room, self._room = self._room, None
        if room is not None and room.pid == os.getpid():
            await room.close()

    def sibling(self) -> "SqliteStore":
        """Return another store on the same file."""
        synchronous, create, migrate = self._options.synchronous, self._options.create, self._options.migrate
        return SqliteStore(
            self._path, clock=self._clock, rng=self._rng, synchronous=synchronous, create=create, migrate=migrate
        )

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Ring on news from this process and from others."""
        if self._room is not None:
            self._room.watch_news()
        return self._hub.listen(topics, ring)

    def join(self, borrowed: Borrowed) -> Joined:
        """Work inside a caller's own transaction."""
        return SqliteJoined(self._path, borrowed, self._clock, self._tell)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[sqlite3.Connection]:
        """Give a connection in a transaction that may write."""
        room = await self._here()
        async with room.lender.transaction() as connection:
            yield connection

    def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> Awaitable[list[Enqueued]]:
        """Put jobs in line, all or none."""
        return self._write(ENQUEUE, enqueue.EnqueueCall(jobs, of_kind("enqueue", request_id)))

    def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> Awaitable[list[Claim]]:
        """Give ready jobs to the caller."""
        return self._write(CLAIM, claim.ClaimCall(request, of_kind("claim", request_id)))

    def settle(
        self, settlements: Sequence[Settlement], *, request_id: str | None = None
    ) -> Awaitable[list[SettleResult]]:
        """Write how claims ended."""
        return self._write(SETTLE, settle.SettleCall(settlements, of_kind("settle", request_id)))

    async def renew(self, claims: Sequence[tuple[JobId, Token]], lease: timedelta) -> list[Renewed | None]:
        """Let claims hold for longer."""
        return await self._write(RENEW, hold_claims.RenewCall(claims, lease))

    async def note(self, notes: Sequence[Note]) -> list[bool]:
        """Write progress and log lines."""
        return await self._write(NOTE, notes)

    async def cancel(self, ids: Sequence[JobId], retention: Retention) -> list[CancelOutcome]:
        """End waiting jobs, flag running ones."""
        return await self._write(CANCEL, operate.CancelCall(ids, retention))

    async def retry(self, ids: Sequence[JobId]) -> list[Changed]:
        """Give finished jobs a new life."""
        return await self._write(RETRY, ids)

    async def delete(self, ids: Sequence[JobId]) -> list[Changed]:
        """Delete finished jobs."""
        return await self._write(DELETE, ids)

    async def reschedule(self, ids: Sequence[JobId], run_at: datetime | None) -> list[Changed]:
        """Give waiting jobs another time."""
        return await self._write(RESCHEDULE, operate.RescheduleCall(ids, run_at))

    async def set_paused(self, queue: str, *, paused: bool) -> None:
        """Stop or start giving claims from a queue."""
        await self._write(PAUSE, operate.PauseCall(queue, paused))

    async def rescue(self, request: RescueRequest, retention: Retention) -> list[Rescued]:
        """Take back claims."""
        return await self._write(RESCUE, rescue.RescueCall(request, retention))

    async def promote(self, *, limit: int) -> int:
        """Make due jobs pending."""
        return await self._write(PROMOTE, limit)

    async def prune(self, retention: Retention, *, limit: int) -> int:
        """Delete records past their retention."""
        return await self._write(PRUNE, prune.PruneCall(retention, limit))

    async def write_schedule(self, schedule: Schedule, *, expected: int | None) -> int | None:
        """Write a schedule if its revision is still the expected one."""
        return await self._write(WRITE_SCHEDULE, schedules.WriteCall(schedule, expected))

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule."""
        return await self._write(REMOVE_SCHEDULE, schedule_id)

    async def fire(self, firing: Firing) -> Fired:
        """Enqueue the jobs of a schedule and move its next run on."""
        return await self._write(FIRE, firing)

    async def kv_write(self, write: KvWrite) -> bool:
        """Write one of the caller's own values."""
        return await self._write(KV, write)

    async def lock(self, name: str, holder: str, ttl: timedelta) -> bool:
        """Take or renew a lock."""
        return await self._write(LOCK, keep.LockCall(name, holder, ttl))

    async def unlock(self, name: str, holder: str) -> bool:
        """Let go of a lock."""
        return await self._write(UNLOCK, (name, holder))

    async def beat(self, server: ServerRecord) -> None:
        """Write that a server is live; its lock comes first, so that nobody ever finds it registered without.

        One of another process, for which this one only speaks, has none: the end of this process proves nothing of it.
        """
        room = await self._here()
        try:
            if server.pid == os.getpid() and SERVED not in server.details:
                room.alive.hold(server.id)
        except OSError as error:
            raise translate(error, self._path) from error
        await self._write(BEAT, server)

    async def ended_servers(self) -> list[str]:
        """Return the servers of this machine whose lock is free."""
        room = await self._here()
        return await self._look(room.alive.ended)

    async def leave(self, server_id: str) -> None:
        """Take a server out, and what it left beside the file."""
        room = await self._here()
        await self._write(LEAVE, server_id)
        room.alive.let_go(server_id)
        await self._look(room.alive.prune_files)

    async def write_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Keep what people did."""
        await self._write(AUDIT, entries)

    async def write_timings(self, timings: Sequence[TimingCount]) -> None:
        """Add counts to those that are kept."""
        await self._write(TIMINGS, timings)

    async def moved(self) -> Moved | None:
        """Return where the jobs go."""
        return await self._look(moving_looks.moved)

    async def set_moved(self, moved: Moved | None) -> None:
        """Take nothing new, or take jobs again."""
        await self._write(SET_MOVED, moved)

    async def pack(self, queue: str, *, limit: int) -> Packed:
        """Return waiting jobs with all that is theirs."""
        return await self._look(self._packer.pack, self._clock.now(), queue, limit)

    async def unpack(self, parcel: Parcel) -> bool:
        """Put the jobs of a parcel in line as they are."""
        moving.check(parcel)
        return await self._write(UNPACK, parcel)

    async def unpacked(self, move: str, queue: str) -> Unpacked | None:
        """Return the last parcel that was unpacked."""
        return await self._look(moving_looks.unpacked, move, queue)

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
        return await self._write(LET_GO, leave_store.LetGoCall(move, jobs, keys, kv, schedules))

    async def timed_keys(self, *, limit: int) -> list[HeldKey]:
        """Return keys that only time frees."""
        return await self._look(moving_looks.timed_keys, self._clock.now(), limit)

    async def take_keys(self, keys: Sequence[HeldKey]) -> None:
        """Let keys be held until their time is over."""
        await self._write(TAKE_KEYS, keys)

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        """Return jobs with history and log."""
        return await self._look(looks.get, ids)

    async def glance(self, ids: Collection[JobId]) -> dict[JobId, Glance]:
        """Return where jobs stand."""
        return await self._look(looks.glance, ids)

    async def jobs(self, chosen: JobFilter, *, after: int | None, limit: int) -> list[Job]:
        """Return a page of jobs."""
        return await self._look(looks.jobs, chosen, after, limit)

    async def newest(self, chosen: JobFilter, *, before: int | None, limit: int, most: int) -> JobPage:
        """Return a page of jobs, the newest first."""
        return await self._look(newest, chosen, before, limit, most)

    async def place(self, job_id: JobId) -> Place | None:
        """Return what stands between a job and its claim."""
        return await self._look(looks.place, self._clock.now(), job_id)

    async def stats(self, queue: str | None = None) -> list[QueueStats]:
        """Count by state."""
        return await self._look(looks.stats, queue)

    async def due_in(self, queues: Sequence[str]) -> timedelta | None:
        """Return how long it is until the next scheduled job comes due."""
        return await self._look(looks.due_in, self._clock.now(), queues)

    async def paused(self, queues: Sequence[str]) -> list[str]:
        """Return which queues are paused."""
        return await self._look(looks.paused, queues)

    async def kinds(self, queue: str, known: Collection[str] = ()) -> list[str]:
        """Return the kinds of pending jobs that are not known."""
        return await self._look(looks.kinds, queue, known)

    async def waiting(self) -> list[KindStats]:
        """Count the pending jobs by queue and kind."""
        return await self._look(looks.waiting)

    async def minutes(self, *, since: datetime, until: datetime) -> list[MinuteCounts]:
        """Return the counts of each minute."""
        return await self._look(looks.minutes, since, until)

    async def timings(self, *, since: datetime, until: datetime) -> list[TimingCount]:
        """Return how long attempts took in each minute."""
        return await self._look(looks.timings, since, until)

    async def servers(self) -> list[ServerRecord]:
        """Return every server."""
        return await self._look(looks.servers)

    async def schedules(self, ids: Collection[str] | None = None) -> ScheduleList:
        """Return schedules, and the store's time."""
        return await self._look(schedule_looks.schedules, self._clock.now(), ids)

    async def due_schedules(self, declared: Collection[str], *, limit: int) -> DueSchedules:
        """Return what is due."""
        return await self._look(schedule_looks.due_schedules, self._clock.now(), declared, limit)

    async def audit(self, *, limit: int) -> list[AuditEntry]:
        """Return what people did."""
        return await self._look(looks.audit, limit)

    async def stranded(self, *, dead_after: timedelta) -> int:
        """Count leases that nobody will rescue."""
        return await self._look(looks.stranded, self._clock.now(), dead_after)

    async def kv_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the caller's own values."""
        return await self._look(looks.kv_get, keys)

    async def kv_scan(self, prefix: bytes, *, after: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        """Return the caller's own values by prefix."""
        return await self._look(looks.kv_scan, prefix, after, limit)

    async def check(self) -> list[Finding]:
        """Look over the file."""
        return await self._look(check, self._path, self._options)

    def _write(self, move: Move[A, R], argument: A) -> Awaitable[R]:
        room = self._room
        if room is None or room.pid != os.getpid():
            return self._write_anew(move, argument)
        return room.writer.submit(move, argument)

    async def _write_anew(self, move: Move[A, R], argument: A) -> R:
        room = await self._reopen()
        return await room.writer.submit(move, argument)

    async def _look(self, look: Callable[..., T], *arguments: Any) -> T:  # noqa: ANN401 - passed on as they are
        room = await self._here()
        return await room.reader.look(lambda cursor: look(cursor, *arguments))

    async def _here(self) -> Room:
        """Return what this process has open."""
        room = self._room
        return room if room is not None and room.pid == os.getpid() else await self._reopen()

    async def _reopen(self) -> Room:
        """Open the file in a forked process: threads, locks and connections of the parent are of no use here."""
        if self._closed or self._room is None:
            raise ClientClosed
        self._room.abandon()
        self._room = await open_room(self._path, self._options, self._clock, self._hub)
        return self._room

    def _tell(self, topics: set[Topic]) -> None:
        """Spread the news of a caller's own commit; called from any thread."""
        room = self._room
        if room is not None and topics:
            room.wake.bump(topics)
            self._hub.ring(topics)
