"""A caller's own open connection, whatever library it came through."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from sqlite3 import Connection
from typing import Any, Protocol, TypeVar

from windlass.core.errors import InvalidValue
from windlass.core.store import Borrowed

T = TypeVar("T")


class Errand(Protocol):
    """Carries work to the thread that a connection belongs to."""

    def __call__(self, work: Callable[[], T]) -> Awaitable[T]:
        """Return what `work` returns there."""
        ...


errand: ContextVar[Errand | None] = ContextVar("windlass_errand", default=None)
"""Set by the blocking client: its loop runs in a thread of its own, and the connection belongs to the caller's."""


def borrow(connection: object) -> Borrowed:
    """Return `connection` as a store can work with it; SQLAlchemy is imported only when the object comes from it."""
    if isinstance(connection, Connection):
        return BorrowedSqlite(connection)
    if any(cls.__module__.partition(".")[0] == "sqlalchemy" for cls in type(connection).__mro__):
        from windlass.borrow.sqlalchemy import borrow_sqlalchemy  # noqa: PLC0415 - the caller has it, others need not

        if (borrowed := borrow_sqlalchemy(connection)) is not None:
            return borrowed
    message = (
        f"connection= takes an open sqlite3.Connection, or a SQLAlchemy Connection, Session, AsyncConnection or "
        f"AsyncSession, not {type(connection).__module__}.{type(connection).__qualname__}"
    )
    raise InvalidValue(message)


async def in_its_thread(work: Callable[[], T]) -> T:
    """Call `work` in the thread of whoever made the call: here, or where the blocking client waits."""
    carry = errand.get()
    return work() if carry is None else await carry(work)


class BorrowedSqlite:
    """A connection of the interpreter's own `sqlite3`, which refuses every thread but its own."""

    def __init__(self, connection: Connection) -> None:
        """Work on `connection`."""
        self._connection = connection

    async def run(self, work: Callable[[Any], T]) -> T:
        """Call `work` with the connection."""
        return await in_its_thread(lambda: work(self._connection))

    def after_commit(self, ring: Callable[[], None]) -> bool:  # noqa: ARG002 - there is no hook to give it to
        """Return False: sqlite3 tells nobody of a commit."""
        return False
