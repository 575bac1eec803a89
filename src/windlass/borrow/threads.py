"""A connection that belongs to an event loop, for a handler that runs in a thread."""

from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from windlass.borrow.drivers import NO_TRANSACTION, OPEN_ALREADY, OnPostgres, Rows, package_of
from windlass.borrow.errand import in_its_thread
from windlass.core.errors import InvalidValue

T = TypeVar("T")


class Carry(Protocol):
    """Does work in the event loop of a connection."""

    def __call__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what `work` returns there, and wait for it."""
        ...


def for_threads(connection: Any, carry: Carry) -> Any:  # noqa: ANN401 - the connection of whichever driver
    """Return `connection` as a thread without an event loop can use it."""
    return BlockingConnection(connection, carry) if package_of(connection) == "asyncpg" else connection


class BlockingConnection:
    """The calls of an asyncpg connection that nearly everybody needs, without `await`."""

    def __init__(self, connection: Any, carry: Carry) -> None:  # noqa: ANN401 - asyncpg need not be imported for this
        """Call `connection` by `carry`."""
        self._connection = connection
        self._carry = carry

    def execute(self, query: str, *args: object, timeout: float | None = None) -> str:
        """Run a statement, or without values several; return what Postgres says was done."""
        status: str = self._carry(lambda: self._connection.execute(query, *args, timeout=timeout))
        return status

    def executemany(self, query: str, args: Iterable[Sequence[object]], *, timeout: float | None = None) -> None:
        """Run a statement for each of `args`."""
        self._carry(lambda: self._connection.executemany(query, args, timeout=timeout))

    def fetch(self, query: str, *args: object, timeout: float | None = None) -> list[Any]:
        """Return the rows of a statement."""
        rows: list[Any] = self._carry(lambda: self._connection.fetch(query, *args, timeout=timeout))
        return rows

    def fetchrow(self, query: str, *args: object, timeout: float | None = None) -> Any:  # noqa: ANN401 - a record
        """Return the first row of a statement, or None."""
        return self._carry(lambda: self._connection.fetchrow(query, *args, timeout=timeout))

    def fetchval(self, query: str, *args: object, column: int = 0, timeout: float | None = None) -> Any:  # noqa: ANN401
        """Return one value of the first row of a statement, or None."""
        return self._carry(lambda: self._connection.fetchval(query, *args, column=column, timeout=timeout))

    def is_in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._connection.is_in_transaction())

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Undo what is done within if it raises, and go on with the rest: a savepoint."""
        savepoint = self._connection.transaction()
        self._carry(savepoint.start)
        try:
            yield
        except BaseException:
            self._carry(savepoint.rollback)
            raise
        self._carry(savepoint.commit)


class BorrowedBlockingConnection(OnPostgres):
    """A `BlockingConnection`, which is given back to Windlass."""

    owner: BlockingConnection

    async def execute(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Run a statement, from the caller's thread."""
        self._check_transaction()
        return await in_its_thread(lambda: self.owner.fetch(sql, *parameters))

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each of `rows`, from the caller's thread."""
        self._check_transaction()
        await in_its_thread(lambda: self.owner.executemany(sql, rows))

    async def begin(self) -> None:
        """Refuse: it is in the transaction that it was given for."""
        raise InvalidValue(OPEN_ALREADY)

    async def commit(self) -> None:
        """Do nothing."""

    async def rollback(self) -> None:
        """Do nothing."""

    def _check_transaction(self) -> None:
        if not self.owner.is_in_transaction():
            raise InvalidValue(NO_TRANSACTION)
