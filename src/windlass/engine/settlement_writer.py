"""Settlement writer: attempts that end while one batch of settlements is written go into the next batch."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, Final, NamedTuple

from windlass.client.client import Client
from windlass.client.failure import failure_of
from windlass.core.errors import Fenced, OutcomeUnknown, StoreUnavailable, WindlassError
from windlass.core.job import Failure, Job
from windlass.core.requests import Settled, Settlement, SettleResult
from windlass.core.retention import Retention
from windlass.core.settings import DEFAULT, Unset
from windlass.core.states import State
from windlass.core.verdict import (
    GaveUp,
    Outcome,
    Raised,
    Returned,
    ToCancelled,
    ToDead,
    ToReleased,
    ToRetry,
    ToSnoozed,
    ToSucceeded,
    Verdict,
    verdict,
)
from windlass.engine.attempt import Attempt
from windlass.engine.context import of_no_job
from windlass.engine.held_claims import HeldClaims
from windlass.engine.job_fields import fields_of
from windlass.engine.job_log import JobLog
from windlass.engine.job_log import logger as job_logger
from windlass.engine.notes import Notes
from windlass.engine.service import backoff, trace_of
from windlass.engine.tally import LOST, OUTCOMES, Tally

logger = logging.getLogger("windlass")

PLAIN: Final = Returned()
"""A success without a result: nearly every end there is."""
_SUCCEEDED: Final = ToSucceeded()
_MOST: Final = 1_000
"""Settlements in one call; more would hold up the callers that share its commit."""
_LONGEST_BACKOFF: Final = 4
"""Tries after which one that was put off is tried no more seldom, every few seconds: its job is free at any moment."""


class StateChange(NamedTuple):
    """One committed transition of a job, for the hooks."""

    job: Job
    old: State
    new: State


class PendingSettlement(NamedTuple):
    """An attempt and its settlement, which is not written yet."""

    attempt: Attempt
    settlement: Settlement
    ended_at: float | None = None
    """When a success ended that brings follow-up jobs or values, by the monotonic clock: these may be refused, so it is
    logged when it is written."""


class SettlementWriter:
    """Writes how attempts ended, and keeps what the store would not take until it does."""

    def __init__(
        self,
        client: Client,
        held: HeldClaims,
        notes: Notes,
        *,
        retention: Retention | None = None,
        counts: Tally | None = None,
        on_committed: Callable[[list[StateChange]], None] | None = None,
        on_fenced: Callable[[Fenced], None] = lambda _: None,
    ) -> None:
        """Settle in the store of `client` by its retry policies; settled claims leave `held`.

        `retention` says which records stay, by default as the client does. `on_committed` is called with the state
        changes that were written, and `on_fenced` when the store has another owner, who decides about all held claims.
        """
        self._store = client.store
        self._settings = client.settings
        self._retention = retention or client.settings.retention
        self._clock = client.clock
        self._rng = client.rng
        self.held: Final = held
        self._notes = notes
        self._counts = counts or Tally()
        self._on_committed = on_committed
        self._on_fenced = on_fenced
        self._log = JobLog(self._clock)
        self._talks = job_logger.isEnabledFor(logging.INFO)
        self._keeps: dict[str, bool] = {}
        self._waiting: list[PendingSettlement] = []
        self._on_the_way = 0
        self._writing: asyncio.Task[None] | None = None
        self._late: list[PendingSettlement] = []
        self._writing_late: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._answered = asyncio.Event()
        self._answered.set()
        self._fenced = False
        # a context without a job: one batch has settlements of many jobs
        self._context = of_no_job()
        self.failing_since: float | None = None
        self.on_written: Callable[[], None] = lambda: None
        """Called after each batch, when its claims are held no more."""

    def __len__(self) -> int:
        """How many are not written yet."""
        return len(self._waiting) + self._on_the_way + len(self._late)

    def add(self, attempt: Attempt, outcome: Outcome) -> None:
        """Write soon that `attempt` ended by `outcome`."""
        attempt.settled = True
        if self._fenced:
            return
        settlement = self._settlement(attempt, outcome)
        brings = attempt.next_jobs is not None and type(settlement.verdict) is ToSucceeded
        self._waiting.append(PendingSettlement(attempt, settlement, self._clock.monotonic() if brings else None))
        if self._writing is None:
            self._writing = self._begin(self._write())

    async def drain(self) -> None:
        """Return when all that was added is written."""
        while self._writing is not None or self._writing_late is not None:
            self._settled.clear()
            await self._settled.wait()

    async def answered(self) -> None:
        """Return when the store has answered to what is on its way there."""
        await self._answered.wait()

    def last_words(self, outcome: Callable[[Attempt], Outcome]) -> list[Settlement]:
        """Return what is left to write when the event loop does not come back: what has not ended does by `outcome`."""
        ended = [pending.settlement for pending in (*self._waiting, *self._late)]
        running = [attempt for attempt in self.held.attempts() if not attempt.settled]
        return ended + [self._settlement(attempt, outcome(attempt)) for attempt in running]

    def settled_by_handler(self, attempt: Attempt) -> None:
        """Count and report a success that the handler's own transaction has written."""
        self._counts.of(attempt.job).ends["succeeded"] += 1
        if self._on_committed is not None:
            job = attempt.job._replace(state=State.SUCCEEDED, lease_expires_at=None)
            self._on_committed([StateChange(job, State.RUNNING, State.SUCCEEDED)])

    def abandon(self) -> int:
        """Write no more; return how many are left to their leases."""
        for writing in (self._writing, self._writing_late):
            if writing is not None:
                writing.cancel()
        left, self._waiting, self._late = len(self), [], []
        return left

    def fence(self) -> None:
        """Write nothing any more, neither what is left nor what comes: the store has another owner."""
        self._fenced = True
        self.abandon()
        # a task that is cancelled before its first step never reaches its end, and a drain would wait for it
        self._writing = self._writing_late = None
        self._settled.set()

    def close(self) -> None:
        """Tell what was not told yet."""
        self._log.close()

    def _settlement(self, attempt: Attempt, outcome: Outcome) -> Settlement:
        job = attempt.job
        if outcome is PLAIN and attempt.next_jobs is None:
            # nearly every settlement there is: nothing to decide
            queue = job.queue
            keep = self._keeps.get(queue)
            if keep is None:
                keep = self._keeps[queue] = self._retention.keeps(queue, State.SUCCEEDED)
            if self._talks:
                self._log.end(attempt, _SUCCEEDED)
            return Settlement(job.id, attempt.token, _SUCCEEDED, keep)
        decided = self._decide(attempt, outcome)
        new = state_after(decided)
        keep = not new.finished or self._retention.keeps(job.queue, new)
        if not isinstance(decided, ToSucceeded) or attempt.next_jobs is None:
            self._log.end(attempt, decided, outcome.error if isinstance(outcome, (Raised, GaveUp)) else None)
            return Settlement(job.id, attempt.token, decided, keep)
        return Settlement(job.id, attempt.token, decided, keep, attempt.next_jobs, attempt.kv_writes)

    def _decide(self, attempt: Attempt, outcome: Outcome) -> Verdict:
        job = attempt.job
        own = attempt.handler.retry
        rule = self._settings.of(job.queue).retry if isinstance(own, Unset) else own
        draw = self._rng.random()
        try:
            return verdict(job, outcome, retry=rule, draw=draw)
        except BaseException:
            text = "the retry policy of job %s (%s) failed; the default holds"
            logger.exception(text, job.id, attempt.handler.name, extra=fields_of(job))
            return verdict(job, outcome, retry=DEFAULT.retry, draw=draw)

    async def _write(self) -> None:
        failures = 0
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
                self._on_the_way = len(batch)
                # a note is refused once its claim is settled
                if self._notes.kept or self._notes.written < self._notes.noted:
                    await self._write_notes_of(batch)
                failures = 0 if await self._write_these(batch, failures) else failures + 1
                self._on_the_way = 0
                if self._fenced:
                    return
                if failures:
                    self._waiting = batch + self._waiting
                    await self._clock.sleep(backoff(failures, self._rng))
        finally:
            self._on_the_way = 0
            self._writing = None
            self._settled.set()

    async def _write_late(self) -> None:
        """Write by themselves, later, those that the store could not write when it wrote others."""
        failures = 1
        try:
            while self._late:
                await self._clock.sleep(backoff(min(failures, _LONGEST_BACKOFF), self._rng))
                batch = self._late[:_MOST]
                # a note is refused once its claim is settled
                if self._notes.kept or self._notes.written < self._notes.noted:
                    await self._write_notes_of(batch)
                results = await self._answers(batch, failures)
                if self._fenced:
                    return
                failures += 1
                if results is not None:
                    del self._late[: len(batch)]
                    self._take_answers(batch, results)
        finally:
            self._writing_late = None
            self._settled.set()

    async def _write_notes_of(self, batch: list[PendingSettlement]) -> None:
        self._notes.take_up([pending.attempt.token for pending in batch])
        await self._notes.flush()

    async def _write_these(self, batch: list[PendingSettlement], failures: int) -> bool:
        self._answered.clear()
        try:
            results = await self._answers(batch, failures)
        finally:
            self._answered.set()
        if results is None:
            return False
        self._on_the_way = 0
        self._take_answers(batch, results)
        return True

    async def _answers(self, batch: list[PendingSettlement], failures: int) -> list[SettleResult] | None:
        """Return what became of each; None when the store took none of them."""
        try:
            results = await self._store.settle([pending.settlement for pending in batch])
        except Fenced as error:
            self.fence()
            self._on_fenced(error)
            return None
        except Exception as error:
            self.failing_since = self.failing_since or self._clock.monotonic()
            self._counts.fail("settle")
            text = "%d settlements could not be written (%d times in a row): %s"
            logger.error(text, len(batch), failures + 1, error, exc_info=trace_of(error))  # noqa: TRY400
            return None
        self.failing_since = None
        return results

    def _take_answers(self, batch: list[PendingSettlement], results: list[SettleResult]) -> None:
        done: list[PendingSettlement] = []
        others: list[tuple[PendingSettlement, SettleResult]] = []
        for pending, result in zip(batch, results, strict=True):
            if result is Settled.DONE:
                done.append(pending)
            elif _may_be_done_later(result):
                self._put_off(pending, result)
            else:
                others.append((pending, result))
        self._count(done)
        self.held.remove([pending.attempt for pending in done])
        if others:
            self.held.remove([pending.attempt for pending, _ in others])
            for pending, result in others:
                self._refused(pending, result)
        if self._on_committed is not None:
            now = self._clock.now()
            self._on_committed([state_change_of(pending, now) for pending in done])
        self.on_written()

    def _count(self, written: list[PendingSettlement]) -> None:
        for attempt, settlement, ended_at in written:
            counts = attempt.counts or self._counts.of(attempt.job)
            counts.ends[OUTCOMES[type(settlement.verdict)]] += 1
            if ended_at is not None:
                self._log.end(attempt, settlement.verdict, ended_at=ended_at)

    def _put_off(self, pending: PendingSettlement, result: SettleResult) -> None:
        """Write one settlement separately, later: a lock of its own job, for example, keeps it from being written."""
        self._counts.fail("settle")
        job = pending.attempt.job
        text = "the end of job %s (%s) is not written yet, and is tried again: %s"
        logger.warning(text, job.id, job.kind, result, extra=fields_of(job))
        self._late.append(pending)
        if self._writing_late is None:
            self._writing_late = self._begin(self._write_late())

    def _begin(self, writing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(writing, context=self._context.copy())

    def _refused(self, pending: PendingSettlement, result: SettleResult) -> None:
        attempt = pending.attempt
        if result is Settled.REPEATED:
            self._count([pending])
        elif isinstance(result, StoreUnavailable) and not pending.settlement.then and not pending.settlement.kv:
            # it would never be written, and is held no longer: whoever is delivered the job again decides
            self._counts.fail("settle")
            logger.error(
                "the end of job %s (%s) by %s is refused, and is given up: its lease runs out, and it is delivered "
                "again. Find out what refuses it, perhaps a trigger or a constraint that was added to the store: %s",
                attempt.job.id,
                attempt.handler.name,
                _name_of(pending),
                result,
                extra=fields_of(attempt.job, outcome="refused"),
            )
        elif isinstance(result, WindlassError):
            # what was to commit with the success met a unique key: the success is not written either
            attempt.next_jobs = attempt.kv_writes = None
            self.held.add((attempt,))
            self.add(attempt, Raised(failure_of(result), result))
        elif result is Settled.LOST:
            attempt.tell("claim_lost")
            self._counts.of(attempt.job).ends[LOST] += 1
            logger.warning(
                "job %s (%s) was taken back while it ran: its end by %s is not written, whoever has it now decides",
                attempt.job.id,
                attempt.handler.name,
                _name_of(pending),
                extra=fields_of(attempt.job, outcome="claim_lost"),
            )


def _may_be_done_later(result: SettleResult) -> bool:
    return isinstance(result, OutcomeUnknown) or (isinstance(result, StoreUnavailable) and result.retryable)


def _name_of(pending: PendingSettlement) -> str:
    return type(pending.settlement.verdict).__name__.removeprefix("To").lower()


def state_after(decided: Verdict) -> State:
    """Return where a job stands after a verdict."""
    match decided:
        case ToSucceeded():
            return State.SUCCEEDED
        case ToDead():
            return State.DEAD
        case ToCancelled():
            return State.CANCELLED
        case ToReleased():
            return State.PENDING
        case ToRetry(delay, _) | ToSnoozed(delay):
            return State.SCHEDULED if delay else State.PENDING


def state_change_of(pending: PendingSettlement, now: datetime) -> StateChange:
    """Return the job as it is after its settlement, with where it came from and went."""
    decided = pending.settlement.verdict
    new = state_after(decided)
    job = pending.attempt.job
    failure: Failure | None = decided.failure if isinstance(decided, (ToDead, ToRetry)) else None
    error = job.last_error if failure is None else failure.summary
    result = decided.result if isinstance(decided, ToSucceeded) else None
    finished_at = now if new.finished else None
    moved = job._replace(state=new, last_error=error, result=result, finished_at=finished_at, lease_expires_at=None)
    return StateChange(moved, State.RUNNING, new)
