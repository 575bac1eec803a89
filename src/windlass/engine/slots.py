"""Slots: the attempts that run in a server, and how each begins and ends."""

import asyncio
import logging
from contextvars import Context
from typing import Final

from windlass.client.bell import Bell
from windlass.core.clock import Clock
from windlass.core.job import Job
from windlass.core.store import Store
from windlass.core.verdict import LEASE_EXPIRED, Outcome, Stopped
from windlass.engine.attempt import Attempt
from windlass.engine.attempt_stopper import AttemptStopper
from windlass.engine.context import of_no_job
from windlass.engine.execution import Execution
from windlass.engine.job_fields import fields_of
from windlass.engine.outcomes import CANCELLED_ON_REQUEST
from windlass.engine.settlement_writer import SettlementWriter
from windlass.engine.tally import Tally
from windlass.engine.unstarted_claims import UnstartedClaims

logger = logging.getLogger("windlass")

LONGEST_TURN: Final = 0.005
"""Seconds of starting jobs at a stretch, before the event loop gets to do something else."""
_LOOK_EVERY: Final = 16


class Slots:
    """Starts attempts in the order of their claims, as many at once as there are slots, and takes their ends.

    An attempt reports by one event, `end`, when its code has ended. The claim loop hands attempts over (`take`), and
    sleeps on `wake` while there is no slot for more.
    """

    def __init__(
        self,
        count: int,
        execution: Execution,
        *,
        store: Store,
        settlements: SettlementWriter,
        stopper: AttemptStopper,
        counts: Tally,
        clock: Clock,
    ) -> None:
        """Run attempts by `execution`, at most `count` at once, and settle them through `settlements`."""
        self.count: Final = count
        self._execution = execution
        execution.on_end = self.end
        self.settlements: Final = settlements
        self.held: Final = settlements.held
        self._stopper = stopper
        self.counts: Final = counts
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        # a copy for each attempt: the code that starts an attempt may be that of another job at its end
        self._context: Context = of_no_job()
        self.running: Final[set[Attempt]] = set()
        """Attempts whose code runs, also those that are settled by now."""
        self.unstarted: Final = UnstartedClaims(store, settlements, clock)
        self.sole: Attempt | None = None
        """An attempt that may kill its process: it begins when no other claim is held, and nothing begins before."""
        self.requested = 0
        """Number of jobs that are requested from the store by claims under way."""
        self.finished = 0
        """Number of attempts whose code has ended."""
        self.wake: Final = Bell(clock)
        """What the claim loop sleeps on."""
        self.wake_at = -1
        """Number of unstarted claims in line at which the claim loop is woken; -1 while it does not wait for that."""
        self._filling = False
        self._stopping = False
        self._closed = False
        self._idle = asyncio.Event()

    # claims

    def take(self, attempts: list[Attempt]) -> None:
        """Take the next attempts in line, and start those that have a slot."""
        for attempt in attempts:
            job = attempt.job
            if self._stopping:
                self.unstarted.release(attempt)
            elif job.cancel_requested:
                self.settlements.add(attempt, Stopped(CANCELLED_ON_REQUEST))
            elif may_be_poison(job):
                self._take_alone(attempt)
            else:
                self.unstarted.line.append(attempt)
        self.fill()

    def _take_alone(self, attempt: Attempt) -> None:
        """Keep one job that may kill its process; a second one would come to its end with it, and never have begun."""
        if self.sole is None:
            self.sole = attempt
        else:
            self.unstarted.release(attempt)

    # begin

    def fill(self) -> None:
        """Start what has a slot. A job that ends at once comes back here: it leaves that to the round under way."""
        if self._filling or self._stopping:
            return
        self._filling = True
        try:
            self._start_some()
        finally:
            self._filling = False
        if len(self.unstarted.line) <= self.wake_at:
            self._wake_claim_loop()
        if self.unstarted.line:
            self.unstarted.watch()

    def _start_some(self) -> None:
        running, line, count = self.running, self.unstarted.line, self.count
        until = self._loop.time() + LONGEST_TURN
        started = 0
        while not self._stopping:
            if self.sole is not None:
                self._start_alone(self.sole)
                return
            if not line or len(running) >= count:
                return
            attempt = line.popleft()
            if attempt.reason is None:
                self._begin(attempt)
            else:
                self._settle_unstarted(attempt)
            started += 1
            if started % _LOOK_EVERY == 0 and self._loop.time() > until:
                self._loop.call_soon(self.fill)
                return

    def _start_alone(self, sole: Attempt) -> None:
        """Start a job that may kill its process when nothing else could die with it.

        That is: when no other claim is held or under way. What has ended, or was given back, is held until that is
        written, and then this is called again.
        """
        if sole in self.running:
            return
        self.unstarted.release_all()
        if sole.reason is None:
            if len(self.held) == 1 and not self.requested:
                self._begin(sole)
            return
        self.sole = None
        self._settle_unstarted(sole)
        self._wake_claim_loop()

    def _settle_unstarted(self, attempt: Attempt) -> None:
        """Settle an attempt that was told to stop while it waited here."""
        if attempt.reason == "cancel":
            self.settlements.add(attempt, Stopped(CANCELLED_ON_REQUEST))
        else:
            self.unstarted.release(attempt)

    def _begin(self, attempt: Attempt) -> None:
        now = self._clock.monotonic()
        handler = attempt.handler
        attempt.started_at = now
        attempt.counts = self.counts.begin(attempt.job, now - attempt.claimed_at)
        if handler.timeout_seconds is not None:
            attempt.renew_until = now + handler.timeout_seconds + attempt.lease
        # first: where tasks begin at once, its code may hold up the event loop before this goes on
        self.running.add(attempt)
        self._execution.start(attempt, self._loop, self._context.copy())
        # one whose code waited for nothing has ended by now
        if not attempt.over and handler.timeout is not None:
            self._stopper.deadlines.add(attempt, handler.timeout, now)

    # end

    def end(self, attempt: Attempt, outcome: Outcome) -> None:
        """Take the end of an attempt's code: its slot is free, and it is settled unless it was before."""
        if self._closed:
            text = "job %s (%s) has ended after its server"
            logger.warning(text, attempt.job.id, attempt.handler.name, extra=fields_of(attempt.job))
            return
        attempt.over = True
        self.finished += 1
        if attempt.started_at is not None and attempt.counts is not None:
            attempt.counts.ran.add(self._clock.monotonic() - attempt.started_at)
        self.running.discard(attempt)
        if attempt is self.sole:
            self.sole = None
        timeout = attempt.handler.timeout
        if timeout is not None:
            self._stopper.deadlines.discard(attempt, timeout)
        if attempt.settled:
            self._end_settled(attempt)
        else:
            self.settlements.add(attempt, outcome)
        if self.unstarted.line or self.sole is not None:
            self.fill()
        if len(self.unstarted.line) <= self.wake_at:
            self._wake_claim_loop()
        if self._stopping and not self.running:
            self._idle.set()

    def _end_settled(self, attempt: Attempt) -> None:
        self.held.remove((attempt,))
        if attempt in self._stopper.stuck:
            self._stopper.ended(attempt)
        else:
            self.settlements.settled_by_handler(attempt)

    def _wake_claim_loop(self) -> None:
        self.wake_at = -1
        self.wake.ring()

    # stop

    def stop(self) -> None:
        """Start no attempt any more and give back what was not started; what runs goes on."""
        self._stopping = True
        self.unstarted.release_all()
        if self.sole is not None and self.sole not in self.running:
            self.unstarted.release(self.sole)
        self.unstarted.stop_watch()

    def abandon(self) -> None:
        """Start no attempt any more, and give none back."""
        self._stopping = True
        self.unstarted.clear()
        self.held.clear()

    async def all_ended(self, within: float) -> bool:
        """Return whether all code has ended, waiting for it at most `within` seconds after a stop."""
        if not self.running:
            return True
        self._idle.clear()
        timer = self._clock.call_later(within, self._idle.set)
        try:
            await self._idle.wait()
        finally:
            timer.cancel()
        return not self.running

    def end_wait(self) -> None:
        """End a wait of `all_ended` now."""
        self._idle.set()

    def close(self) -> None:
        """Watch nothing and take no end any more."""
        self._closed = True
        self._stopper.deadlines.close()
        self.unstarted.close()


def may_be_poison(job: Job) -> bool:
    """Whether a job has one attempt left and took its process along the last time, for all that is known."""
    return 1 < job.attempt == job.max_attempts and job.last_error == LEASE_EXPIRED.summary
