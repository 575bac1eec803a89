"""What running code may know and do about its own attempt."""

import contextvars
from collections.abc import Mapping
from contextvars import ContextVar
from logging import LogRecord
from typing import Any, Protocol

from windlass.client.kv import KeyValue
from windlass.core.errors import NoCurrentJob
from windlass.core.job import CancelEvent, Job, NewJob, Token
from windlass.core.settings import UNSET, Unset
from windlass.engine.log_message import put_together
from windlass.engine.transaction import ClaimTransaction


class Desk(Protocol):
    """What stands behind a context: the attempt in this process, or in the parent of this child process."""

    @property
    def job(self) -> Job:
        """The job as it was claimed."""
        ...

    @property
    def token(self) -> Token:
        """The fence of the claim."""
        ...

    @property
    def cancelled(self) -> CancelEvent:
        """Set when the attempt should stop."""
        ...

    @property
    def kv(self) -> KeyValue:
        """The caller's own key space."""
        ...

    def note(self, level: str, text: str) -> None:
        """Keep a log line with the job, from any thread."""
        ...

    def progress(self, done: float, total: float | None, note: str | None) -> None:
        """Keep how far the job is, from any thread."""
        ...

    def then(self, jobs: list[NewJob], kv: Mapping[bytes | str, bytes | None]) -> None:
        """Let these commit with the success of the attempt."""
        ...

    def transaction(self, connection: object) -> ClaimTransaction:
        """Return the transaction that settles the claim."""
        ...


class Call(Protocol):
    """A call of a handler that is still to be enqueued: what `handler.call(...)` gives."""

    def new_job(self) -> NewJob:
        """Return the job as the client takes it."""
        ...


class Context:
    """One attempt, as its handler sees it: by a parameter annotated with it, or by `windlass.current()`.

    May be used from any thread that the handler runs in. What it writes carries the claim's token, so that an attempt
    which has lost its claim changes nothing.
    """

    __slots__ = ("_desk", "log")

    def __init__(self, desk: Desk) -> None:
        """Speak for one attempt."""
        self._desk = desk
        self.log = JobLog(desk)

    @property
    def job(self) -> Job:
        """The job as it was claimed."""
        return self._desk.job

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._desk.job.attempt

    @property
    def delivery(self) -> int:
        """The number of this claim in the job's life; an outside system can fence by it."""
        return self._desk.job.delivery

    @property
    def token(self) -> Token:
        """The fence of the claim."""
        return self._desk.token

    @property
    def previous_error(self) -> str | None:
        """Why the last attempt failed; None when none did."""
        return self._desk.job.last_error

    @property
    def cancelled(self) -> CancelEvent:
        """Set when the attempt should stop; `reason` is `cancel`, `stop`, `timeout` or `claim_lost`."""
        return self._desk.cancelled

    @property
    def kv(self) -> KeyValue:
        """The caller's own key space in the store."""
        return self._desk.kv

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Tell how far the job is; the newest is written, soon and without waiting for it."""
        self._desk.progress(done, total, note)

    def then(self, *calls: Call | NewJob, kv: Mapping[bytes | str, bytes | None] | None = None) -> None:
        """Enqueue jobs and write values together with the success of this attempt; if it fails, none of it is done."""
        jobs = [call if isinstance(call, NewJob) else call.new_job() for call in calls]
        self._desk.then(jobs, kv or {})

    def transaction(self, connection: object = None) -> ClaimTransaction:
        """Settle the claim in the transaction that writes its effects, which makes them exactly-once.

        `async with ctx.transaction() as connection` gives the store driver's own connection; with a connection or
        session of yours it works in that one, which you begin and it commits. The claim is checked first and acked
        last; an exception rolls back and fails the attempt. A `def` handler uses `with`, and its connection blocks.
        """
        return self._desk.transaction(connection)


class JobLog:
    """Lines that are kept with the job.

    Arguments after the text are put into it as the standard `logging` does; without them it is kept as it is. Arguments
    that do not fit are kept beside it: no line fails a job.
    """

    __slots__ = ("_desk",)

    def __init__(self, desk: Desk) -> None:
        """Write for one attempt."""
        self._desk = desk

    def debug(self, text: str, *args: object) -> None:
        """Keep a line for whoever looks closely."""
        self._desk.note("debug", put_together(text, args))

    def info(self, text: str, *args: object) -> None:
        """Keep a line."""
        self._desk.note("info", put_together(text, args))

    def warning(self, text: str, *args: object) -> None:
        """Keep a line that somebody should see."""
        self._desk.note("warning", put_together(text, args))

    def error(self, text: str, *args: object) -> None:
        """Keep a line about something that went wrong."""
        self._desk.note("error", put_together(text, args))


class Lines(Protocol):
    """What of the standard log is kept with one attempt."""

    def take(self, record: LogRecord) -> None:
        """Keep a record, or leave it out."""
        ...


class Desks(Protocol):
    """Makes a context when it is asked for: most handlers never do."""

    @property
    def context(self) -> Context:
        """The context of one attempt."""
        ...

    @property
    def kept_lines(self) -> Lines:
        """What is kept of the standard log."""
        ...


running: ContextVar[Desks | Unset] = ContextVar("windlass_running", default=UNSET)
"""The attempt that the current task, thread or child works for."""


def of_no_job() -> contextvars.Context:
    """Return a copy of this context in which no job runs, for what is done for many of them."""
    context = contextvars.copy_context()
    context.run(running.set, UNSET)
    return context


def current() -> Context:
    """Return the context of the attempt that this code runs in; raises `NoCurrentJob` elsewhere."""
    attempt = running.get()
    if isinstance(attempt, Unset):
        raise NoCurrentJob
    return attempt.context


def wants_context(annotation: Any) -> bool:  # noqa: ANN401 - whatever stands behind a parameter's colon
    """Whether a parameter annotated like this is given the context."""
    return annotation is Context
