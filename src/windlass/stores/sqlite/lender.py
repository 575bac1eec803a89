"""Transactions that are lent: begun here on a connection of the store's own, used by the caller, ended here.

SQLite has one writer at a time, so there is one connection and one thread, which serves one transaction after the other
and takes a turn for each, like every writer of ours. Waiting and committing is done by the thread, so that the event
loop never stands still.
"""

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from windlass.core.errors import ClientClosed, StoreUnavailable
from windlass.core.topics import Hub, Topic
from windlass.stores.sqlite.database import Options, connect_as
from windlass.stores.sqlite.faults import translate
from windlass.stores.sqlite.lent import LentConnection
from windlass.stores.sqlite.turns import GIVE_UP_AFTER, WARN_AFTER, FileIdentity, Turns
from windlass.stores.sqlite.wake import WakeFile

logger = logging.getLogger("windlass.sqlite")

_TRY_EVERY: Final = 0.005


class Loan:
    """One caller's transaction, on its way or under way."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for the connection from now on."""
        self.since = time.monotonic()
        self.given: asyncio.Future[LentConnection] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self._ends: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def end(self, *, commit: bool) -> None:
        """Say how it ends; a caller who gives up before it began has ended it too."""
        self._ends.put(commit)

    @property
    def wanted(self) -> bool:
        """Whether the caller has not ended it."""
        return self._ends.empty()

    def commits(self) -> bool:
        """Wait until the caller has ended it, and return how."""
        return self._ends.get()


class Lender:
    """Lends the one connection of a process that may write beside its writer; used by one event loop."""

    def __init__(self, path: Path, options: Options, wake: WakeFile, hub: Hub) -> None:
        """Be ready; nothing is opened before the first transaction."""
        self._path = path
        self._options = options
        self._wake = wake
        self._hub = hub
        self._file = FileIdentity(path)
        self._loop = asyncio.get_running_loop()
        self._loans: queue.SimpleQueue[Loan | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._turns: Turns | None = None
        self._connection: LentConnection | None = None
        self._waits_since: float | None = None
        self._closed = False
        self._ended = asyncio.Event()

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[sqlite3.Connection]:
        """Give the connection in a transaction that may write; commit it at the end, or roll back after an error."""
        loan = self._ask()
        connection = await self._given(loan)
        try:
            yield connection
        except BaseException:
            loan.end(commit=False)
            await loan.ended
            raise
        loan.end(commit=True)
        await loan.ended

    async def close(self) -> None:
        """Let the transactions that were asked for end, then let go of the file."""
        self._closed = True
        if self._thread is not None:
            self._loans.put(None)
            await self._ended.wait()
            self._thread.join()

    # on the event loop

    def _ask(self) -> Loan:
        if self._closed:
            raise ClientClosed
        if self._thread is None:
            self._turns = Turns(self._path)
            self._thread = threading.Thread(
                target=self._work, args=(self._turns,), name="windlass-sqlite-lender", daemon=True
            )
            self._thread.start()
        loan = Loan(self._loop)
        self._loans.put(loan)
        return loan

    async def _given(self, loan: Loan) -> sqlite3.Connection:
        try:
            await self._wait_for(loan)
            return await loan.given
        except BaseException:
            loan.end(commit=False)
            loan.given.cancel()
            raise

    async def _wait_for(self, loan: Loan) -> None:
        """Say who is in the way of a transaction that waits long, and do not let it wait for ever."""
        warned = False
        while not loan.given.done():
            await asyncio.wait({loan.given}, timeout=1.0 if warned else WARN_AFTER)
            waited = self._waited(loan)
            if waited >= WARN_AFTER and not warned:
                warned = True
                logger.warning("a transaction on %s waits since %.0f s: %s", self._path, waited, self._likely_cause())
            if waited >= GIVE_UP_AFTER:
                message = (
                    f"a transaction on {self._path} waited {waited:.0f} s and was given up: {self._likely_cause()}"
                )
                raise StoreUnavailable(message, retryable=True)

    def _waited(self, loan: Loan) -> float:
        """Return how long others have been in the way; to wait behind our own transactions does not count."""
        since = self._waits_since
        return 0.0 if loan.given.done() or since is None else time.monotonic() - max(since, loan.since)

    def _likely_cause(self) -> str:
        holder = "unknown" if self._turns is None else self._turns.holder()
        return (
            "another connection holds SQLite's write lock; most likely a transaction of your own that was left open, "
            f"or process {holder}, if it is stopped"
        )

    # on the lending thread

    def _work(self, turns: Turns) -> None:
        while (loan := self._loans.get()) is not None:
            self._serve(loan, turns)
        self._forget()
        turns.close()
        self._post(self._ended.set)

    def _serve(self, loan: Loan, turns: Turns) -> None:
        try:
            connection = self._begin(loan, turns)
        except Exception as error:  # noqa: BLE001 - whoever asked is told, and the thread lives on
            self._forget()
            self._post(_settle, loan.given, translate(error, self._path))
            return
        if connection is not None:
            commit = self._post(_settle, loan.given, connection) and loan.commits()
            self._post(_settle, loan.ended, self._end(connection, turns, commit=commit))

    def _begin(self, loan: Loan, turns: Turns) -> LentConnection | None:
        """Take the turn and the write lock; None when the caller has gone meanwhile."""
        if not loan.wanted:
            return None
        connection: LentConnection | None = None
        self._waits_since = time.monotonic()
        turns.take()
        try:
            self._file.check()
            connection = self._write_lock(loan)
        finally:
            self._waits_since = None
            if connection is None:
                turns.give()
        return connection

    def _write_lock(self, loan: Loan) -> LentConnection | None:
        """Begin; a writer outside of Windlass may hold SQLite's lock for long."""
        while loan.wanted:
            connection = self._connection = self._connection or self._connect()
            try:
                connection.begin()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if error.sqlite_errorcode == sqlite3.SQLITE_BUSY_SNAPSHOT:
                    # the last user still reads, by a way that we do not know of
                    self._forget()
                time.sleep(_TRY_EVERY)
            else:
                return connection
        return None

    def _end(self, connection: LentConnection, turns: Turns, *, commit: bool) -> Exception | None:
        """Commit or roll back; return why it could not be committed."""
        try:
            connection.end(commit=commit)
        except sqlite3.IntegrityError as error:
            # a constraint of the caller's own, which SQLite looks at only now
            connection.spoilt = True
            return error
        except Exception as error:  # noqa: BLE001 - whoever commits is told; a close rolls back as well
            connection.spoilt = True
            return translate(error, self._path) if commit else None
        finally:
            if connection.spoilt:
                self._forget()
            turns.give()
        if commit:
            self._spread(connection.news)
        return None

    def _spread(self, news: set[Topic]) -> None:
        try:
            self._wake.bump(news)
        except OSError as error:
            # it is committed: others hear of it at their next look
            logger.warning("no news of a commit to %s could be written: %s", self._path, error)
        self._hub.ring(news)

    def _connect(self) -> LentConnection:
        connection = connect_as(LentConnection, self._path, self._options)
        # waiting for a writer outside of Windlass is done here, where it can be given up
        connection.execute("pragma busy_timeout = 0")
        return connection

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.discard()

    def _post(self, call: Callable[..., object], *arguments: object) -> bool:
        """Call on the loop; False when it is closed, and nobody waits any more."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)
            return True
        return False


def _settle(future: "asyncio.Future[Any]", result: object) -> None:
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
