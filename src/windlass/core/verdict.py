"""What the end of a claim means for its job."""

from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, TypeAlias, assert_never

from windlass.core.job import Failure, Job
from windlass.core.retry import RetryRule, retry_delay


@dataclass(frozen=True, slots=True)
class Returned:
    """The work was done."""

    result: bytes | None = None
    codec: str | None = None


@dataclass(frozen=True, slots=True)
class Raised:
    """The attempt failed; with `delay` given the retry policy is not asked when, only whether attempts are left."""

    failure: Failure
    error: BaseException | None = None
    delay: timedelta | None = None


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The work can never be done, whatever attempts are left."""

    failure: Failure
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class PutOff:
    """The work is to be done later, and this delivery costs no attempt."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The job goes back to its place, at no cost; `started` tells whether any work was done on it."""

    started: bool = False


@dataclass(frozen=True, slots=True)
class Stopped:
    """The job ends here because somebody wanted it to."""

    reason: str


Outcome: TypeAlias = Returned | Raised | GaveUp | PutOff | GivenBack | Stopped


class ToSucceeded(NamedTuple):
    """Write the job as succeeded."""

    result: bytes | None = None
    codec: str | None = None


class ToRetry(NamedTuple):
    """Let the job wait for its next attempt; zero makes it pending at once."""

    delay: timedelta
    failure: Failure


class ToDead(NamedTuple):
    """Write the job as dead."""

    failure: Failure


class ToSnoozed(NamedTuple):
    """Let the job wait, and give its attempt back."""

    delay: timedelta


class ToReleased(NamedTuple):
    """Put the job back in its place, and give its attempt back."""

    started: bool = False


class ToCancelled(NamedTuple):
    """Write the job as cancelled."""

    reason: str


Verdict: TypeAlias = ToSucceeded | ToRetry | ToDead | ToSnoozed | ToReleased | ToCancelled


def verdict(job: Job, outcome: Outcome, *, retry: RetryRule, draw: float) -> Verdict:
    """Decide how a claim on `job` that ended by `outcome` is settled; `draw` is the chance in the jitter."""
    match outcome:
        case Returned(result, codec):
            return ToSucceeded(result, codec)
        case Raised():
            return _after_failure(job, outcome, retry, draw)
        case GaveUp(failure, _):
            return ToDead(failure)
        case PutOff(delay):
            return ToSnoozed(delay)
        case GivenBack(started):
            return ToReleased(started)
        case Stopped(reason):
            return ToCancelled(reason)
        case _:
            assert_never(outcome)


def _after_failure(job: Job, raised: Raised, retry: RetryRule, draw: float) -> Verdict:
    if job.attempt >= job.max_attempts:
        return ToDead(raised.failure)
    wait = raised.delay if raised.delay is not None else retry_delay(retry, job.attempt, raised.error, draw)
    return ToDead(raised.failure) if wait is None else ToRetry(wait, raised.failure)


LEASE_EXPIRED = Failure("the lease expired: its process died, stalled or lost the store", "LeaseExpired")
ORPHANED = Failure("orphan claim ended by an operator: nobody was left to settle it", "OrphanClaim")
