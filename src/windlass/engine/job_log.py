"""What the server's own log says of jobs; each record carries the facts as fields, for whoever reads by machine."""

import logging
from typing import Any, Final

from windlass.core.job import Failure
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.engine.attempt import Attempt

logger = logging.getLogger("windlass.jobs")

_BEGAN: Final = "job %s (%s) attempt %d of %d"


def log_end(attempt: Attempt, decided: Verdict, now: float) -> None:
    """Tell how an attempt ended: failures always, other ends to whoever asked for `INFO`."""
    match decided:
        case _ if attempt.reason == "claim_lost":
            return  # it is not written: whoever has the job now decides
        case ToDead(failure):
            _log(logging.ERROR, attempt, "is dead: %s%s", failure.summary, _trace(failure), outcome="dead", now=now)
        case ToRetry(delay, failure):
            _log(logging.WARNING, attempt, "failed, again in %s: %s", delay, failure.summary, outcome="retry", now=now)
        case _ if not logger.isEnabledFor(logging.INFO):
            return
        case ToSucceeded():
            _log(logging.INFO, attempt, "succeeded", outcome="succeeded", now=now)
        case ToCancelled(reason):
            _log(logging.INFO, attempt, "was cancelled: %s", reason, outcome="cancelled", now=now)
        case ToSnoozed(delay):
            _log(logging.INFO, attempt, "is put off by %s", delay, outcome="snoozed", now=now)
        case ToReleased():
            _log(logging.INFO, attempt, "is given back", outcome="released", now=now)


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


def _trace(failure: Failure) -> str:
    return "" if failure.traceback is None else f"\n{failure.traceback}"
