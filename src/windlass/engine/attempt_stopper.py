"""Attempt stopper: ends attempts at their timeout and on request, by force where they do not end by themselves."""

import asyncio
import logging
import math
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final, Literal, TypeAlias

from windlass.core.clock import Clock, Timer
from windlass.core.verdict import GivenBack, Outcome, Raised, Stopped
from windlass.engine.attempt import Attempt
from windlass.engine.job_fields import fields_of
from windlass.engine.outcomes import CANCELLED_ON_REQUEST, if_flagged, timed_out
from windlass.engine.settlement_writer import SettlementWriter
from windlass.handlers.registered import RunsIn

logger = logging.getLogger("windlass")

PATIENCE: Final = 5.0
"""Seconds between asking code to end and using force."""
SOONEST: Final = 0.001
"""Seconds until a timer of timeouts rings at the earliest."""

StopRequest: TypeAlias = Literal["cancel", "claim_lost"]
"""Why an attempt should end, other than its timeout and the stop of its server."""


class AttemptStopper:
    """Ends attempts of one server that should end: asks their code first, and uses force later, where there is any.

    It watches their deadlines by itself; renewals and the watch of stop requests report all other reasons.
    """

    def __init__(self, settlements: SettlementWriter, clock: Clock) -> None:
        """Settle through `settlements` the attempts whose code does not end."""
        self._settlements = settlements
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self.deadlines: Final = Deadlines(clock, self.time_out)
        self.stuck: Final[set[Attempt]] = set()
        """Attempts that are settled while their code still runs."""

    def close(self) -> None:
        """Settle no attempt any more."""
        self._closed = True

    def time_out(self, attempt: Attempt) -> None:
        """End an attempt that has run longer than its timeout."""
        attempt.tell("timeout")
        match attempt.handler.runs_in:
            case RunsIn.LOOP:
                self._cancel(attempt)
                # before its lease is no longer renewed
                self._clock.call_later(min(PATIENCE, attempt.lease / 2), lambda: self._give_up(attempt))
            case RunsIn.PROCESS:
                if attempt.child is not None:
                    attempt.child.kill()
            case RunsIn.THREAD:
                self._give_up(attempt)

    def request(self, attempt: Attempt, reason: StopRequest) -> None:
        """End an attempt whose job was asked to be cancelled, or is not held any more.

        Its code is told at once, and some seconds later it is made to end.
        """
        if attempt.reason is not None:
            return
        attempt.tell(reason)
        if attempt.handler.runs_in is RunsIn.PROCESS and attempt.child is not None:
            attempt.child.terminate()
        self._clock.call_later(PATIENCE, lambda: self.force(attempt))

    def request_soon(self, attempt: Attempt, reason: StopRequest) -> None:
        """Request the end of an attempt from any thread."""
        with suppress(RuntimeError):  # the loop is closed: all attempts have ended
            self._loop.call_soon_threadsafe(self.request, attempt, reason)

    def force(self, attempt: Attempt) -> None:
        """End an attempt now, where that can be done."""
        match attempt.handler.runs_in:
            case RunsIn.LOOP:
                self._cancel(attempt)
            case RunsIn.PROCESS:
                if attempt.child is not None:
                    attempt.child.kill()
            case RunsIn.THREAD:
                pass

    def give_back(self, attempt: Attempt) -> None:
        """Release an attempt whose code goes on until its process ends, which it does at once."""
        given_back = GivenBack(started=True)
        self._settlements.add(attempt, if_flagged(given_back) if attempt.reason == "cancel" else given_back)
        self.stuck.add(attempt)
        logger.warning(
            "job %s (%s) does not end with its server: it is given back, and its code ends with the process",
            attempt.job.id,
            attempt.handler.name,
            extra=fields_of(attempt.job),
        )

    def ended(self, attempt: Attempt) -> None:
        """Count an attempt as stuck no more: its code has ended after all."""
        if attempt in self.stuck:
            self.stuck.discard(attempt)
            text = "job %s (%s), settled before, has ended"
            logger.info(text, attempt.job.id, attempt.handler.name, extra=fields_of(attempt.job))

    def _cancel(self, attempt: Attempt) -> None:
        if attempt.task is not None:
            attempt.task.cancel()

    def _give_up(self, attempt: Attempt) -> None:
        """Settle an attempt whose code goes on: its slot stays taken until it really ends."""
        if self._closed or attempt.settled or attempt.task is None or attempt.task.done():
            return
        outcome = Stopped(CANCELLED_ON_REQUEST) if attempt.reason == "cancel" else Raised(timed_out(attempt.timeout))
        self._settlements.add(attempt, outcome)
        self.stuck.add(attempt)
        logger.error(
            "job %s (%s) does not end, %s after its begin: it is settled as failed, and its slot stays taken until it "
            "ends. Run it with process=True, where it can be killed",
            attempt.job.id,
            attempt.handler.name,
            attempt.timeout,
            extra=fields_of(attempt.job),
        )


def cut_off(attempt: Attempt, now: float) -> Outcome:
    """Return how an attempt ends with its process: what is past its timeout has failed, and all else is released."""
    until = attempt.renew_until
    outcome: Outcome = GivenBack(started=attempt.started_at is not None)
    if until is not None and until - attempt.lease <= now:
        outcome = Raised(timed_out(attempt.timeout))
    return if_flagged(outcome) if attempt.reason == "cancel" else outcome


class Deadlines:
    """Timers of the attempts that run: calls back for each that has run longer than its timeout.

    Attempts with the same timeout come due in the order in which they began, so that one line for each timeout and one
    timer for all of them do.
    """

    def __init__(self, clock: Clock, on_timeout: Callable[[Attempt], None]) -> None:
        """Call `on_timeout` on the event loop."""
        self._clock = clock
        self._on_timeout = on_timeout
        self._lines: dict[timedelta, OrderedDict[Attempt, float]] = {}
        self._timer: Timer | None = None
        self._due = math.inf

    def add(self, attempt: Attempt, timeout: timedelta, now: float) -> None:
        """Watch an attempt that begins now."""
        line = self._lines.get(timeout)
        if line is None:
            line = self._lines[timeout] = OrderedDict()
        line[attempt] = due = now + timeout.total_seconds()
        # a timer for one that has ended meanwhile is left as it is: it rings in vain, once
        if due < self._due:
            self._set_timer(due)

    def discard(self, attempt: Attempt, timeout: timedelta) -> None:
        """Watch an attempt no longer."""
        if (line := self._lines.get(timeout)) is not None:
            line.pop(attempt, None)

    def close(self) -> None:
        """Call nobody any more."""
        self._lines.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._due = math.inf

    def _set_timer(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._clock.call_later(max(SOONEST, due - self._clock.monotonic()), self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._due = math.inf
        now = self._clock.monotonic()
        for line in self._lines.values():
            while line and next(iter(line.values())) <= now:
                attempt, _ = line.popitem(last=False)
                self._on_timeout(attempt)
        if waiting := [next(iter(line.values())) for line in self._lines.values() if line]:
            self._set_timer(min(waiting))
