"""One claimed job on its way through this server."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windlass.client.kv import KeyValue
from windlass.client.prepare import checked_kv
from windlass.core.job import Claim, Job, NewJob, Note, PreparedJob, Token
from windlass.engine.context import Context
from windlass.engine.kept_log import KeptLines
from windlass.engine.notes import line_of, progress_of
from windlass.engine.stop_event import StopEvent
from windlass.engine.transaction import ClaimTransaction

if TYPE_CHECKING:
    from windlass.engine.attempt_services import AttemptServices
    from windlass.engine.executors.processes import ChildRun
    from windlass.engine.ready import ReadyHandler
    from windlass.engine.tally import Counts


class Attempt:
    """A claim, the handler it is for, and how far it has come; the desk of its context.

    It is held from its claim until it is settled and its code has ended, which a thread may do much later.
    """

    __slots__ = (
        "_context",
        "_kept_lines",
        "_services",
        "_stop",
        "child",
        "claimed_at",
        "counts",
        "handler",
        "in_doubt",
        "job",
        "kv_writes",
        "lease",
        "next_jobs",
        "over",
        "reason",
        "renew_until",
        "renewed_at",
        "settled",
        "started_at",
        "task",
        "token",
    )

    def __init__(
        self, claim: Claim, handler: "ReadyHandler", lease: float, now: float, services: "AttemptServices"
    ) -> None:
        """Hold a claim since `now`, by the monotonic clock, for `lease` seconds at a time."""
        self.job: Job = claim.job
        self.token: Token = claim.token
        self.handler = handler
        self.lease = lease
        self.claimed_at = now
        self.renewed_at = now
        self.started_at: float | None = None
        self.counts: Counts | None = None
        self.renew_until: float | None = None
        self.reason: str | None = None
        self.settled = False
        self.in_doubt = False
        self.over = False
        self.task: asyncio.Task[None] | None = None
        self.child: ChildRun | None = None
        self.next_jobs: list[PreparedJob] | None = None
        self.kv_writes: dict[bytes, bytes | None] | None = None
        self._stop: StopEvent | None = None
        self._context: Context | None = None
        self._kept_lines: KeptLines | None = None
        self._services = services

    def tell(self, reason: str) -> None:
        """Tell the code why it should stop; the first reason stays. May be called from any thread."""
        if self.reason is None:
            self.reason = reason
            if self._stop is not None:
                self._stop.fire(self.reason)
            if self.child is not None:
                self.child.tell(reason)

    @property
    def timeout(self) -> timedelta | None:
        """How long the attempt may run."""
        return self.handler.timeout

    # as the desk of its context

    @property
    def context(self) -> Context:
        """The context, made when somebody asks for it."""
        if self._context is None:
            self._context = Context(self)
        return self._context

    @property
    def kept_lines(self) -> KeptLines:
        """What is kept of the standard log."""
        if self._kept_lines is None:
            self._kept_lines = KeptLines(self.log_from, self.note)
        return self._kept_lines

    @property
    def log_from(self) -> int:
        """From which level on the standard log is kept."""
        return self._services.log_from

    @property
    def cancelled(self) -> StopEvent:
        """Set when the attempt should stop."""
        if self._stop is None:
            self._stop = StopEvent()
            # told before anybody looked, or in between from another thread: then both set it
            if self.reason is not None:
                self._stop.fire(self.reason)
        return self._stop

    @property
    def kv(self) -> KeyValue:
        """The caller's own key space."""
        return self._services.client.kv

    def note(self, level: str, text: str) -> None:
        """Keep a log line with the job."""
        self._services.notes.add(Note(self.job.id, self.token, lines=((level, line_of(text)),)))

    def progress(self, done: float, total: float | None, note: str | None) -> None:
        """Keep how far the job is."""
        self._services.notes.add(Note(self.job.id, self.token, progress_of(done, total, note)))

    def then(self, jobs: list[NewJob], kv: Mapping[bytes | str, bytes | None]) -> None:
        """Let these commit with the success."""
        # checked here, so that a mistake is the handler's own error
        prepared, checked = self._services.client.preparer.prepare(jobs, self.job.id), checked_kv(kv)
        self.next_jobs = [*(self.next_jobs or ()), *prepared]
        self.kv_writes = {**(self.kv_writes or {}), **checked}

    def transaction(self, connection: object) -> ClaimTransaction:
        """Return the transaction that settles the claim."""
        return self._services.transaction(self, connection)

    def __repr__(self) -> str:
        """Name the job."""
        return f"<Attempt {self.job.attempt} of job {self.job.id} ({self.job.kind or 'raw'})>"


def arguments_of(attempt: Attempt) -> dict[str, Any]:
    """Return what the handler is called with; raises `DecodeError`."""
    handler = attempt.handler
    arguments = handler.decode(attempt.job)
    if handler.extras:
        arguments.update(handler.extras)
    if handler.context_name is not None:
        arguments[handler.context_name] = attempt.context
    return arguments
