"""psycopg 3, blocking and asynchronous; of a caller's settings only the transaction matters here."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Final

from psycopg import AsyncConnection, AsyncRawCursor, BaseConnection, Connection, RawCursor
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row

from windlass.borrow.drivers import NO_TRANSACTION, OPEN_ALREADY, OnPostgres, Rows, arrays
from windlass.borrow.errand import in_its_thread, refuse_blocking
from windlass.borrow.loan import Loan
from windlass.core.errors import InvalidValue

_PIPELINE: Final = (
    "connection= is in pipeline mode, where nothing is answered before all is sent: leave `with connection.pipeline()` "
    "first, and call within the same transaction"
)


def borrow_psycopg(connection: object) -> Loan | None:
    """Return a connection of psycopg as a store can work with it; None for anything else of it."""
    match connection:
        case AsyncConnection():
            refuse_blocking("psycopg.AsyncConnection", "a psycopg.Connection")
            return BorrowedAsyncPsycopg(connection)
        case Connection():
            return BorrowedPsycopg(connection)
        case _:
            return None


class Psycopg:
    """Statements on a `Connection`."""

    def __init__(self, connection: Connection[Any]) -> None:
        """Work in its transaction."""
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[object]) -> Rows:
        """Run a statement."""
        _check_transaction(self._connection)
        with RawCursor(self._connection, row_factory=tuple_row) as cursor:
            # in binary: a caller may have chosen how text is read, Django does so with times
            cursor.execute(sql.encode(), arrays(parameters), binary=True)
            return [] if cursor.description is None else cursor.fetchall()

    def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each of `rows`."""
        _check_transaction(self._connection)
        with RawCursor(self._connection, row_factory=tuple_row) as cursor:
            cursor.executemany(sql.encode(), [arrays(row) for row in rows])


class AsyncPsycopg:
    """Statements on an `AsyncConnection`."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        """Work in its transaction."""
        self._connection = connection

    async def execute(self, sql: str, parameters: Sequence[object]) -> Rows:
        """Run a statement."""
        _check_transaction(self._connection)
        async with AsyncRawCursor(self._connection, row_factory=tuple_row) as cursor:
            await cursor.execute(sql.encode(), arrays(parameters), binary=True)
            return [] if cursor.description is None else await cursor.fetchall()

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each of `rows`."""
        _check_transaction(self._connection)
        async with AsyncRawCursor(self._connection, row_factory=tuple_row) as cursor:
            await cursor.executemany(sql.encode(), [arrays(row) for row in rows])


class BorrowedPsycopg(OnPostgres):
    """A `Connection`."""

    owner: Connection[Any]
    _block: AbstractContextManager[Any] | None = None

    async def execute(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Run a statement, in the caller's thread."""
        return await in_its_thread(lambda: Psycopg(self.owner).execute(sql, parameters))

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each of `rows`, in the caller's thread."""
        await in_its_thread(lambda: Psycopg(self.owner).execute_many(sql, rows))

    async def begin(self) -> None:
        """Begin where the first statement does not."""
        if _must_begin(self.owner):
            self._block = self.owner.transaction()
            await in_its_thread(self._block.__enter__)

    async def commit(self) -> None:
        """Commit."""
        block = self._block
        await in_its_thread(self.owner.commit if block is None else lambda: block.__exit__(None, None, None))

    async def rollback(self) -> None:
        """Roll back."""
        block = self._block
        await in_its_thread(self.owner.rollback if block is None else lambda: block.__exit__(Undone, Undone(), None))


class BorrowedAsyncPsycopg(OnPostgres):
    """An `AsyncConnection`."""

    owner: AsyncConnection[Any]
    _block: AbstractAsyncContextManager[Any] | None = None

    async def execute(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Run a statement."""
        return await AsyncPsycopg(self.owner).execute(sql, parameters)

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each of `rows`."""
        await AsyncPsycopg(self.owner).execute_many(sql, rows)

    async def begin(self) -> None:
        """Begin where the first statement does not."""
        if _must_begin(self.owner):
            self._block = self.owner.transaction()
            await self._block.__aenter__()

    async def commit(self) -> None:
        """Commit."""
        await (self.owner.commit() if self._block is None else self._block.__aexit__(None, None, None))

    async def rollback(self) -> None:
        """Roll back."""
        await (self.owner.rollback() if self._block is None else self._block.__aexit__(Undone, Undone(), None))


class Undone(Exception):
    """Makes psycopg's own block roll back."""


def _check_transaction(connection: BaseConnection[Any]) -> None:
    if connection.info.pipeline_status is not PipelineStatus.OFF:
        raise InvalidValue(_PIPELINE)
    if connection.autocommit and connection.info.transaction_status is TransactionStatus.IDLE:
        raise InvalidValue(NO_TRANSACTION)


def _must_begin(connection: BaseConnection[Any]) -> bool:
    if not connection.autocommit:
        return False
    if connection.info.transaction_status is not TransactionStatus.IDLE:
        raise InvalidValue(OPEN_ALREADY)
    return True
