"""How an attempt ended, told from what its code raised."""

import asyncio
import logging
from datetime import timedelta

from windlass.client.failure import cut, failure_of
from windlass.core.duration import duration
from windlass.core.job import Failure, Job
from windlass.core.signals import Cancel, PermanentFailure, Release, Retry, Snooze
from windlass.core.verdict import GaveUp, GivenBack, Outcome, PutOff, Raised, Returned, Stopped
from windlass.engine.job_fields import fields_of

logger = logging.getLogger("windlass")

CANCELLED_ON_REQUEST = "cancelled on request"


def outcome_of(error: BaseException, *, job: Job, reason: str | None, timeout: timedelta | None) -> Outcome:
    """Return the end of an attempt whose code raised `error`; `reason` is why it was told to stop, if it was."""
    try:
        _leave_out_our_way(error)
        return _outcome_of(error, job, reason, timeout)
    except BaseException as refusal:  # noqa: BLE001 - an error is code of its own, which fails as it likes
        return Raised(failure_of(refusal))


def _outcome_of(error: BaseException, job: Job, reason: str | None, timeout: timedelta | None) -> Outcome:
    match error:
        case Retry():
            return Raised(failure_of(error), error, duration(error.after, "after"))
        case Snooze():
            return PutOff(duration(error.delay, "delay"))
        case Release():
            return GivenBack(started=True)
        case Cancel() if reason == "stop":
            text = "job %s raised Cancel while its server stops: it is given back, not cancelled"
            logger.warning(text, job.id, extra=fields_of(job))
            return GivenBack(started=True)
        case Cancel():
            return Stopped(cut(error.reason))
        case PermanentFailure():
            return GaveUp(failure_of(error), error)
        case asyncio.CancelledError() if reason == "stop":
            return GivenBack(started=True)
        case asyncio.CancelledError() if reason == "timeout":
            return Raised(timed_out(timeout))
        case _:
            return Raised(failure_of(error), error)


def _leave_out_our_way(error: BaseException) -> None:
    """Let the traceback begin where the code of the user does: nobody looks for a mistake in what called it."""
    step = error.__traceback__
    while step is not None and str(step.tb_frame.f_globals.get("__name__")).startswith("windlass.engine."):
        step = step.tb_next
    if step is not None:
        error.__traceback__ = step


def killed_for(reason: str | None, timeout: timedelta | None) -> Outcome | None:
    """Return the end of an attempt whose child process was killed by its server; None if that is not why it died."""
    if reason == "stop":
        return GivenBack(started=True)
    return Raised(timed_out(timeout)) if reason == "timeout" else None


def if_flagged(outcome: Outcome) -> Outcome:
    """Return the end of an attempt whose job was asked to be cancelled: only a success, or a cancel, stays as it is."""
    return outcome if isinstance(outcome, (Returned, Stopped)) else Stopped(CANCELLED_ON_REQUEST)


def timed_out(timeout: timedelta | None) -> Failure:
    """Say that an attempt took too long."""
    return Failure(f"the attempt ran longer than its timeout of {timeout}", "Timeout")
