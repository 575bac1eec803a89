"""SQLAlchemy's connections and sessions, sync and async, lent to a store. Imported only when the caller uses them."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, SessionTransaction, scoped_session

from windlass.borrow.drivers import Rows, async_driver, blocking_driver, not_sqlite, package_of
from windlass.borrow.errand import in_its_thread, refuse_blocking
from windlass.borrow.loan import Loan

T = TypeVar("T")
Ring = Callable[[], None]

RING_AFTER: Final = (0.001, 0.005, 0.02)
"""Seconds after SQLAlchemy's `commit` event, which comes before the commit itself."""

_rings: WeakKeyDictionary[object, list[Ring]] = WeakKeyDictionary()
"""Whom to ring at the next commit, by connection or session; each is listened to once."""


def borrow_sqlalchemy(connection: object) -> Loan | None:
    """Return a connection or session of SQLAlchemy as a store can work with it; None for anything else of it."""
    match connection:
        case scoped_session() | async_scoped_session():
            return borrow_sqlalchemy(connection.registry())
        case Connection() | Session():
            return BorrowedSync(connection)
        case AsyncConnection() | AsyncSession():
            refuse_blocking(type(connection).__name__, "a Session")
            return BorrowedAsync(connection)
        case _:
            return None


class BorrowedSync:
    """A `Connection` or `Session`."""

    def __init__(self, owner: Connection | Session) -> None:
        """Work in the transaction of `owner`."""
        self.owner = owner

    async def run(self, work: Callable[[Any], T]) -> T:
        """Call `work` with the connection of sqlite3, in the caller's thread."""
        return await in_its_thread(lambda: work(_sqlite(_begun(self.owner))))

    async def execute(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Run a statement, in the caller's thread."""
        return await in_its_thread(lambda: blocking_driver(_begun(self.owner)).execute(sql, parameters))

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each of `rows`, in the caller's thread."""
        await in_its_thread(lambda: blocking_driver(_begun(self.owner)).execute_many(sql, rows))

    async def after_commit(self, ring: Ring) -> bool:
        """Call `ring` when the transaction has ended."""
        return _ring_at_commit(self.owner, ring)

    async def begin(self) -> None:
        """Do nothing: SQLAlchemy begins by itself."""

    async def commit(self) -> None:
        """Commit."""
        await in_its_thread(self.owner.commit)

    async def rollback(self) -> None:
        """Roll back."""
        await in_its_thread(self.owner.rollback)


class BorrowedAsync:
    """An `AsyncConnection` or `AsyncSession`."""

    def __init__(self, owner: AsyncConnection | AsyncSession) -> None:
        """Work in the transaction of `owner`."""
        self.owner = owner

    async def run(self, work: Callable[[Any], T]) -> T:
        """Call `work` with the connection of sqlite3, in the thread that aiosqlite keeps for it."""
        adapted = await self.owner.run_sync(_begun)
        return await _in_aiosqlite(adapted.driver_connection, work)

    async def execute(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Run a statement."""
        return await async_driver(await self._driver()).execute(sql, parameters)

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each of `rows`."""
        await async_driver(await self._driver()).execute_many(sql, rows)

    async def after_commit(self, ring: Ring) -> bool:
        """Call `ring` when the transaction has ended."""
        owner = self.owner
        inner = owner.sync_session if isinstance(owner, AsyncSession) else owner.sync_connection
        return inner is not None and _ring_at_commit(inner, ring)

    async def begin(self) -> None:
        """Do nothing: SQLAlchemy begins by itself."""

    async def commit(self) -> None:
        """Commit."""
        await self.owner.commit()

    async def rollback(self) -> None:
        """Roll back."""
        await self.owner.rollback()

    async def _driver(self) -> Any:  # noqa: ANN401 - whatever the driver has
        return await self.owner.run_sync(_driver_begun)


def _begun(owner: Connection | Session) -> Any:  # noqa: ANN401 - whatever the driver has
    """Return the DB-API connection of `owner`, in a transaction that SQLAlchemy knows of: else it would not commit."""
    return _connection_begun(owner).connection.dbapi_connection


def _driver_begun(owner: Connection | Session) -> Any:  # noqa: ANN401 - whatever the driver has
    """Return the asynchronous connection below the one of `_begun`, in a transaction that the database knows of."""
    connection = _connection_begun(owner)
    driver: Any = connection.connection.driver_connection
    if package_of(driver) == "asyncpg" and not driver.is_in_transaction():
        # asyncpg does not begin by itself: SQLAlchemy does that for it, at the first statement that goes through both
        connection.exec_driver_sql("select 1")
    return driver


def _connection_begun(owner: Connection | Session) -> Connection:
    connection = owner.connection() if isinstance(owner, Session) else owner
    if not connection.in_transaction():
        connection.begin()
    return connection


def _sqlite(driver: object) -> sqlite3.Connection:
    if isinstance(driver, sqlite3.Connection):
        return driver
    raise not_sqlite(driver)


async def _in_aiosqlite(driver: Any, work: Callable[[Any], T]) -> T:  # noqa: ANN401 - whatever the driver has
    if type(driver).__module__.partition(".")[0] != "aiosqlite":
        raise not_sqlite(driver)
    # aiosqlite has no public way to do more than one statement in its thread; SQLAlchemy's own dialect goes this way
    done: T = await driver._execute(work, driver._conn)  # noqa: SLF001
    return done


def _ring_at_commit(owner: Connection | Session, ring: Ring) -> bool:
    if not _tells_of_commits(owner):
        return False
    rings = _rings.get(owner)
    if rings is None:
        rings = _rings[owner] = []
        if isinstance(owner, Session):
            event.listen(owner, "after_transaction_end", _session_ended)
        else:
            event.listen(owner, "commit", _connection_commits)
            event.listen(owner, "rollback", _connection_rolled_back)
    loop = asyncio.get_running_loop()
    rings.append(ring if isinstance(owner, Session) else lambda: _ring_soon(loop, ring))
    return True


def _tells_of_commits(owner: Connection | Session) -> bool:
    """Whether SQLAlchemy tells when `owner` has committed.

    Of a connection it tells a moment before, which is better than nothing only where the database itself tells nobody.
    So it is with a session that joined the transaction of a connection, which is committed by somebody else.
    """
    connection = owner.bind if isinstance(owner, Session) else owner
    return not isinstance(connection, Connection) or connection.dialect.name == "sqlite"


def _session_ended(session: Session, transaction: SessionTransaction) -> None:
    # a savepoint ends in its parent; a ring after a rollback is one look too many, no more
    if transaction.parent is None:
        _ring_all(session)


def _connection_commits(connection: Connection) -> None:
    _ring_all(connection)


def _connection_rolled_back(connection: Connection) -> None:
    _rings.get(connection, []).clear()


def _ring_all(owner: object) -> None:
    rings = _rings.get(owner, [])
    due = list(rings)
    rings.clear()
    for ring in due:
        ring()


def _ring_soon(loop: asyncio.AbstractEventLoop, ring: Ring) -> None:
    def schedule() -> None:
        for delay in RING_AFTER:
            loop.call_later(delay, ring)

    # a loop that was closed has nobody left to wake
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(schedule)
