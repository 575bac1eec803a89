"""Call: a handler and its arguments, still to be enqueued."""

from typing import Generic, TypeVar

from windlass.core.job import NewJob
from windlass.handlers.results import ResultReader

R = TypeVar("R")


class Call(Generic[R]):
    """A call of a handler that was not made yet: its arguments are checked and encoded.

    For `app.enqueue_many` and `ctx.then`; enqueued twice it makes two jobs.
    """

    __slots__ = ("_job", "results")

    def __init__(self, job: NewJob, results: ResultReader[R]) -> None:
        """Stand for `job`, whose result is read by `results`."""
        self._job = job
        self.results = results

    def new_job(self) -> NewJob:
        """Return the job as the client takes it."""
        return self._job

    def __repr__(self) -> str:
        """Show the kind and not the arguments, which may be secret."""
        return f"<Call of {self._job.kind} for queue {self._job.queue!r}>"
