"""The store on SlateDB: moves go to the one dispatcher of this process, looks to a snapshot or to a reader."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from windlass.core.clock import Clock, Rng
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
from windlass.core.store import Borrowed, Features, Joined, Store
from windlass.core.topics import Topic
from windlass.kit.moves import moving
from windlass.kit.request_names import of_kind
from windlass.stores.slatedb import job_pages, looks, parcel_looks, queue_looks
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.calls import Look, Move
from windlass.stores.slatedb.check import check
from windlass.stores.slatedb.moves import claim, enqueue, housekeeping, keep, parcels, steer
from windlass.stores.slatedb.moves.claim import ClaimCall, RenewCall, SettleCall
from windlass.stores.slatedb.moves.enqueue import DueCall, EnqueueCall, ScheduleWrite
from windlass.stores.slatedb.moves.keep import LockCall, UnlockCall
from windlass.stores.slatedb.moves.parcels import LetGoCall, PackCall
from windlass.stores.slatedb.moves.steer import CancelCall, PauseCall, PruneCall, RescheduleCall, RescueCall
from windlass.stores.slatedb.newest_jobs import newest
from windlass.stores.slatedb.place import place
from windlass.stores.slatedb.reading import Reading, open_reading
from windlass.stores.slatedb.room import CLAIM, SETTLE, Room, enter, leave

if TYPE_CHECKING:
    from asyncio import Future

A = TypeVar("A")
R = TypeVar("R")

# settlements first and claims last, so that a claim sees what came with it
ENQUEUE: Final = Move(
    1,
    enqueue.enqueue,
    ids=lambda call: (job.id for job in call.jobs),
    doubt=lambda call: call.jobs[0].id if call.jobs else None,
    weigh=lambda call: sum(len(job.payload) for job in call.jobs),
)
RENEW: Final = Move(2, claim.renew)
NOTE: Final = Move(3, claim.note)
CANCEL: Final = Move(4, steer.cancel)
RETRY: Final = Move(5, steer.retry)
DELETE: Final = Move(6, steer.delete)
RESCHEDULE: Final = Move(7, steer.reschedule)
PAUSE: Final = Move(8, steer.set_paused)
RESCUE: Final = Move(9, steer.rescue)
PROMOTE: Final = Move(10, steer.promote)
PRUNE: Final = Move(11, steer.prune)
KV: Final = Move(12, keep.kv_write, weigh=lambda write: len(write.value or b""))
LOCK: Final = Move(13, keep.lock)
UNLOCK: Final = Move(14, keep.unlock)
BEAT: Final = Move(15, keep.beat)
LEAVE: Final = Move(16, keep.leave)
AUDIT: Final = Move(17, keep.write_audit)
WRITE_SCHEDULE: Final = Move(18, enqueue.write_schedule)
REMOVE_SCHEDULE: Final = Move(19, enqueue.remove_schedule)
DUE_SCHEDULES: Final = Move(20, enqueue.due_schedules)
FIRE: Final = Move(21, enqueue.fire)
DUE_IN: Final = Move(23, claim.due_in)
TIMINGS: Final = Move(24, keep.write_timings)
UNPACK: Final = Move(25, parcels.unpack)
LET_GO: Final = Move(26, parcels.let_go)
TAKE_KEYS: Final = Move(27, parcels.take_keys)
SET_MOVED: Final = Move(28, parcels.set_moved)
PACK: Final = Move(29, parcels.pack)
ENDED_SERVERS: Final[Move[None, list[str]]] = Move(30, keep.ended_servers)
PRUNE_BESIDE: Final[Move[None, bool]] = Move(31, housekeeping.prune_beside)
MOST_PAGES: Final = 200
"""Pages of records beside jobs that go at once; a store that was not pruned for weeks is done in several rounds."""
MOST_UNSETTLED: Final = 1_000
"""Ends of jobs that a server lets wait: they lie in the one process that also holds what the engine does."""


class SlateStore:
    """Jobs in a bucket; see `core.store.Store` for what each method promises.

    All stores of one process on one database share its owner, whatever event loop they are used in.
    """

    def __init__(self, address: Address, *, clock: Clock, rng: Rng) -> None:
        """Keep jobs at `address`; nothing is opened yet."""
        self._address = address
        self._clock = clock
        self._rng = rng
        self._room: Room | Reading | None = None
        self._of: SlateStore | None = None
        self.features = Features(
            transactional=False,
            wakes_waiters=True,
            between_processes=False,
            survives_process=address.kind != "memory",
            replies_can_be_lost=True,
            one_owner=True,
            most_unsettled=MOST_UNSETTLED,
        )

    async def open(self) -> None:
        """Own the database from now on; raises `StoreOwned` while another process does."""
        if self._room is not None:
            return
        if self._address.look:
            self._room = await open_reading(self._address, self._clock)
        else:
            if self._of is not None and isinstance(self._of._room, Room) and self._of._room.lost is not None:  # noqa: SLF001 - of the same class
                # a part of a program that has lost the database does not take it back from the one that has it now
                raise self._of._room.lost  # noqa: SLF001 - as above
            self._room = await enter(self._address, self._clock, self._rng)

    async def close(self) -> None:
        """Let go of the database; the last store of the process waits until all that was accepted is durable."""
        room, self._room = self._room, None
        if isinstance(room, Reading):
            await room.close()
        elif room is not None:
            await leave(room, self._address.place)

    def sibling(self) -> Store:
        """Return another store on the same database, which this process owns once."""
        sibling = SlateStore(self._address, clock=self._clock, rng=self._rng)
        sibling._of = self
        return sibling

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` right after news on `topics` is durable; return how to stop."""
        return self._open_room.hub.listen(topics, ring)

    def join(self, borrowed: Borrowed) -> Joined:  # noqa: ARG002 - whatever it is, there is nothing to join
        """Raise `NotTransactional`."""
        raise NotTransactional(f"slatedb+{self._address.kind}://")

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Raise `NotTransactional`."""
        raise NotTransactional(f"slatedb+{self._address.kind}://")

    async def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> list[Enqueued]:
        """Put jobs in line, all or none, in their order."""
        return await self._submit(ENQUEUE, EnqueueCall(jobs, of_kind("enqueue", request_id)))

    async def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> list[Claim]:
        """Give up to `limit` ready jobs to the caller, the most urgent first."""
        return await self._submit(CLAIM, ClaimCall(request, of_kind("claim", request_id)))

    async def due_in(self, queues: Sequence[str]) -> timedelta | None:
        """Return how long it is until the next scheduled job of these queues comes due."""
        return await self._submit(DUE_IN, queues)

    async def settle(self, settlements: Sequence[Settlement], *, request_id: str | None = None) -> list[SettleResult]:
        """Write how claims ended, each as one step of its own."""
        return await self._submit(SETTLE, SettleCall(settlements, of_kind("settle", request_id)))

    async def renew(self, claims: Sequence[tuple[JobId, Token]], lease: timedelta) -> list[Renewed | None]:
        """Let these claims hold for `lease` from now."""
        return await self._submit(RENEW, RenewCall(claims, lease))

    async def note(self, notes: Sequence[Note]) -> list[bool]:
        """Write progress and log lines of running jobs."""
        return await self._submit(NOTE, notes)

    async def cancel(self, ids: Sequence[JobId], retention: Retention) -> list[CancelOutcome]:
        """End waiting jobs, and flag running ones."""
        return await self._submit(CANCEL, CancelCall(ids, retention))

    async def retry(self, ids: Sequence[JobId]) -> list[Changed]:
        """Give dead and cancelled jobs a full new budget."""
        return await self._submit(RETRY, ids)

    async def delete(self, ids: Sequence[JobId]) -> list[Changed]:
        """Delete finished jobs."""
        return await self._submit(DELETE, ids)

    async def reschedule(self, ids: Sequence[JobId], run_at: datetime | None) -> list[Changed]:
        """Let waiting jobs run at `run_at`, or now."""
        return await self._submit(RESCHEDULE, RescheduleCall(ids, run_at))

    async def set_paused(self, queue: str, *, paused: bool) -> None:
        """Stop or start giving claims from `queue`."""
        await self._submit(PAUSE, PauseCall(queue, paused))

    async def rescue(self, request: RescueRequest, retention: Retention) -> list[Rescued]:
        """Take back claims: to pending now while attempts are left, else to dead."""
        return await self._submit(RESCUE, RescueCall(request, retention))

    async def promote(self, *, limit: int) -> int:
        """Make up to `limit` scheduled jobs that have come due pending."""
        return await self._submit(PROMOTE, limit)

    async def prune(self, retention: Retention, *, limit: int) -> int:
        """Delete up to `limit` finished records past their retention, and housekeeping records."""
        gone = await self._submit(PRUNE, PruneCall(retention, limit))
        # one call for each page: what others ask for comes between
        for _ in range(MOST_PAGES):
            if not await self._submit(PRUNE_BESIDE, None):
                break
        return gone

    async def write_schedule(self, schedule: Schedule, *, expected: int | None) -> int | None:
        """Write a schedule if its revision is still `expected`."""
        return await self._submit(WRITE_SCHEDULE, ScheduleWrite(schedule, expected))

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule."""
        return await self._submit(REMOVE_SCHEDULE, schedule_id)

    async def due_schedules(self, declared: Collection[str], *, limit: int) -> DueSchedules:
        """Return up to `limit` schedules that are due and not paused."""
        return await self._submit(DUE_SCHEDULES, DueCall(frozenset(declared), limit))

    async def fire(self, firing: Firing) -> Fired:
        """Enqueue the jobs of a schedule and move its next run on."""
        return await self._submit(FIRE, firing)

    async def kv_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the caller's own values."""
        return await self._look(lambda view, _: looks.kv_get(view, keys))

    async def kv_write(self, write: KvWrite) -> bool:
        """Write one of the caller's own values if its condition holds."""
        return await self._submit(KV, write)

    async def kv_scan(self, prefix: bytes, *, after: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` pairs whose key begins with `prefix`."""
        return await self._look(lambda view, _: looks.kv_scan(view, prefix, after, limit))

    async def lock(self, name: str, holder: str, ttl: timedelta) -> bool:
        """Take or renew the lock `name`."""
        return await self._submit(LOCK, LockCall(name, holder, ttl))

    async def unlock(self, name: str, holder: str) -> bool:
        """Let go of a lock."""
        return await self._submit(UNLOCK, UnlockCall(name, holder))

    async def beat(self, server: ServerRecord) -> None:
        """Write that a server is live."""
        await self._submit(BEAT, server)

    async def write_timings(self, timings: Sequence[TimingCount]) -> None:
        """Add counts to those that are kept."""
        await self._submit(TIMINGS, timings)

    async def ended_servers(self) -> list[str]:
        """Return the servers of a former owner whose process is proven to have ended."""
        return await self._submit(ENDED_SERVERS, None)

    async def leave(self, server_id: str) -> None:
        """Take a server out."""
        await self._submit(LEAVE, server_id)

    async def write_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Keep what people did."""
        await self._submit(AUDIT, entries)

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        """Return the jobs with these ids, with history and log."""
        return await self._look(lambda view, _: looks.get(view, ids))

    async def glance(self, ids: Collection[JobId]) -> dict[JobId, Glance]:
        """Return where each of these jobs stands."""
        return await self._look(lambda view, _: looks.glance(view, ids))

    async def jobs(self, chosen: JobFilter, *, after: int | None, limit: int) -> list[Job]:
        """Return up to `limit` jobs in the order of their enqueue."""
        return await self._look(lambda view, _: job_pages.jobs(view, chosen, after, limit))

    async def newest(self, chosen: JobFilter, *, before: int | None, limit: int, most: int) -> JobPage:
        """Return up to `limit` jobs, the newest first."""
        return await self._look(lambda view, _: newest(view, chosen, before, limit=limit, most=most))

    async def place(self, job_id: JobId) -> Place | None:
        """Return what stands between a job and its claim."""
        return await self._look(lambda view, now: place(view, job_id, now))

    async def stats(self, queue: str | None = None) -> list[QueueStats]:
        """Count by state, exactly, for every queue that is known or for one."""
        return await self._look(lambda view, _: queue_looks.stats(view, queue))

    async def paused(self, queues: Sequence[str]) -> list[str]:
        """Return those of `queues` that are paused."""
        return await self._look(lambda view, _: queue_looks.paused(view, queues))

    async def kinds(self, queue: str, known: Collection[str] = ()) -> list[str]:
        """Return the kinds of the pending jobs of `queue` that are not among `known`."""
        return await self._look(lambda view, _: queue_looks.kinds(view, queue, known))

    async def waiting(self) -> list[KindStats]:
        """Count the pending jobs by queue and kind."""
        return await self._look(lambda view, _: queue_looks.waiting(view))

    async def minutes(self, *, since: datetime, until: datetime) -> list[MinuteCounts]:
        """Return what happened in each minute."""
        return await self._look(lambda view, _: queue_looks.minutes(view, since, until))

    async def timings(self, *, since: datetime, until: datetime) -> list[TimingCount]:
        """Return how long attempts took in each minute."""
        return await self._look(lambda view, _: queue_looks.timings(view, since, until))

    async def servers(self) -> list[ServerRecord]:
        """Return every server that has not taken itself out."""
        return await self._look(lambda view, _: looks.servers(view))

    async def schedules(self, ids: Collection[str] | None = None) -> ScheduleList:
        """Return the schedules, or those with these ids, and the store's time."""
        return await self._look(lambda view, now: looks.schedules(view, ids, now))

    async def audit(self, *, limit: int) -> list[AuditEntry]:
        """Return the newest entries first."""
        return await self._look(lambda view, _: looks.audit(view, limit))

    async def stranded(self, *, dead_after: timedelta) -> int:
        """Count the leases that ran out and that nobody will rescue."""
        return await self._look(lambda view, now: looks.stranded(view, dead_after, now))

    async def check(self) -> list[Finding]:
        """Look over the store's health and settings, for `doctor`."""
        return await self._look(lambda view, now: check(view, self._address, now))

    async def moved(self) -> Moved | None:
        """Return where the jobs of this store go or went."""
        return await self._look(lambda view, _: parcel_looks.moved(view))

    async def set_moved(self, moved: Moved | None) -> None:
        """Let this store take nothing new from now on, or with None let it take jobs again."""
        await self._submit(SET_MOVED, moved)

    async def pack(self, queue: str, *, limit: int) -> Packed:
        """Return up to `limit` pending and scheduled jobs of `queue`."""
        return await self._submit(PACK, PackCall(queue, limit))

    async def unpack(self, parcel: Parcel) -> bool:
        """Put the jobs of a parcel in line as they are, if it is the next one."""
        moving.check(parcel)
        return await self._submit(UNPACK, parcel)

    async def unpacked(self, move: str, queue: str) -> Unpacked | None:
        """Return the last parcel of a move and a queue that was unpacked here."""
        return await self._look(lambda view, _: parcel_looks.unpacked(view, move, queue))

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
        return await self._submit(LET_GO, LetGoCall(move, jobs, keys, kv, schedules))

    async def timed_keys(self, *, limit: int) -> list[HeldKey]:
        """Return up to `limit` keys that only time frees and whose time is not over."""
        return await self._look(lambda view, now: parcel_looks.timed_keys(view, limit=limit, now=now))

    async def take_keys(self, keys: Sequence[HeldKey]) -> None:
        """Let these keys be held here until their time is over, those that are free."""
        await self._submit(TAKE_KEYS, keys)

    def _submit(self, move: Move[A, R], argument: A) -> "Future[R]":
        return self._open_room.submit(move, argument)

    def _look(self, look: Look[R]) -> "Future[R]":
        return self._open_room.look(look)

    @property
    def _open_room(self) -> Room | Reading:
        if self._room is None:
            raise ClientClosed
        return self._room
