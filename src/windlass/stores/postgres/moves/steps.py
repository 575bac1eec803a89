"""The four steps: every change of a job's state goes through them.

A step runs the work that writes the state, and notifies those who wait for such news. Its jobs are given as they were
before. `enqueue.sql` and its like, `claim.sql`, `promote.sql`, `ack.sql` and `set_aside.sql` choose their jobs by
themselves: what a step does for each job is done in their own text, and `jobs` is empty where they alone know the jobs.

Deleting a job that had ended is no step, nor is letting go of a job that another store has now.
"""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from windlass.core.ids import JobId
from windlass.core.topics import ENDS
from windlass.stores.postgres.work import Changes, Work

T = TypeVar("T")


class StepJob(Protocol):
    """A job of a step; one that the store has is a `Standing`, with its number and its old state."""

    @property
    def id(self) -> JobId:
        """Its id."""
        ...

    @property
    def queue(self) -> str:
        """Its queue."""
        ...

    @property
    def kind(self) -> str | None:
        """Its kind."""
        ...


def starts_waiting(changes: Changes, jobs: Iterable[StepJob], change: Work[T]) -> Work[T]:
    """Run `change`, by which jobs become pending or scheduled; those that ran go through `stops_running` too."""
    answer = yield from change
    _ring(changes, jobs)
    return answer


def starts_running(change: Work[T]) -> Work[T]:
    """Run `change`, which claims jobs."""
    return (yield from change)


def stops_running(changes: Changes, jobs: Iterable[StepJob], change: Work[T], *, ring: bool = False) -> Work[T]:
    """Run `change`, by which running jobs wait again or end: a `starts_waiting` or an `ends`.

    With `ring`, waiters on the queues of the jobs look again, once for all of them.
    """
    answer = yield from change
    if ring:
        _ring(changes, jobs)
    return answer


def ends(changes: Changes, jobs: Iterable[StepJob], change: Work[T]) -> Work[T]:
    """Run `change`, by which jobs succeed, die or are cancelled; their records stay, or go with them."""
    del jobs
    answer = yield from change
    changes.topics.add(ENDS)
    return answer


def _ring(changes: Changes, jobs: Iterable[StepJob]) -> None:
    for queue in {job.queue for job in jobs}:
        changes.ready(queue)
