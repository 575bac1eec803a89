"""The store behind `memory://`."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from itertools import count, islice
from typing import Any

from windlass.core.clock import Clock, Rng
from windlass.core.duration import ZERO
from windlass.core.errors import NotTransactional
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
from windlass.core.topics import PAUSES, Hub, Topic, lock_topic
from windlass.kit.moves import claiming, enqueuing, looking, moving, settling, steering
from windlass.kit.moves.scheduling import Schedules
from windlass.stores.memory import inspecting, parcels, queues, services
from windlass.stores.memory.house import House
from windlass.stores.memory.step import NewStep, Step
from windlass.stores.memory.table import Table

FEATURES = Features(
    transactional=False,
    wakes_waiters=True,
    between_processes=False,
    survives_process=False,
    replies_can_be_lost=False,
)


class MemoryStore:
    """Jobs in the memory of this process: for tests, and the model that every other store is compared with.

    It may be shared by threads and event loops. `close` leaves the jobs where they are, since others may hold the
    same store.
    """

    features = FEATURES

    def __init__(self, *, clock: Clock, rng: Rng) -> None:
        self._rng = rng
        self._table = Table()
        self._house = House()
        self._schedules = Schedules(self._table, {}, count(1).__next__)
        self._hub = Hub()
        self._step = Step(clock, self._table, self._hub)
        self._new_step = NewStep(self._step, self._house)

    async def open(self) -> None:
        """Do nothing: there is nothing to connect to."""

    async def close(self) -> None:
        """Do nothing: there is nothing to let go of."""

    def sibling(self) -> Store:
        """Return this store: it may be used by every event loop, and a close of one leaves it to the others."""
        return self

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` right after news on `topics`; return how to stop."""
        return self._hub.listen(topics, ring)

    def join(self, borrowed: Borrowed) -> Joined:  # noqa: ARG002 - whatever it is, there is nothing to join
        """Raise `NotTransactional`."""
        raise NotTransactional("memory://")

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Raise `NotTransactional`."""
        raise NotTransactional("memory://")

    async def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> list[Enqueued]:
        """Put jobs in line, all or none, in their order."""
        with self._step as now:
            if request_id is not None and request_id in self._house.enqueued:
                return list(self._house.enqueued[request_id][1])
            moving.refuse(self._house.moved)
            done = enqueuing.enqueue(self._table, jobs, now)
            if request_id is not None:
                self._house.enqueued[request_id] = now, list(done)
            return done

    async def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> list[Claim]:
        """Give up to `limit` ready jobs to the caller, the most urgent first."""
        with self._step as now:
            if request_id is not None and request_id in self._house.claimed:
                return claiming.still_held(self._table, self._house.claimed[request_id][1])
            moving.refuse(self._house.moved)
            ready = queues.ready(self._table.queues, request, now)
            claims = claiming.claim(self._table, ready, request, self._rng, now)
            if request_id is not None:
                self._house.claimed[request_id] = now, [(claim.job.id, claim.token) for claim in claims]
            return claims

    async def due_in(self, queues: Sequence[str]) -> timedelta | None:
        """Return how long it is until the next scheduled job of these queues comes due."""
        with self._step as now:
            known = [self._table.queues[name] for name in queues if name in self._table.queues]
            heads = [queue.due.first() for queue in known if not queue.paused]
            return min((max(ZERO, head.run_at - now) for head in heads if head is not None), default=None)

    async def settle(self, settlements: Sequence[Settlement], *, request_id: str | None = None) -> list[SettleResult]:
        """Write how claims ended, each as one step of its own."""
        with self._step as now:
            if request_id is not None and request_id in self._house.settled:
                return list(self._house.settled[request_id][1])
            results = [settling.settle(self._table, settlement, now) for settlement in settlements]
            if request_id is not None:
                self._house.settled[request_id] = now, list(results)
            return results

    async def renew(self, claims: Sequence[tuple[JobId, Token]], lease: timedelta) -> list[Renewed | None]:
        """Let these claims hold for `lease` from now."""
        with self._step as now:
            return claiming.renew(self._table, claims, lease, now)

    async def note(self, notes: Sequence[Note]) -> list[bool]:
        """Write progress and log lines of running jobs."""
        with self._step as now:
            return [claiming.note(self._table, note, now) for note in notes]

    async def cancel(self, ids: Sequence[JobId], retention: Retention) -> list[CancelOutcome]:
        """End waiting jobs, and flag running ones."""
        with self._new_step as now:
            return [steering.cancel(self._table, job_id, retention, now) for job_id in ids]

    async def retry(self, ids: Sequence[JobId]) -> list[Changed]:
        """Give dead and cancelled jobs a full new budget."""
        with self._new_step as now:
            return [steering.retry(self._table, job_id, now) for job_id in ids]

    async def delete(self, ids: Sequence[JobId]) -> list[Changed]:
        """Delete finished jobs."""
        with self._step:
            return [steering.delete(self._table, job_id) for job_id in ids]

    async def reschedule(self, ids: Sequence[JobId], run_at: datetime | None) -> list[Changed]:
        """Let waiting jobs run at `run_at`, or now."""
        with self._new_step as now:
            return [steering.reschedule(self._table, job_id, run_at, now) for job_id in ids]

    async def set_paused(self, queue: str, *, paused: bool) -> None:
        """Stop or start giving claims from `queue`."""
        with self._new_step:
            known = self._table.queue(queue)
            known.paused = paused
            self._table.news.add(PAUSES if paused else known.topic)

    async def rescue(self, request: RescueRequest, retention: Retention) -> list[Rescued]:
        """Take back claims: to pending now while attempts are left, else to dead."""
        with self._step as now:
            return services.rescue(self._table, request, retention, now)

    async def promote(self, *, limit: int) -> int:
        """Make up to `limit` scheduled jobs that have come due pending."""
        with self._step as now:
            return services.promote(self._table, limit, now)

    async def prune(self, retention: Retention, *, limit: int) -> int:
        """Delete up to `limit` finished records past their retention, and housekeeping records."""
        with self._step as now:
            self._house.prune(self._table, now)
            return services.prune(self._table, retention, limit, now)

    async def write_schedule(self, schedule: Schedule, *, expected: int | None) -> int | None:
        """Write a schedule if its revision is still `expected`."""
        with self._new_step:
            return self._schedules.write(schedule, expected)

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule."""
        with self._new_step:
            return self._schedules.remove(schedule_id)

    async def due_schedules(self, declared: Collection[str], *, limit: int) -> DueSchedules:
        """Return up to `limit` schedules that are due and not paused."""
        with self._step as now:
            return self._schedules.due(declared, limit, now)

    async def fire(self, firing: Firing) -> Fired:
        """Enqueue the jobs of a schedule and move its next run on."""
        with self._new_step as now:
            return self._schedules.fire(firing, now)

    async def kv_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the caller's own values."""
        with self._step:
            return [self._table.keyspace.get(key) for key in keys]

    async def kv_write(self, write: KvWrite) -> bool:
        """Write one of the caller's own values if its condition holds."""
        with self._new_step:
            return self._table.keyspace.write(write)

    async def kv_scan(self, prefix: bytes, *, after: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` pairs whose key begins with `prefix`."""
        with self._step:
            return self._table.keyspace.scan(prefix, after, limit)

    async def lock(self, name: str, holder: str, ttl: timedelta) -> bool:
        """Take or renew the lock `name`."""
        with self._step as now:
            return self._house.lock(name, holder, ttl, now)

    async def unlock(self, name: str, holder: str) -> bool:
        """Let go of a lock."""
        with self._step as now:
            self._table.news.add(lock_topic(name))
            return self._house.unlock(name, holder, now)

    async def beat(self, server: ServerRecord) -> None:
        """Write that a server is live."""
        with self._step as now:
            self._house.beat(server, now)

    async def write_timings(self, timings: Sequence[TimingCount]) -> None:
        """Add counts to those that are kept."""
        with self._step:
            self._house.add_timings(timings)

    async def ended_servers(self) -> list[str]:
        """Return none: every server of this store is in this process, which lives."""
        return []

    async def leave(self, server_id: str) -> None:
        """Take a server out."""
        with self._step:
            self._house.servers.pop(server_id, None)

    async def write_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Keep what people did."""
        with self._step:
            self._house.audit.extend(entries)

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        """Return the jobs with these ids, with history and log."""
        with self._step:
            return [inspecting.get(self._table, job_id) for job_id in ids]

    async def glance(self, ids: Collection[JobId]) -> dict[JobId, Glance]:
        """Return where each of these jobs stands."""
        with self._step:
            return inspecting.glance(self._table, ids)

    async def jobs(self, chosen: JobFilter, *, after: int | None, limit: int) -> list[Job]:
        """Return up to `limit` jobs in the order of their enqueue."""
        with self._step:
            return inspecting.jobs(self._table, chosen, after, limit)

    async def newest(self, chosen: JobFilter, *, before: int | None, limit: int, most: int) -> JobPage:
        """Return up to `limit` jobs, the newest first."""
        with self._step:
            return inspecting.newest(self._table, chosen, before, limit=limit, most=most)

    async def place(self, job_id: JobId) -> Place | None:
        """Return what stands between a job and its claim."""
        with self._step as now:
            return inspecting.place(self._table, job_id, now)

    async def stats(self, queue: str | None = None) -> list[QueueStats]:
        """Count by state, exactly, for every queue that is known or for one."""
        with self._step:
            return inspecting.stats(self._table, queue)

    async def paused(self, queues: Sequence[str]) -> list[str]:
        """Return those of `queues` that are paused."""
        with self._step:
            return inspecting.paused(self._table, queues)

    async def kinds(self, queue: str, known: Collection[str] = ()) -> list[str]:
        """Return the kinds of the pending jobs of `queue` that are not among `known`."""
        with self._step:
            return inspecting.kinds(self._table, queue, known)

    async def waiting(self) -> list[KindStats]:
        """Count the pending jobs by queue and kind."""
        with self._step:
            return inspecting.waiting(self._table)

    async def minutes(self, *, since: datetime, until: datetime) -> list[MinuteCounts]:
        """Return what happened in each minute."""
        with self._step:
            return inspecting.minutes(self._table, since, until)

    async def timings(self, *, since: datetime, until: datetime) -> list[TimingCount]:
        """Return how long attempts took in each minute."""
        with self._step:
            return self._house.timings_between(since, until)

    async def servers(self) -> list[ServerRecord]:
        """Return every server that has not taken itself out."""
        with self._step:
            return sorted(self._house.servers.values(), key=lambda server: server.id)

    async def schedules(self, ids: Collection[str] | None = None) -> ScheduleList:
        """Return the schedules, or those with these ids, and the store's time."""
        with self._step as now:
            return ScheduleList(now, self._schedules.chosen(ids))

    async def audit(self, *, limit: int) -> list[AuditEntry]:
        """Return the newest entries first."""
        with self._step:
            return self._house.audit[::-1][:limit]

    async def stranded(self, *, dead_after: timedelta) -> int:
        """Count the leases that ran out and that nobody will rescue."""
        with self._step as now:
            return 0 if self._house.alive(dead_after, now) else inspecting.stranded(self._table, now)

    async def check(self) -> list[Finding]:
        """Look over the store's health, for `doctor`."""
        with self._step:
            return [*inspecting.check(self._table), *looking.of_move(self._house.moved)]

    async def moved(self) -> Moved | None:
        """Return where the jobs of this store go or went."""
        with self._step:
            return self._house.moved

    async def set_moved(self, moved: Moved | None) -> None:
        """Let this store take nothing new from now on, or with None let it take jobs again."""
        with self._step:
            self._house.moved = moved
            self._table.news.add(PAUSES)

    async def pack(self, queue: str, *, limit: int) -> Packed:
        """Return up to `limit` pending and scheduled jobs of `queue`."""
        with self._step as now:
            return parcels.pack(self._table, queue, limit, now)

    async def unpack(self, parcel: Parcel) -> bool:
        """Put the jobs of a parcel in line as they are, if it is the next one."""
        moving.check(parcel)
        with self._new_step as now:
            return parcels.unpack(self._table, self._house, parcel, now)

    async def unpacked(self, move: str, queue: str) -> Unpacked | None:
        """Return the last parcel of a move and a queue that was unpacked here."""
        with self._step:
            return self._house.parcels.get((move, queue))

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
        with self._step:
            if not moving.goes_by(self._house.moved, move):
                return False
            parcels.let_go(self._table, jobs, keys, kv)
            for schedule_id in schedules:
                self._schedules.remove(schedule_id)
            return True

    async def timed_keys(self, *, limit: int) -> list[HeldKey]:
        """Return up to `limit` keys that only time frees and whose time is not over."""
        with self._step as now:
            return list(islice(self._table.holds.timed(now), limit))

    async def take_keys(self, keys: Sequence[HeldKey]) -> None:
        """Let these keys be held here until their time is over, those that are free."""
        with self._new_step as now:
            for key in keys:
                self._table.holds.take_over(key, now)
