"""asyncpg: a connection, or what its pool gives out."""

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import asyncpg
from asyncpg.pool import PoolConnectionProxy
from asyncpg.transaction import Transaction

from windlass.borrow.drivers import NO_TRANSACTION, OPEN_ALREADY, OnPostgres, Rows
from windlass.borrow.errand import refuse_blocking
from windlass.borrow.loan import Loan
from windlass.core.errors import InvalidValue

Connection: TypeAlias = "asyncpg.Connection[Any] | PoolConnectionProxy[Any]"


def borrow_asyncpg(connection: object) -> Loan | None:
    """Return a connection of asyncpg as a store can work with it; None for anything else of it."""
    if isinstance(connection, asyncpg.Connection | PoolConnectionProxy):
        refuse_blocking("asyncpg.Connection", "a connection of psycopg")
        return BorrowedAsyncpg(connection)
    return None


class Asyncpg:
    """Statements on a connection."""

    def __init__(self, connection: Connection) -> None:
        """Work in its transaction."""
        self._connection = connection

    async def execute(self, sql: str, parameters: Sequence[object]) -> Rows:
        """Run a statement."""
        self._check_transaction()
        # records of the plain kind, whatever kind the caller's connection makes
        rows = await self._connection.fetch(sql, *parameters, record_class=asyncpg.Record)
        return cast("Rows", rows)

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each of `rows`."""
        self._check_transaction()
        await self._connection.executemany(sql, rows)

    def _check_transaction(self) -> None:
        if self._connection.is_closed():
            message = "connection= is closed"
            raise InvalidValue(message)
        if not self._connection.is_in_transaction():
            raise InvalidValue(NO_TRANSACTION)


class BorrowedAsyncpg(OnPostgres):
    """A connection of asyncpg."""

    owner: Connection
    _transaction: Transaction | None = None

    async def execute(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Run a statement."""
        return await Asyncpg(self.owner).execute(sql, parameters)

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each of `rows`."""
        await Asyncpg(self.owner).execute_many(sql, rows)

    async def begin(self) -> None:
        """Begin a transaction."""
        if self.owner.is_in_transaction():
            raise InvalidValue(OPEN_ALREADY)
        transaction = self.owner.transaction()
        await transaction.start()
        self._transaction = transaction

    async def commit(self) -> None:
        """Commit what was begun here."""
        if self._transaction is not None:
            await self._transaction.commit()

    async def rollback(self) -> None:
        """Roll back what was begun here."""
        if self._transaction is not None:
            await self._transaction.rollback()
