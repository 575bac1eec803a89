"""Calls of handlers that are still to be enqueued, and handles of their jobs."""

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar, assert_never

from windlass.blocking.client import BlockingClient
from windlass.client.client import Client
from windlass.client.results import Completed, NotFound, TimedOut, WaitResult
from windlass.core.duration import Duration, duration
from windlass.core.errors import JobCancelled, JobDead, JobNotFound, ResultNotKept, WrongState
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, Job, NewJob
from windlass.core.requests import CancelOutcome
from windlass.core.states import State
from windlass.engine.causes import cause
from windlass.handlers.results import ResultReader

R = TypeVar("R")
T = TypeVar("T")


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


class Handle(Generic[R]):
    """One enqueued job. `created` is False when the job was there already, by its id or its unique key.

    ```python
    import windlass

    app = windlass.App("memory://")

    @app.job
    async def add(left: int, right: int) -> int:
        return left + right

    handle = await add.enqueue(1, 2)
    print((await handle.job()).state)
    print(await handle.cancel())
    ```
    """

    __slots__ = ("_client", "_results", "created", "id")

    id: JobId
    created: bool

    def __init__(self, enqueued: Enqueued, client: Callable[[], Client], results: ResultReader[R]) -> None:
        """Look after the job through what `client` gives at that time; its result is read by `results`."""
        self.id = enqueued.id
        self.created = enqueued.created
        self._client = client
        self._results = results

    async def job(self) -> Job:
        """Return the job with its history and log; raises `JobNotFound`, also when its record is gone."""
        job = await self._client().get(self.id)
        if job is None:
            raise JobNotFound(self.id)
        return job

    async def wait(self, timeout: Duration | None = None) -> WaitResult:
        """Return when the job has reached an end, or `timeout` is over, as `Client.wait` does."""
        return await self._client().wait(self.id, timeout)

    async def result(self, timeout: Duration | None = None) -> R:
        """Wait for the end of the job and return what its handler returned.

        The value is read by the handler's return annotation; without one it is plain JSON. Raises `JobDead` with the
        job, `JobCancelled`, `ResultNotKept` when the record went with the end, `JobNotFound`, and `TimeoutError` when
        the job had not ended in time.
        """
        found = await self.wait(timeout)
        match found:
            case Completed(job):
                return self._read(job)
            case NotFound():
                raise JobNotFound(self.id)
            case TimedOut():
                seconds = 0.0 if timeout is None else duration(timeout, "timeout").total_seconds()
                message = f"job {self.id} had not ended after {seconds:g} s: it may end later"
                raise TimeoutError(message)
            case _:
                assert_never(found)

    async def cancel(self) -> CancelOutcome:
        """End the job if it waits, or ask its holder to stop, as `Client.cancel` does."""
        return await self._client().cancel(self.id)

    def __repr__(self) -> str:
        """Show which job it is."""
        return f"<{type(self).__name__} of job {self.id}>"

    def _read(self, job: Job | None) -> R:
        if job is None:
            raise ResultNotKept(self.id)
        match job.state:
            case State.SUCCEEDED:
                return self._results.read(job, self._client().decode_result)
            case State.DEAD:
                raise JobDead(job, job.last_error) from cause(self.id)
            case State.CANCELLED:
                raise JobCancelled(self.id)
            case _:
                # somebody gave it a new budget between its end and this look
                raise WrongState(self.id, job.state, "succeeded")


class BlockingHandle(Generic[R]):
    """One enqueued job, by blocking calls: the same names as `Handle`."""

    __slots__ = ("_client", "_results", "created", "id")

    id: JobId
    created: bool

    def __init__(self, enqueued: Enqueued, client: Callable[[], BlockingClient], results: ResultReader[R]) -> None:
        """Look after the job through what `client` gives at that time; its result is read by `results`."""
        self.id = enqueued.id
        self.created = enqueued.created
        self._client = client
        self._results = results

    def job(self) -> Job:
        """Return the job, as `Handle.job` does."""
        return self._run(lambda handle: handle.job())

    def wait(self, timeout: Duration | None = None) -> WaitResult:
        """Block until the job has ended, as `Handle.wait` does."""
        return self._run(lambda handle: handle.wait(timeout))

    def result(self, timeout: Duration | None = None) -> R:
        """Block until the job has ended and return its result, as `Handle.result` does."""
        return self._run(lambda handle: handle.result(timeout))

    def cancel(self) -> CancelOutcome:
        """End the job, as `Handle.cancel` does."""
        return self._run(lambda handle: handle.cancel())

    def __repr__(self) -> str:
        """Show which job it is."""
        return f"<{type(self).__name__} of job {self.id}>"

    def _run(self, call: Callable[[Handle[R]], Coroutine[Any, Any, T]]) -> T:
        enqueued = Enqueued(self.id, self.created)
        return self._client().run(lambda client: call(Handle(enqueued, lambda: client, self._results)))
