"""What changes something where it is served."""

from collections.abc import Awaitable, Sequence
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Final, TypeVar

from windlass.api import operations
from windlass.api.calls import MOST_JOBS
from windlass.api.claim_calls import NoteAsked, RenewAsked, SettleAsked
from windlass.api.claims import Held, claim_asked, claims_of, note_asked, settlement_asked
from windlass.api.claims import Settled as SettledTold
from windlass.api.job_calls import BatchesAsked, CancelAsked, ChangeAsked, ChangeTold, EnqueueAsked, RescheduleAsked
from windlass.api.jobs import Enqueued as EnqueuedTold
from windlass.api.jobs import asked
from windlass.api.kv_calls import KvWriteAsked, LockAsked, UnlockAsked
from windlass.api.looks import Audit, retained, server_told
from windlass.api.operations import Operation
from windlass.api.problems import error_of
from windlass.api.queue_calls import QueueAsked
from windlass.api.schedule_calls import ScheduleAsked
from windlass.api.schedules import ScheduleWritten, firing_asked, schedule_told
from windlass.api.server_calls import BeatAsked, LeaveAsked
from windlass.api.shape import blob
from windlass.api.timings import TimingsWritten, timings_told
from windlass.api.upkeep_calls import AuditWritten, PromoteAsked, PruneAsked, RescueAsked
from windlass.core.errors import OutcomeUnknown
from windlass.core.ids import JobId
from windlass.core.job import Claim, Enqueued, Note, PreparedJob, Token
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.requests import (
    CancelOutcome,
    Changed,
    ClaimRequest,
    KvAny,
    KvWrite,
    Renewed,
    Rescued,
    RescueRequest,
    Settled,
    Settlement,
    SettleResult,
)
from windlass.core.retention import Retention
from windlass.core.schedule import Fired, Firing, Schedule
from windlass.core.stats import TimingCount
from windlass.kit.gather import Gather
from windlass.kit.weight import weight_of_jobs, weight_of_settlements
from windlass.stores.http.calls import Calls, pages

R = TypeVar("R")

MOST_TOGETHER: Final = 1_000
"""What goes out together may weigh, unless one caller brings more: a job or a settlement, and each of these bytes."""
BYTES: Final = 4096
WIDTH: Final = 2
"""Gathered calls under way at once: one is served while the next one is made."""


class Moves:
    """The moves of one store, in one process."""

    def __init__(self, calls: Calls, *, patience: float) -> None:
        """Ask through `calls`; what has gathered for `patience` seconds is not sent any more."""
        self._calls = calls
        self._enqueues: Gather[Sequence[PreparedJob], list[Enqueued]] = Gather(
            self._enqueue_batches, most=MOST_TOGETHER, width=WIDTH, weight=_weight_of_jobs, patience=patience
        )
        self._settlements: Gather[Sequence[Settlement], list[SettleResult]] = Gather(
            self._settle_batches, most=MOST_TOGETHER, width=WIDTH, weight=_weight_of_settlements, patience=patience
        )

    async def close(self) -> None:
        """Finish what was accepted."""
        await self._enqueues.close()
        await self._settlements.close()

    def enqueue(self, jobs: Sequence[PreparedJob], request_id: str | None) -> Awaitable[list[Enqueued]]:
        """Put jobs in line, all or none; what nobody has named goes out together with others."""
        if request_id is None and jobs:
            return self._enqueues.submit(jobs)
        return self._enqueue(jobs, request_id)

    async def _enqueue(self, jobs: Sequence[PreparedJob], request_id: str | None) -> list[Enqueued]:
        if not jobs:
            return []
        wanted = EnqueueAsked(jobs=[asked(job) for job in jobs])
        told = await self._calls.change(operations.ENQUEUE, wanted, request_id=request_id, doubt=jobs[0].id)
        return _enqueued(told.jobs)

    async def _enqueue_batches(self, batches: list[Sequence[PreparedJob]]) -> list[list[Enqueued] | BaseException]:
        if len(batches) == 1:
            return [await self._enqueue(batches[0], None)]
        wanted = BatchesAsked(batches=[[asked(job) for job in batch] for batch in batches])
        try:
            told = await self._calls.change(operations.ENQUEUE_BATCHES, wanted, doubt=batches[0][0].id)
        except OutcomeUnknown as unknown:
            # each caller is told of a job of its own, to ask for it again
            return [_doubt_of(batch[0].id, unknown) for batch in batches]
        return [_enqueued(each.jobs) if each.problem is None else error_of(each.problem) for each in told.batches]

    async def claim(self, request: ClaimRequest, request_id: str | None) -> list[Claim]:
        """Give up to `limit` ready jobs."""
        if request.limit < 1 or not request.queues:
            return []
        wanted = claim_asked(request._replace(limit=min(request.limit, MOST_JOBS)))
        return claims_of(await self._calls.change(operations.CLAIM, wanted, request_id=request_id))

    def settle(self, settlements: Sequence[Settlement], request_id: str | None) -> Awaitable[list[SettleResult]]:
        """Write how claims ended, each as one step of its own."""
        if request_id is None and settlements:
            return self._settlements.submit(settlements)
        return self._settle(settlements, request_id)

    async def _settle(self, settlements: Sequence[Settlement], request_id: str | None) -> list[SettleResult]:
        results: list[SettleResult] = []
        for number, page in enumerate(pages(settlements, MOST_JOBS)):
            wanted = SettleAsked(settlements=[settlement_asked(one) for one in page])
            name = f"{request_id}/{number}" if request_id and number else request_id
            told = await self._calls.change(operations.SETTLE, wanted, request_id=name, doubt=page[0].job_id)
            results += [_settled(one) for one in told.settled]
        return results

    async def _settle_batches(self, batches: list[Sequence[Settlement]]) -> list[list[SettleResult] | BaseException]:
        try:
            done = iter(await self._settle(list(chain.from_iterable(batches)), None))
        except OutcomeUnknown as unknown:
            return [_doubt_of(batch[0].job_id, unknown) for batch in batches]
        return [list(islice(done, len(batch))) for batch in batches]

    async def renew(self, claims: Sequence[tuple[JobId, Token]], lease: timedelta) -> list[Renewed | None]:
        """Let claims hold for `lease` from now."""
        renewed: list[Renewed | None] = []
        for page in pages(claims, MOST_JOBS):
            held = [Held(id=job_id, token=token) for job_id, token in page]
            told = await self._calls.change(operations.RENEW, RenewAsked(claims=held, lease=lease.total_seconds()))
            renewed += [
                None if one is None else Renewed(one.lease_expires_at, one.cancel_requested) for one in told.renewed
            ]
        return renewed

    async def note(self, notes: Sequence[Note]) -> list[bool | None]:
        """Write progress and log lines of running jobs."""
        written: list[bool | None] = []
        for page in pages(notes, MOST_JOBS):
            wanted = NoteAsked(notes=[note_asked(note) for note in page])
            written += (await self._calls.change(operations.NOTE, wanted)).written
        return written

    async def cancel(self, ids: Sequence[JobId], retention: Retention) -> list[CancelOutcome]:
        """End waiting jobs, flag running ones."""
        outcomes: list[CancelOutcome] = []
        for page in pages(ids, MOST_JOBS):
            wanted = CancelAsked(ids=list(page), retention=retained(retention))
            outcomes += (await self._calls.change(operations.CANCEL, wanted)).outcomes
        return outcomes

    async def retry(self, ids: Sequence[JobId]) -> list[Changed]:
        """Give finished jobs a new life."""
        return await self._change(operations.RETRY, ids)

    async def delete(self, ids: Sequence[JobId]) -> list[Changed]:
        """Delete finished jobs."""
        return await self._change(operations.DELETE, ids)

    async def _change(self, operation: Operation[ChangeAsked, ChangeTold], ids: Sequence[JobId]) -> list[Changed]:
        outcomes: list[Changed] = []
        for page in pages(ids, MOST_JOBS):
            outcomes += (await self._calls.change(operation, ChangeAsked(ids=list(page)))).outcomes or []
        return outcomes

    async def reschedule(self, ids: Sequence[JobId], run_at: datetime | None) -> list[Changed]:
        """Give waiting jobs another time."""
        outcomes: list[Changed] = []
        for page in pages(ids, MOST_JOBS):
            wanted = RescheduleAsked(ids=list(page), run_at=run_at)
            outcomes += (await self._calls.change(operations.RESCHEDULE, wanted)).outcomes or []
        return outcomes

    async def set_paused(self, queue: str, *, paused: bool) -> None:
        """Stop or start giving claims from a queue."""
        await self._calls.change(operations.PAUSE if paused else operations.RESUME, QueueAsked(queue=queue))

    async def rescue(self, request: RescueRequest, retention: Retention) -> list[Rescued]:
        """Take back claims."""
        rescued: list[Rescued] = []
        for limit in _limits(request.limit):
            wanted = RescueAsked(
                queues=None if request.queues is None else list(request.queues),
                workers=None if request.workers is None else list(request.workers),
                force=request.force,
                to=request.to,
                limit=limit,
                retention=retained(retention),
            )
            told = await self._calls.change(operations.RESCUE, wanted)
            rescued += [Rescued(JobId(one.id), one.state) for one in told.rescued]
            if len(told.rescued) < limit:
                break
        return rescued

    async def promote(self, *, limit: int) -> int:
        """Make due jobs pending."""
        promoted = 0
        for most in _limits(limit):
            done = (await self._calls.change(operations.PROMOTE, PromoteAsked(limit=most))).count
            promoted += done
            if done < most:
                break
        return promoted

    async def prune(self, retention: Retention, *, limit: int) -> int:
        """Delete records past their retention."""
        pruned = 0
        for most in _limits(limit):
            wanted = PruneAsked(limit=most, retention=retained(retention))
            done = (await self._calls.change(operations.PRUNE, wanted)).count
            pruned += done
            if done < most:
                break
        return pruned

    async def write_schedule(self, schedule: Schedule, *, expected: int | None) -> int | None:
        """Write a schedule if its revision is still the expected one."""
        wanted = ScheduleWritten(schedule=schedule_told(schedule, as_bytes=True), expected=expected)
        return (await self._calls.change(operations.WRITE_SCHEDULE, wanted)).revision

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule."""
        return (await self._calls.change(operations.REMOVE_SCHEDULE, ScheduleAsked(id=schedule_id))).removed

    async def fire(self, firing: Firing) -> Fired:
        """Enqueue the jobs of a schedule and move its next run on."""
        told = await self._calls.change(operations.FIRE, firing_asked(firing))
        return Fired(told.outcome, None if told.job_id is None else JobId(told.job_id))

    async def kv_write(self, write: KvWrite) -> bool:
        """Write one of the caller's own values."""
        wanted = KvWriteAsked(key=blob(write.key), value=None if write.value is None else blob(write.value))
        if not isinstance(write.expected, KvAny):
            wanted.expected = None if write.expected is None else blob(write.expected)
        return (await self._calls.change(operations.KV_WRITE, wanted)).written

    async def lock(self, name: str, holder: str, ttl: timedelta) -> bool:
        """Take or renew a lock."""
        wanted = LockAsked(name=name, holder=holder, ttl=ttl.total_seconds())
        return (await self._calls.change(operations.LOCK, wanted)).held

    async def unlock(self, name: str, holder: str) -> bool:
        """Let go of a lock."""
        return (await self._calls.change(operations.UNLOCK, UnlockAsked(name=name, holder=holder))).held

    async def beat(self, server: ServerRecord) -> None:
        """Write that a server is live."""
        await self._calls.change(operations.BEAT, BeatAsked(server=server_told(server)))

    async def write_timings(self, timings: Sequence[TimingCount]) -> None:
        """Add to the counts of how long attempts took."""
        for page in pages(timings, MOST_JOBS):
            await self._calls.change(operations.WRITE_TIMINGS, TimingsWritten(timings=timings_told(page)))

    async def leave(self, server_id: str) -> None:
        """Take a server out."""
        await self._calls.change(operations.LEAVE, LeaveAsked(id=server_id))

    async def write_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Keep what people did."""
        for page in pages(entries, MOST_JOBS):
            told = [
                Audit(at=one.at, actor=one.actor, action=one.action, target=one.target, detail=dict(one.detail))
                for one in page
            ]
            await self._calls.change(operations.WRITE_AUDIT, AuditWritten(entries=told))


def _enqueued(told: Sequence[EnqueuedTold]) -> list[Enqueued]:
    return [Enqueued(JobId(one.id), one.created) for one in told]


def _settled(told: SettledTold) -> SettleResult:
    return Settled(told.outcome) if told.problem is None else error_of(told.problem)


def _limits(limit: int) -> list[int]:
    """Return `limit` in parts that one call takes."""
    whole, rest = divmod(max(limit, 0), MOST_JOBS)
    return [MOST_JOBS] * whole + [rest] * bool(rest)


def _weight_of_jobs(jobs: Sequence[PreparedJob]) -> int:
    return weight_of_jobs(jobs, bytes_each=BYTES)


def _weight_of_settlements(settlements: Sequence[Settlement]) -> int:
    return weight_of_settlements(settlements, bytes_each=BYTES)


def _doubt_of(job_id: JobId, unknown: OutcomeUnknown) -> OutcomeUnknown:
    """Return the same doubt about another job that shared the call."""
    doubt = OutcomeUnknown(job_id)
    doubt.__cause__ = unknown.__cause__
    return doubt
