"""Job ids: which second job under an id is a repeat of the first, and which is another job."""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from windlass.core.errors import IdConflict
from windlass.core.ids import JobId


class Identified(Protocol):
    """A job, as a store keeps it or as it is to be enqueued."""

    @property
    def id(self) -> JobId:
        """The id."""
        ...

    @property
    def queue(self) -> str:
        """The queue."""
        ...

    @property
    def kind(self) -> str | None:
        """The kind; None for a raw job."""
        ...

    @property
    def tenant(self) -> str | None:
        """The tenant."""
        ...


_NONE: Final[Mapping[JobId, Identified]] = {}


def check_repeat(job: Identified, found: Identified) -> None:
    """Raise `IdConflict` unless `job` is a repeat of the job that was found under its id."""
    if job.queue != found.queue or job.kind != found.kind or job.tenant != found.tenant:
        raise conflict_of(job)


def check_repeats(jobs: Iterable[Identified], known: Mapping[JobId, Identified] = _NONE) -> None:
    """Raise `IdConflict` for a job whose id one of `known` has, or one before it, and which is no repeat of that.

    It is meant for jobs that nothing but an id keeps out.
    """
    firsts = dict(known)
    for job in jobs:
        first = firsts.setdefault(job.id, job)
        if first is not job:
            check_repeat(job, first)


def conflict_of(job: Identified) -> IdConflict:
    """Return the refusal of a job whose id is taken."""
    return IdConflict(job.id, job.queue, job.kind, job.tenant)
