"""A caller's own open connection, whatever library it came through."""

from sqlite3 import Connection

from windlass.borrow.drivers import package_of, shown
from windlass.borrow.loan import Loan
from windlass.borrow.sqlite import BorrowedSqlite
from windlass.borrow.threads import BlockingConnection, BorrowedBlockingConnection
from windlass.core.errors import InvalidValue


def borrow(connection: object) -> Loan:
    """Return `connection` as a store can work with it; its library is imported only when the object comes from it."""
    if isinstance(connection, Connection):
        return BorrowedSqlite(connection)
    if isinstance(connection, BlockingConnection):
        return BorrowedBlockingConnection(connection)
    if (borrowed := _borrowed(connection)) is not None:
        return borrowed
    message = (
        "connection= takes an open connection of sqlite3, psycopg, psycopg2, asyncpg or Django, or a Connection, "
        f"Session, AsyncConnection or AsyncSession of SQLAlchemy, not {shown(connection)}"
    )
    raise InvalidValue(message)


def borrow_back(connection: object) -> Loan:
    """Return a connection that a store has lent as that store can work with it, in the event loop of both."""
    if package_of(connection) == "asyncpg":
        from windlass.borrow.asyncpg import BorrowedAsyncpg  # noqa: PLC0415 - as below

        return BorrowedAsyncpg(connection)
    return borrow(connection)


def _borrowed(connection: object) -> Loan | None:
    # the caller has the library that the object comes from, others need not
    match package_of(connection):
        case "sqlalchemy":
            from windlass.borrow.sqlalchemy import borrow_sqlalchemy  # noqa: PLC0415

            return borrow_sqlalchemy(connection)
        case "django":
            from windlass.borrow.django import borrow_django  # noqa: PLC0415

            return borrow_django(connection)
        case "psycopg":
            from windlass.borrow.psycopg import borrow_psycopg  # noqa: PLC0415

            return borrow_psycopg(connection)
        case "psycopg2":
            from windlass.borrow.psycopg2 import borrow_psycopg2  # noqa: PLC0415

            return borrow_psycopg2(connection)
        case "asyncpg":
            from windlass.borrow.asyncpg import borrow_asyncpg  # noqa: PLC0415

            return borrow_asyncpg(connection)
        case _:
            return None
