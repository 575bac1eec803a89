"""What a context stands on in a child process."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from windlass.client.kv import KeyValue
from windlass.client.prepare import checked_kv
from windlass.core.errors import InvalidValue
from windlass.core.job import Job, NewJob, PreparedJob, Token
from windlass.engine.claim_transaction import SettlingTransaction
from windlass.engine.context import Context
from windlass.engine.executors.find import ChildApp
from windlass.engine.executors.messages import Begin, Noted
from windlass.engine.kept_log import KeptLines
from windlass.engine.notes import line_of, progress_of
from windlass.engine.stop_event import StopEvent
from windlass.engine.transaction import ClaimTransaction


class ChildDesk:
    """One attempt in this child process: its notes go to the server, the rest through a client of this process."""

    def __init__(
        self,
        begin: Begin,
        cancelled: StopEvent,
        *,
        app: ChildApp,
        loop: asyncio.AbstractEventLoop,
        note: Callable[[Noted], None],
    ) -> None:
        """Stand for the attempt in `begin`; `note` sends a note to the server, `loop` is where the client works."""
        self.job: Job = begin.job
        self.token: Token = begin.token
        self.cancelled = cancelled
        self.settled = False
        self.in_doubt = False
        self.next_jobs: list[PreparedJob] | None = None
        self.kv_writes: dict[bytes, bytes | None] | None = None
        self._run = begin.run
        self._warn_after = timedelta(seconds=begin.lease / 3)
        self._app = app
        self._loop = loop
        self._note = note
        self._context: Context | None = None
        self.kept_lines = KeptLines(begin.log_from, self.note)

    @property
    def context(self) -> Context:
        """The context, made when somebody asks for it."""
        if self._context is None:
            self._context = Context(self)
        return self._context

    @property
    def kv(self) -> KeyValue:
        """The caller's own key space."""
        client = self._app.client
        if not client.store.features.between_processes:
            message = (
                "this store belongs to the process of the server, and a child process cannot reach it: use a store "
                "that processes share, like sqlite, or a handler that runs in a thread"
            )
            raise InvalidValue(message)
        return client.kv

    def note(self, level: str, text: str) -> None:
        """Keep a log line with the job."""
        self._note(Noted(self._run, level=level, text=line_of(text)))

    def progress(self, done: float, total: float | None, note: str | None) -> None:
        """Keep how far the job is."""
        self._note(Noted(self._run, progress_of(done, total, note)))

    def then(self, jobs: list[NewJob], kv: Mapping[bytes | str, bytes | None]) -> None:
        """Let these commit with the success; what cannot be enqueued is refused here."""
        prepared, checked = self._app.client.preparer.prepare(jobs, self.job.id), checked_kv(kv)
        self.next_jobs = [*(self.next_jobs or ()), *prepared]
        self.kv_writes = {**(self.kv_writes or {}), **checked}

    def transaction(self, connection: object) -> ClaimTransaction:
        """Return the transaction that settles the claim."""
        return OpeningTransaction(self._app.client, self, connection, loop=self._loop, warn_after=self._warn_after)


class OpeningTransaction(SettlingTransaction):
    """Opens the client of this process first, which may not have been used yet."""

    async def __aenter__(self) -> Any:  # noqa: ANN401 - the connection of whichever driver
        """Open, begin, check the claim and give the connection."""
        await self._client.open()
        return await super().__aenter__()
