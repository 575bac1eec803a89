"""Ending attempts that should end: asked first, by force where there is any, and never waited for in vain."""

import logging
from typing import Final

from windlass.core.clock import Clock
from windlass.core.verdict import GivenBack, Raised, Stopped
from windlass.engine.attempt import Attempt
from windlass.engine.outcomes import CANCELLED_ON_REQUEST, if_flagged, timed_out
from windlass.engine.settlements import Settlements
from windlass.handlers.registered import RunsIn

logger = logging.getLogger("windlass")

PATIENCE: Final = 5.0
"""Seconds between asking code to end and using force."""


class Halt:
    """Ends attempts of one server; `stuck` are those that are settled while their code still runs."""

    def __init__(self, settlements: Settlements, clock: Clock) -> None:
        """Settle through `settlements` what does not end by itself."""
        self._settlements = settlements
        self._clock = clock
        self.stuck: set[Attempt] = set()
        self._closed = False

    def close(self) -> None:
        """Settle nothing any more."""
        self._closed = True

    def late(self, attempt: Attempt) -> None:
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

    def requested(self, attempt: Attempt) -> None:
        """End an attempt whose job was asked to be cancelled: it is told, and some seconds later it is made to."""
        self._ask(attempt, "cancel")

    def lost(self, attempt: Attempt) -> None:
        """End an attempt that no longer holds its job: whatever it does is done in vain."""
        self._ask(attempt, "claim_lost")

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
        )

    def ended(self, attempt: Attempt) -> None:
        """Forget an attempt whose code has ended after all."""
        if attempt in self.stuck:
            self.stuck.discard(attempt)
            logger.info("job %s (%s), settled before, has ended", attempt.job.id, attempt.handler.name)

    def _ask(self, attempt: Attempt, reason: str) -> None:
        if attempt.reason is not None:
            return
        attempt.tell(reason)
        if attempt.handler.runs_in is RunsIn.PROCESS and attempt.child is not None:
            attempt.child.terminate()
        self._clock.call_later(PATIENCE, lambda: self.force(attempt))

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
        )
