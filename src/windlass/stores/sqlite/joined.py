"""Writes inside a caller's own transaction."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from windlass.core.clock import Clock
from windlass.core.commands import EnqueueJobs, SettleClaims
from windlass.core.errors import InvalidValue, StoreUnavailable, WindlassError
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, PreparedJob, Token
from windlass.core.joined_transaction import BorrowedConnection
from windlass.core.requests import Settlement, SettleResult
from windlass.core.topics import Topic
from windlass.stores.sqlite.damaged import may_be_damage, with_any_text
from windlass.stores.sqlite.faults import translate
from windlass.stores.sqlite.lent import LentConnection
from windlass.stores.sqlite.moves.enqueue import enqueue
from windlass.stores.sqlite.moves.hold_claims import fence_all
from windlass.stores.sqlite.moves.receipts import SqliteRequest
from windlass.stores.sqlite.moves.settle import settle
from windlass.stores.sqlite.transaction import Transaction
from windlass.stores.sqlite.turns import GIVE_UP_AFTER, WARN_AFTER

logger = logging.getLogger("windlass.sqlite")

T = TypeVar("T")
_TRY_EVERY: Final = 0.02


class SqliteJoined:
    """Writes through a connection that the caller opened, and that the caller commits."""

    def __init__(
        self,
        path: Path,
        borrowed: BorrowedConnection,
        clock: Clock,
        ring: Callable[[set[Topic]], None],
        *,
        prepare: Callable[[sqlite3.Cursor], None] | None = None,
    ) -> None:
        """Write to the store at `path`; `ring` is called with the news once the caller has committed.

        `prepare` makes the schema first, in the caller's transaction, for a store that is not open.
        """
        self._path = path
        self._borrowed = borrowed
        self._clock = clock
        self._ring = ring
        self._prepare = prepare

    async def fence(self, claims: Sequence[tuple[JobId, Token]]) -> list[bool]:
        """Tell which claims still hold; nobody can take them back until the caller's transaction ends."""
        return await self._write(lambda tx: fence_all(tx, claims))

    async def enqueue(self, jobs: Sequence[PreparedJob]) -> list[Enqueued]:
        """Put jobs in line when the caller's transaction commits."""
        [result] = await self._write(lambda tx: enqueue(tx, [SqliteRequest(EnqueueJobs(jobs))]))
        if isinstance(result, WindlassError):
            raise result
        return result

    async def settle(self, settlements: Sequence[Settlement]) -> list[SettleResult]:
        """Write how claims ended when the caller's transaction commits."""
        [result] = await self._write(lambda tx: settle(tx, [SqliteRequest(SettleClaims(settlements))]))
        return result

    async def settle_last(self, settlements: Sequence[Settlement]) -> list[SettleResult]:
        """Write how claims ended, as `settle`."""
        return await self.settle(settlements)

    async def was_committed(self, error: BaseException) -> bool:  # noqa: ARG002 - whatever it was
        """Return False: nothing lies between the caller and the file that could lose the answer to a commit."""
        return False

    async def _write(self, write: Callable[[Transaction], T]) -> T:
        """Write under a savepoint, so that an error leaves the caller's transaction as it was."""
        began = self._clock.monotonic()
        warned = False
        while True:
            try:
                result, topics = await self._borrowed.run(lambda connection: self._run(connection, write))
            except sqlite3.OperationalError as error:
                waited = self._clock.monotonic() - began
                self._check_wait(error, waited)
                warned = warned or self._warn(waited)
                await asyncio.sleep(_TRY_EVERY)
            except sqlite3.ProgrammingError as error:
                message = f"connection= cannot be used: {error}"
                raise InvalidValue(message) from error
            except sqlite3.Error as error:
                raise translate(error, self._path) from error
            else:
                await self._borrowed.after_commit(partial(self._ring, topics))
                return result

    def _warn(self, waited: float) -> bool:
        if waited < WARN_AFTER:
            return False
        logger.warning(
            "a write in a caller's transaction on %s waits since %.0f s: another connection holds SQLite's write lock",
            self._path,
            waited,
        )
        return True

    def _check_wait(self, error: sqlite3.OperationalError, waited: float) -> None:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY_SNAPSHOT:
            message = (
                "this transaction began by reading and another connection has written since, so it can no longer "
                "write: roll back, and begin with BEGIN IMMEDIATE"
            )
            raise StoreUnavailable(message, retryable=True) from error
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise translate(error, self._path) from error
        if waited >= GIVE_UP_AFTER:
            message = (
                f"a write in your transaction on {self._path} waited {waited:.0f} s and was given up: another "
                "connection holds SQLite's write lock, most likely a transaction that was left open"
            )
            raise StoreUnavailable(message, retryable=True) from error

    def _run(self, connection: Any, write: Callable[[Transaction], T]) -> tuple[T, set[Topic]]:  # noqa: ANN401 - any DB-API connection
        with _own_settings(connection):
            self._check_connection(connection)
            _begin(connection)
            result, topics = self._write_once_more_if_damaged(connection, self._prepared(write))
            if isinstance(connection, LentConnection):
                # the one who lent it commits, and has them rung
                connection.news.update(topics)
            return result, topics

    def _prepared(self, write: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
        def prepare_and_write(tx: Transaction) -> T:
            if self._prepare is not None:
                self._prepare(tx.cursor)
            # a transaction that has read nothing yet can wait for another writer only before it reads
            tx.run("take_write_lock", ())
            return write(tx)

        return prepare_and_write

    def _write_once_more_if_damaged(
        self,
        connection: Any,  # noqa: ANN401 - any DB-API connection
        write: Callable[[Transaction], T],
    ) -> tuple[T, set[Topic]]:
        try:
            return _write(Transaction(connection, self._clock.now()), write, self._path)
        except Exception as error:
            if not may_be_damage(error):
                raise
        with with_any_text(connection):
            return _write(Transaction(connection, self._clock.now(), careful=True), write, self._path)

    def _check_connection(self, connection: Any) -> None:  # noqa: ANN401 - any DB-API connection
        """Refuse a connection to another file, and keep this one from checkpointing by itself."""
        cursor = connection.cursor()
        cursor.row_factory = None
        cursor.execute("pragma database_list")
        files = {row[1]: row[2] for row in cursor.fetchall()}
        if not files["main"] or not _is_same_file(Path(files["main"]), self._path):
            message = (
                f"connection= is open on {files['main'] or 'a database in memory'!r}, and the store is {self._path}"
            )
            raise InvalidValue(message)
        cursor.execute("pragma wal_autocheckpoint = 0")


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return False


@contextmanager
def _own_settings(connection: Any) -> Generator[None, None, None]:  # noqa: ANN401 - any DB-API connection
    """Read text as `str`, however the caller reads it, and do not let SQLite wait: it may be an event loop's thread."""
    factory = connection.text_factory
    connection.text_factory = str
    try:
        if isinstance(connection, LentConnection):
            # it never waits, and its user must not change how it works
            yield
            return
        with _without_waiting(connection):
            yield
    finally:
        connection.text_factory = factory


@contextmanager
def _without_waiting(connection: Any) -> Generator[None, None, None]:  # noqa: ANN401 - any DB-API connection
    cursor = connection.cursor()
    cursor.row_factory = None
    [before] = cursor.execute("pragma busy_timeout").fetchone()
    cursor.execute("pragma busy_timeout = 0")
    try:
        yield
    finally:
        cursor.execute(f"pragma busy_timeout = {before}")
        cursor.close()


def _write(tx: Transaction, write: Callable[[Transaction], T], path: Path) -> tuple[T, set[Topic]]:
    with closing(tx):
        tx.execute("savepoint windlass_joined")
        try:
            result = write(tx)
            tx.flush()
        except BaseException as error:
            if not tx.cursor.connection.in_transaction and isinstance(error, sqlite3.Error):
                raise _rolled_back(error, path) from error
            tx.execute("rollback to windlass_joined")
            tx.execute("release windlass_joined")
            raise
        tx.execute("release windlass_joined")
        return result, tx.topics


def _rolled_back(error: sqlite3.Error, path: Path) -> WindlassError:
    """Say that SQLite has undone all that the caller wrote, not just our part: a full disk makes it do that."""
    fault = translate(error, path)
    fault.args = (f"{fault}; SQLite has rolled back your whole transaction: begin it again",)
    return fault


def _begin(connection: Any) -> None:  # noqa: ANN401 - any DB-API connection
    """Begin a transaction where the library would have begun one by itself at the first write."""
    if connection.in_transaction:
        return
    # a connection that commits each statement by itself would commit half a job, or never
    if connection.isolation_level is None or getattr(connection, "autocommit", None) is True:
        message = "no transaction is open on connection=: execute BEGIN IMMEDIATE first, and commit it yourself"
        raise InvalidValue(message)
    cursor = connection.cursor()
    cursor.execute("begin immediate")
