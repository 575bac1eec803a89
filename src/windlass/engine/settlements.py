"""Settling: what ends while one settlement is on its way goes out with the next, and nothing waits for a timer."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, Final, NamedTuple

from windlass.client.failure import failure_of
from windlass.core.clock import Clock, Rng
from windlass.core.errors import Fenced, OutcomeUnknown, StoreUnavailable, WindlassError
from windlass.core.job import Failure, Job, Token
from windlass.core.requests import Settled, Settlement, SettleResult
from windlass.core.retention import Retention
from windlass.core.settings import DEFAULT, Settings, Unset
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.verdict import (
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
"""Settlements in one call; more would hold up whoever shares its commit."""
_LONGEST_BACKOFF: Final = 4
"""Tries after which one that was put off is tried no more seldom, every few seconds: its job is free at any moment."""


class Move(NamedTuple):
    """A move that was committed, for the hooks."""

    job: Job
    old: State
    new: State


class Ending(NamedTuple):
    """An attempt and how it is written."""

    attempt: Attempt
    settlement: Settlement


class Settlements:
    """Writes how attempts ended; holds on to what the store would not take, until it does."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        retention: Retention,
        *,
        notes: Notes,
        clock: Clock,
        rng: Rng,
        committed: Callable[[list[Move]], None] | None,
        tally: Tally | None = None,
    ) -> None:
        """Settle in `store` by the retry policies in `settings`; `retention` says which records stay.

        `committed` is called with what was written; None when nobody wants to know.
        """
        self._store = store
        self._settings = settings
        self._retention = retention
        self._notes = notes
        self._clock = clock
        self._rng = rng
        self._committed = committed
        self._tally = tally or Tally()
        self._log = JobLog(clock)
        self._talks = job_logger.isEnabledFor(logging.INFO)
        self._keeps: dict[str, bool] = {}
        self._waiting: list[Ending] = []
        self._on_the_way = 0
        self._writing: asyncio.Task[None] | None = None
        self._late: list[Ending] = []
        self._writing_late: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._answered = asyncio.Event()
        self._answered.set()
        self._fenced = False
        # of nobody's job: it writes the ends of many
        self._context = of_no_job()
        self.failing_since: float | None = None
        self.written: Callable[[], None] = lambda: None
        """Called when some were written, and are held no more."""
        self.fenced: Callable[[Fenced], None] = lambda _: None
        """Called when the store has another owner, who decides about all that is held here."""
        self.held: dict[Token, Attempt] = {}
        """Every claim of the server that is not settled yet, or whose code still runs."""

    def __len__(self) -> int:
        """How many are not written yet."""
        return len(self._waiting) + self._on_the_way + len(self._late)

    def add(self, attempt: Attempt, outcome: Outcome) -> None:
        """Write soon that `attempt` ended by `outcome`."""
        attempt.settled = True
        if self._fenced:
            return
        self._waiting.append(Ending(attempt, self._settlement(attempt, outcome)))
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
        ended = [ending.settlement for ending in (*self._waiting, *self._late)]
        running = [attempt for attempt in list(self.held.values()) if not attempt.settled]
        return ended + [self._settlement(attempt, outcome(attempt)) for attempt in running]

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
        self._log.end(attempt, decided)
        new = state_after(decided)
        keep = not new.finished or self._retention.keeps(job.queue, new)
        if not isinstance(decided, ToSucceeded) or attempt.next_jobs is None:
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
            logger.exception("the retry policy of job %s (%s) failed; the default holds", job.id, attempt.handler.name)
            return verdict(job, outcome, retry=DEFAULT.retry, draw=draw)

    async def _write(self) -> None:
        failures = 0
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
                self._on_the_way = len(batch)
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

    async def _write_notes_of(self, batch: list[Ending]) -> None:
        # a note is refused once its claim is settled
        if self._notes.kept:
            self._notes.take_up([ending.attempt.token for ending in batch])
        if self._notes.pending:
            await self._notes.flush()

    async def _write_these(self, batch: list[Ending], failures: int) -> bool:
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

    async def _answers(self, batch: list[Ending], failures: int) -> list[SettleResult] | None:
        """Return what became of each; None when the store took none of them."""
        try:
            results = await self._store.settle([ending.settlement for ending in batch])
        except Fenced as error:
            self.fence()
            self.fenced(error)
            return None
        except Exception as error:
            self.failing_since = self.failing_since or self._clock.monotonic()
            self._tally.fail("settle")
            text = "%d settlements could not be written (%d times in a row): %s"
            logger.error(text, len(batch), failures + 1, error, exc_info=trace_of(error))  # noqa: TRY400
            return None
        self.failing_since = None
        return results

    def _take_answers(self, batch: list[Ending], results: list[SettleResult]) -> None:
        for ending, result in zip(batch, results, strict=True):
            if _may_be_done_later(result):
                self._put_off(ending, result)
                continue
            self.held.pop(ending.attempt.token, None)
            if result is not Settled.DONE:
                self._refused(ending, result)
            if result is Settled.DONE or result is Settled.REPEATED:
                counts = ending.attempt.counts or self._tally.of(ending.attempt.job)
                counts.ends[OUTCOMES[type(ending.settlement.verdict)]] += 1
        if self._committed is not None:
            now = self._clock.now()
            self._committed([move_of(e, now) for e, r in zip(batch, results, strict=True) if r is Settled.DONE])
        self.written()

    def _put_off(self, ending: Ending, result: SettleResult) -> None:
        """Write it by itself, later: what keeps it from being written, its job locked by somebody, is its own."""
        self._tally.fail("settle")
        job = ending.attempt.job
        logger.warning("the end of job %s (%s) is not written yet, and is tried again: %s", job.id, job.kind, result)
        self._late.append(ending)
        if self._writing_late is None:
            self._writing_late = self._begin(self._write_late())

    def _begin(self, writing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(writing, context=self._context.copy())

    def _refused(self, ending: Ending, result: SettleResult) -> None:
        attempt = ending.attempt
        if isinstance(result, StoreUnavailable) and not ending.settlement.then and not ending.settlement.kv:
            # it would never be written, and is held no longer: whoever is delivered the job again decides
            self._tally.fail("settle")
            logger.error(
                "the end of job %s (%s) by %s is refused, and is given up: its lease runs out, and it is delivered "
                "again. Find out what refuses it, perhaps a trigger or a constraint that was added to the store: %s",
                attempt.job.id,
                attempt.handler.name,
                _name_of(ending),
                result,
            )
        elif isinstance(result, WindlassError):
            # what was to commit with the success met a unique key: the success is not written either
            attempt.next_jobs = attempt.kv_writes = None
            self.held[attempt.token] = attempt
            self.add(attempt, Raised(failure_of(result), result))
        elif result is Settled.LOST:
            attempt.tell("claim_lost")
            self._tally.of(attempt.job).ends[LOST] += 1
            logger.warning(
                "job %s (%s) was taken back while it ran: its end by %s is not written, whoever has it now decides",
                attempt.job.id,
                attempt.handler.name,
                _name_of(ending),
            )


def _may_be_done_later(result: SettleResult) -> bool:
    return isinstance(result, OutcomeUnknown) or (isinstance(result, StoreUnavailable) and result.retryable)


def _name_of(ending: Ending) -> str:
    return type(ending.settlement.verdict).__name__.removeprefix("To").lower()


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


def move_of(ending: Ending, now: datetime) -> Move:
    """Return the job as it is after its settlement, with where it came from and went."""
    decided = ending.settlement.verdict
    new = state_after(decided)
    job = ending.attempt.job
    failure: Failure | None = decided.failure if isinstance(decided, (ToDead, ToRetry)) else None
    error = job.last_error if failure is None else failure.summary
    result = decided.result if isinstance(decided, ToSucceeded) else None
    finished_at = now if new.finished else None
    moved = job._replace(state=new, last_error=error, result=result, finished_at=finished_at, lease_expires_at=None)
    return Move(moved, State.RUNNING, new)
