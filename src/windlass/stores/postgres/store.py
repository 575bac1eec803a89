"""The Postgres store: moves are statements that decide in the database, by the database's clock."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from windlass.core.errors import ClientClosed, StoreUnavailable
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Claim, Enqueued, Job, Note, PreparedJob, Token
from windlass.core.looks import AuditEntry, Finding, Glance, JobPage, Place, ServerRecord
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
from windlass.core.topics import Topic
from windlass.kit.request_names import of_kind
from windlass.stores.postgres import looks, schedule_looks
from windlass.stores.postgres.check import check
from windlass.stores.postgres.moves import hold_claims, keep, operate, promote, rescue, schedules
from windlass.stores.postgres.moving import PostgresMoving
from windlass.stores.postgres.newest_looks import newest
from windlass.stores.postgres.settings import limits
from windlass.stores.postgres.work import Changes, Work

logger = logging.getLogger("windlass.postgres")

NOTED_AGAIN_AFTER: Final = 0.02
RENEW_LOCKED_WITHIN: Final = 2.0


class PostgresStore(PostgresMoving):
    """Jobs in a database; see `core.store.Store` for what each method promises.

    Belongs to the event loop that opened it.
    """

    @property
    def features(self) -> Features:
        """What this store can do; behind a pooler nobody can be notified."""
        pooled = self._room is not None and self._room.pooled
        return Features(
            transactional=True,
            wakes_waiters=self._options.notify and not pooled,
            between_processes=True,
            survives_process=True,
            replies_can_be_lost=True,
            locked_for=timedelta(milliseconds=int(limits(self._options.timeout).lock)),
        )

    def sibling(self) -> "PostgresStore":
        """Return another store on the same database."""
        return PostgresStore(self._options, clock=self._clock, rng=self._rng)

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Ring on news from this process and from others."""
        stop = self._hub.listen(topics, ring)
        if self._room is not None:
            self._room.listener.start()
        return stop

    def join(self, borrowed: Borrowed) -> Joined:
        """Work inside a caller's own transaction."""
        if self._room is None:
            raise ClientClosed
        return self._room.join(borrowed)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Any]:
        """Give a connection in a transaction."""
        room = await self._here()
        async with room.lender.transaction() as connection:
            yield connection

    async def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> list[Enqueued]:
        """Put jobs in line, all or none."""
        room = self._there() or await self._reopen()
        return await room.enqueuer.enqueue(jobs, of_kind("enqueue", request_id))

    async def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> list[Claim]:
        """Give ready jobs to the caller."""
        room = self._there() or await self._reopen()
        return await room.claimer.claim(request, of_kind("claim", request_id))

    async def settle(self, settlements: Sequence[Settlement], *, request_id: str | None = None) -> list[SettleResult]:
        """Write how claims ended."""
        room = self._there() or await self._reopen()
        return await room.settler.settle(settlements, of_kind("settle", request_id))

    async def renew(self, claims: Sequence[tuple[JobId, Token]], lease: timedelta) -> list[Renewed | None]:
        """Let claims hold for longer."""
        room = await self._here()
        renewed = await room.runner.run(lambda changes: hold_claims.renew(changes, claims, lease), whole=False)
        if not any(isinstance(one, hold_claims.Untouched) for one in renewed):
            return renewed
        left = [claim for claim, one in zip(claims, renewed, strict=True) if isinstance(one, hold_claims.Untouched)]
        try:
            waited = dict(zip(left, await self._renew_locked(left, lease), strict=True))
        except StoreUnavailable as error:
            # they hold for as long as before, and nobody rescues a job that is locked
            logger.debug("%d leases were not renewed, since their jobs are locked: %s", len(left), error)
            return renewed
        return [waited.get(claim, one) for claim, one in zip(claims, renewed, strict=True)]

    async def _renew_locked(self, claims: Sequence[tuple[JobId, Token]], lease: timedelta) -> list[Renewed | None]:
        room = await self._here()
        return await room.runner.run(
            lambda changes: hold_claims.renew_locked(changes, claims, lease), timeout=RENEW_LOCKED_WITHIN
        )

    async def note(self, notes: Sequence[Note]) -> list[bool | None]:
        """Write progress and log lines; whoever has a job locked for a moment, as renewals do, is waited for."""
        written = await self._write_once(lambda changes: hold_claims.note(changes, notes))
        left = [note for note, done in zip(notes, written, strict=True) if done is None]
        if not left:
            return written
        await asyncio.sleep(NOTED_AGAIN_AFTER)
        again = iter(await self._write_once(lambda changes: hold_claims.note(changes, left)))
        return [next(again) if done is None else done for done in written]

    async def cancel(self, ids: Sequence[JobId], retention: Retention) -> list[CancelOutcome]:
        """End waiting jobs, flag running ones."""
        return await self._begin_once(lambda changes: operate.cancel(changes, ids, retention))

    async def retry(self, ids: Sequence[JobId]) -> list[Changed]:
        """Give finished jobs a new life."""
        return await self._begin_once(lambda changes: operate.retry(changes, ids))

    async def delete(self, ids: Sequence[JobId]) -> list[Changed]:
        """Delete finished jobs."""
        return await self._write_once(lambda changes: operate.delete(changes, ids))

    async def reschedule(self, ids: Sequence[JobId], run_at: datetime | None) -> list[Changed]:
        """Give waiting jobs another time."""
        return await self._begin_once(lambda changes: operate.reschedule(changes, ids, run_at))

    async def set_paused(self, queue: str, *, paused: bool) -> None:
        """Stop or start giving claims from a queue; returns when no claim that began before is under way."""
        await self._write(lambda changes: operate.set_paused(changes, queue, paused=paused))
        if paused:
            await self._write(lambda _: operate.barrier())

    async def rescue(self, request: RescueRequest, retention: Retention) -> list[Rescued]:
        """Take back claims; one that cannot be written does not stand in the way of the others."""
        try:
            return await self._write_once(lambda changes: rescue.rescue(changes, request, retention))
        except StoreUnavailable as error:
            if error.retryable:
                raise
            logger.warning("expired claims are rescued one by one, since together they cannot be: %s", error)
        return await self._rescue_each(request, retention)

    async def _rescue_each(self, request: RescueRequest, retention: Retention) -> list[Rescued]:
        rescued: list[Rescued] = []
        for seq in await self._look(lambda changes: rescue.expired_seqs(changes, request)):
            try:
                rescued += await self._write_once(partial(_rescue_one, seq, request, retention))
            except StoreUnavailable as error:
                if error.retryable:
                    raise
                logger.error("the claim on job number %d cannot be rescued: %s", seq, error)  # noqa: TRY400 - it says why
        return rescued

    async def promote(self, *, limit: int) -> int:
        """Make due jobs pending."""
        return await self._write(lambda changes: promote.promote(changes, limit))

    async def prune(self, retention: Retention, *, limit: int) -> int:
        """Delete records past their retention."""
        room = await self._here()
        return await room.pruner.prune(retention, limit)

    async def write_schedule(self, schedule: Schedule, *, expected: int | None) -> int | None:
        """Write a schedule if its revision is still the expected one."""
        return await self._begin_once(lambda changes: schedules.write(changes, schedule, expected))

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule."""
        return await self._begin_once(lambda changes: schedules.remove(changes, schedule_id))

    async def fire(self, firing: Firing) -> Fired:
        """Enqueue the jobs of a schedule and move its next run on."""
        return await self._begin_once(lambda changes: schedules.fire(changes, firing))

    async def kv_write(self, write: KvWrite) -> bool:
        """Write one of the caller's own values."""
        return await self._begin_once(lambda changes: keep.kv_write(changes, write))

    async def lock(self, name: str, holder: str, ttl: timedelta) -> bool:
        """Take or renew a lock."""
        return await self._write(lambda changes: keep.lock(changes, name, holder, ttl))

    async def unlock(self, name: str, holder: str) -> bool:
        """Let go of a lock."""
        return await self._write_once(lambda changes: keep.unlock(changes, name, holder))

    async def beat(self, server: ServerRecord) -> None:
        """Write that a server is live."""
        await self._write(lambda changes: keep.beat(changes, server))

    async def ended_servers(self) -> list[str]:
        """Return nothing: a process on another machine that is silent may still be alive."""
        return []

    async def leave(self, server_id: str) -> None:
        """Take a server out."""
        await self._write(lambda changes: keep.leave(changes, server_id))

    async def write_timings(self, timings: Sequence[TimingCount]) -> None:
        """Add counts to those that are kept."""
        await self._write_once(lambda changes: keep.write_timings(changes, timings))

    async def write_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Keep what people did."""
        await self._write_once(lambda changes: keep.write_audit(changes, entries))

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        """Return jobs with history and log."""
        return await self._look(lambda _: looks.get(ids), whole=True)

    async def glance(self, ids: Collection[JobId]) -> dict[JobId, Glance]:
        """Return where jobs stand."""
        return await self._look(lambda _: looks.glance(ids))

    async def jobs(self, chosen: JobFilter, *, after: int | None, limit: int) -> list[Job]:
        """Return a page of jobs."""
        return await self._look(lambda _: looks.jobs(chosen, after, limit))

    async def newest(self, chosen: JobFilter, *, before: int | None, limit: int, most: int) -> JobPage:
        """Return a page of the newest jobs."""
        return await self._look(lambda _: newest(chosen, before, limit, most), whole=True)

    async def place(self, job_id: JobId) -> Place | None:
        """Return what stands between a job and its claim."""
        return await self._look(lambda changes: looks.place(changes, job_id))

    async def stats(self, queue: str | None = None) -> list[QueueStats]:
        """Count by state."""
        return await self._look(lambda _: looks.stats(queue))

    async def due_in(self, queues: Sequence[str]) -> timedelta | None:
        """Return how long it is until the next scheduled job comes due."""
        return await self._look(lambda changes: looks.due_in(changes, queues))

    async def paused(self, queues: Sequence[str]) -> list[str]:
        """Return which queues are paused."""
        return await self._look(lambda _: looks.paused(queues))

    async def kinds(self, queue: str, known: Collection[str] = ()) -> list[str]:
        """Return the kinds of pending jobs that are not known."""
        return await self._look(lambda _: looks.kinds(queue, known))

    async def waiting(self) -> list[KindStats]:
        """Count the pending jobs by queue and kind."""
        return await self._look(lambda _: looks.waiting())

    async def minutes(self, *, since: datetime, until: datetime) -> list[MinuteCounts]:
        """Return the counts of each minute."""
        return await self._look(lambda _: looks.minutes(since, until))

    async def timings(self, *, since: datetime, until: datetime) -> list[TimingCount]:
        """Return how long attempts took in each minute."""
        return await self._look(lambda _: looks.timings(since, until))

    async def servers(self) -> list[ServerRecord]:
        """Return every server."""
        return await self._look(lambda _: looks.servers())

    async def schedules(self, ids: Collection[str] | None = None) -> ScheduleList:
        """Return schedules, and the store's time."""
        return await self._look(lambda changes: schedule_looks.schedules(changes, ids), whole=True)

    async def due_schedules(self, declared: Collection[str], *, limit: int) -> DueSchedules:
        """Return what is due."""
        return await self._look(lambda changes: schedule_looks.due_schedules(changes, declared, limit), whole=True)

    async def audit(self, *, limit: int) -> list[AuditEntry]:
        """Return what people did."""
        return await self._look(lambda _: looks.audit(limit))

    async def stranded(self, *, dead_after: timedelta) -> int:
        """Count leases that nobody will rescue."""
        return await self._look(lambda changes: looks.stranded(changes, dead_after))

    async def kv_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the caller's own values."""
        return await self._look(lambda _: looks.kv_get(keys))

    async def kv_scan(self, prefix: bytes, *, after: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        """Return the caller's own values by prefix."""
        return await self._look(lambda _: looks.kv_scan(prefix, after, limit))

    async def check(self) -> list[Finding]:
        """Look over the database."""
        room = await self._here()
        return await self._look(
            lambda _: check(
                self._options, pooled=room.pooled, hears=None if self._hub.silent else room.listener.connected
            )
        )


def _rescue_one(seq: int, request: RescueRequest, retention: Retention, changes: Changes) -> Work[list[Rescued]]:
    return rescue.rescue_one(changes, seq, request, retention)
