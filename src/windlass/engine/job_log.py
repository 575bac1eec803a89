"""What the server's own log says of jobs; each record carries the facts as fields, for whoever reads by machine."""

import logging
from datetime import timedelta
from functools import lru_cache
from typing import Final

from windlass.core.clock import Clock, Timer
from windlass.core.job import Failure, Job
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.engine.attempt import Attempt
from windlass.engine.job_fields import fields_of, record_fields

logger = logging.getLogger("windlass.jobs")

DEAD: Final = "job %s (%s) attempt %d of %d failed, the job is dead: %s"
"""The templates are constant: systems that collect errors group records by them."""
RETRY: Final = "job %s (%s) attempt %d of %d failed, again in %s: %s"
SUCCEEDED: Final = "job %s (%s) attempt %d of %d succeeded"
CANCELLED: Final = "job %s (%s) attempt %d of %d was cancelled: %s"
SNOOZED: Final = "job %s (%s) attempt %d of %d is put off by %s"
RELEASED: Final = "job %s (%s) attempt %d of %d is given back"
RESCUED: Final = "job %s (%s) attempt %d of %d is taken back: %s"

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

    def end(
        self, attempt: Attempt, decided: Verdict, error: BaseException | None = None, *, ended_at: float | None = None
    ) -> None:
        """Log how an attempt ended, now or at `ended_at` by the monotonic clock.

        `error` is the exception that ended it, where it was raised in this process.
        """
        match decided:
            case _ if attempt.reason == "claim_lost":
                return  # it is not written: whoever has the job now decides
            case ToDead(failure):
                self._log(logging.ERROR, attempt, DEAD, failure.summary, outcome="dead", failed=(failure, error))
            case ToRetry(delay, failure):
                values = _span(delay), failure.summary
                self._log(logging.WARNING, attempt, RETRY, *values, outcome="retry", failed=(failure, error))
            case _ if not logger.isEnabledFor(logging.INFO):
                return
            case ToSucceeded():
                if self._tells_of_one_more():
                    self._log(logging.INFO, attempt, SUCCEEDED, outcome="succeeded", ended_at=ended_at)
            case ToCancelled(reason):
                self._log(logging.INFO, attempt, CANCELLED, reason, outcome="cancelled")
            case ToSnoozed(delay):
                self._log(logging.INFO, attempt, SNOOZED, _span(delay), outcome="snoozed")
            case ToReleased():
                self._log(logging.INFO, attempt, RELEASED, outcome="released")

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
            extra = record_fields({"outcome": "succeeded", "jobs": more})
            logger.info("%s more jobs succeeded within a second", f"{more:,}", extra=extra)

    def _log(
        self,
        level: int,
        attempt: Attempt,
        template: str,
        *values: object,
        outcome: str,
        failed: tuple[Failure, BaseException | None] | None = None,
        ended_at: float | None = None,
    ) -> None:
        end = self._clock.monotonic() if ended_at is None else ended_at
        seconds = None if attempt.started_at is None else end - attempt.started_at
        job = attempt.job
        _write(level, job, template, attempt.handler.name, *values, failed=failed, outcome=outcome, seconds=seconds)


class ReportedError(Exception):
    """An exception of another process, or a failure without one, as log handlers are given it.

    Its class has the name of the original class and is made from the text alone: nothing is imported.
    """


def log_rescued(job: Job, failure: Failure, *, dead: bool) -> None:
    """Log that a job was taken back from a server that did not settle it, which may have been its last attempt."""
    name = job.kind or f"consumer of {job.queue}"
    if dead:
        _write(logging.ERROR, job, DEAD, name, failure.summary, failed=(failure, None), outcome="dead")
    else:
        _write(logging.INFO, job, RESCUED, name, failure.message, outcome="rescued")


def _write(
    level: int,
    job: Job,
    template: str,
    name: str,
    *values: object,
    failed: tuple[Failure, BaseException | None] | None = None,
    **more: object,
) -> None:
    if not logger.isEnabledFor(level):
        return
    file, line, function, _ = logger.findCaller()
    args = job.id, name, job.attempt, job.max_attempts, *values
    error = None if failed is None else failed[1] or _reported(failed[0])
    exc_info = None if error is None else (type(error), error, error.__traceback__)
    extra = fields_of(job, **more)
    record = logger.makeRecord(logger.name, level, file, line, template, args, exc_info, function, extra)
    if failed is not None:
        # formatters write this text in place of their own: it is cut to its limit, and a child process sends no more
        record.exc_text = None if failed[0].traceback is None else failed[0].traceback.rstrip()
    logger.handle(record)


def _reported(failure: Failure) -> ReportedError | None:
    return None if failure.type is None else _reported_class(failure.type, failure.module)(failure.message)


@lru_cache(maxsize=256)
def _reported_class(name: str, module: str | None) -> type[ReportedError]:
    return type(name, (ReportedError,), {"__module__": module or __name__})


def _span(delay: timedelta) -> str:
    return f"{delay.total_seconds():.1f} s"
