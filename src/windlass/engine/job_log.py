"""What the server's own log says of jobs; each record carries the facts as fields, for whoever reads by machine."""

import logging
from datetime import timedelta
from typing import Any, Final

from windlass.core.clock import Clock, Timer
from windlass.core.job import Failure
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.engine.attempt import Attempt

logger = logging.getLogger("windlass.jobs")

_BEGAN: Final = "job %s (%s) attempt %d of %d"


SECOND: Final = 1.0
SUCCESSES: Final = 100
"""Successes within a second that have a line each. More is nobody's reading, and costs as much as the jobs."""


class JobLog:
    """Tells how attempts end: failures always, other ends to whoever asked for `INFO`."""

    def __init__(self, clock: Clock) -> None:
        """Have nothing to tell yet."""
        self._clock = clock
        self._succeeded = 0
        self._timer: Timer | None = None

    def end(self, attempt: Attempt, decided: Verdict) -> None:
        """Tell how an attempt ended."""
        now = self._clock.monotonic()
        match decided:
            case _ if attempt.reason == "claim_lost":
                return  # it is not written: whoever has the job now decides
            case ToDead(failure):
                text = "failed, the job is dead: %s%s"
                _log(logging.ERROR, attempt, text, failure.summary, _trace(failure), outcome="dead", now=now)
            case ToRetry(delay, failure):
                text = "failed, again in %s: %s"
                _log(logging.WARNING, attempt, text, _span(delay), failure.summary, outcome="retry", now=now)
            case _ if not logger.isEnabledFor(logging.INFO):
                return
            case ToSucceeded():
                if self._tells_of_one_more():
                    _log(logging.INFO, attempt, "succeeded", outcome="succeeded", now=now)
            case ToCancelled(reason):
                _log(logging.INFO, attempt, "was cancelled: %s", reason, outcome="cancelled", now=now)
            case ToSnoozed(delay):
                _log(logging.INFO, attempt, "is put off by %s", _span(delay), outcome="snoozed", now=now)
            case ToReleased():
                _log(logging.INFO, attempt, "is given back", outcome="released", now=now)

    def close(self) -> None:
        """Tell what was not told yet."""
        if self._timer is not None:
            self._timer.cancel()
            self._tell_the_rest()

    def _tells_of_one_more(self) -> bool:
        if self._timer is None:
            self._timer = self._clock.call_later(SECOND, self._tell_the_rest)
        self._succeeded += 1
        return self._succeeded <= SUCCESSES

    def _tell_the_rest(self) -> None:
        more, self._succeeded, self._timer = self._succeeded - SUCCESSES, 0, None
        if more > 0:
            facts = {"outcome": "succeeded", "jobs": more}
            logger.info("%s more jobs succeeded within a second", f"{more:,}", extra={"windlass": facts})


def _log(level: int, attempt: Attempt, text: str, *values: object, outcome: str, now: float) -> None:
    job = attempt.job
    facts: dict[str, Any] = {
        "job_id": job.id,
        "kind": job.kind,
        "queue": job.queue,
        "attempt": job.attempt,
        "delivery": job.delivery,
        "outcome": outcome,
        "seconds": None if attempt.started_at is None else now - attempt.started_at,
    }
    begun = _BEGAN % (job.id, attempt.handler.name, job.attempt, job.max_attempts)
    logger.log(level, "%s " + text, begun, *values, extra={"windlass": facts})  # noqa: G003 - one of our own texts


def _span(delay: timedelta) -> str:
    return f"{delay.total_seconds():.1f} s"


def _trace(failure: Failure) -> str:
    return "" if failure.traceback is None else f"\n{failure.traceback.rstrip()}"
