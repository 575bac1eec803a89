"""SQLAlchemy's connections and sessions, sync and async, lent to a store. Imported only when the caller uses them."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, SessionTransaction, scoped_session

from windlass.borrow.borrow import errand, in_its_thread
from windlass.core.errors import InvalidValue
from windlass.core.store import Borrowed

T = TypeVar("T")
Ring = Callable[[], None]

RING_AFTER: Final = (0.001, 0.005, 0.02)
"""Seconds after SQLAlchemy's `commit` event, which comes before the commit itself."""

_rings: WeakKeyDictionary[object, list[Ring]] = WeakKeyDictionary()
"""Whom to ring at the next commit, by connection or session; each is listened to once."""


def borrow_sqlalchemy(connection: object) -> Borrowed | None:
    """Return a connection or session of SQLAlchemy as a store can work with it; None for anything else of it."""
    match connection:
        case scoped_session() | async_scoped_session():
            return borrow_sqlalchemy(connection.registry())
        case Connection() | Session():
            return BorrowedSync(connection)
        case AsyncConnection() | AsyncSession():
            _refuse_blocking(connection)
            return BorrowedAsync(connection)
        case _:
            return None


class BorrowedSync:
    """A `Connection` or `Session`."""

    def __init__(self, owner: Connection | Session) -> None:
        """Work in the transaction of `owner`."""
        self._owner = owner

    async def run(self, work: Callable[[Any], T]) -> T:
        """Call `work` with the DB-API connection, in the caller's thread."""
        return await in_its_thread(lambda: work(_begun(self._owner)))

    def after_commit(self, ring: Ring) -> bool:
        """Call `ring` when the transaction has ended."""
        return _ring_at_commit(self._owner, ring)


class BorrowedAsync:
    """An `AsyncConnection` or `AsyncSession`."""

    def __init__(self, owner: AsyncConnection | AsyncSession) -> None:
        """Work in the transaction of `owner`."""
        self._owner = owner

    async def run(self, work: Callable[[Any], T]) -> T:
        """Call `work` with the driver's own connection, in the thread that the driver keeps for it."""
        adapted = await self._owner.run_sync(_begun)
        return await _in_its_thread(adapted.driver_connection, work)

    def after_commit(self, ring: Ring) -> bool:
        """Call `ring` when the transaction has ended."""
        owner = self._owner
        inner = owner.sync_session if isinstance(owner, AsyncSession) else owner.sync_connection
        return inner is not None and _ring_at_commit(inner, ring)


def _begun(owner: Connection | Session) -> Any:  # noqa: ANN401 - whatever the driver has
    """Return the DB-API connection of `owner`, in a transaction that SQLAlchemy knows of: else it would not commit."""
    connection = owner.connection() if isinstance(owner, Session) else owner
    if not connection.in_transaction():
        connection.begin()
    return connection.connection.dbapi_connection


async def _in_its_thread(driver: Any, work: Callable[[Any], T]) -> T:  # noqa: ANN401 - whatever the driver has
    if type(driver).__module__.partition(".")[0] != "aiosqlite":
        message = f"connection= goes through aiosqlite here, not {type(driver).__module__}: use the engine of the store"
        raise InvalidValue(message)
    # aiosqlite has no public way to do more than one statement in its thread; SQLAlchemy's own dialect goes this way
    done: T = await driver._execute(work, driver._conn)  # noqa: SLF001
    return done


def _ring_at_commit(owner: Connection | Session, ring: Ring) -> bool:
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


def _refuse_blocking(connection: object) -> None:
    if errand.get() is not None:
        message = (
            f"an {type(connection).__name__} belongs to an event loop, so it cannot be used with the blocking client: "
            "use windlass.connect, or a Session"
        )
        raise InvalidValue(message)
