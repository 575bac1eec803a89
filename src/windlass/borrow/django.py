"""Django's connections: `django.db.connection`, or one of `django.db.connections`."""

from collections.abc import Callable, Sequence
from sqlite3 import Connection
from typing import Any, TypeVar

from django.core.exceptions import SynchronousOnlyOperation
from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.connection import ConnectionProxy

from windlass.borrow.drivers import OPEN_ALREADY, Rows, blocking_driver, not_sqlite
from windlass.borrow.errand import in_its_thread
from windlass.borrow.loan import Loan
from windlass.core.errors import InvalidValue

T = TypeVar("T")


def borrow_django(connection: object) -> Loan | None:
    """Return a connection of Django as a store can work with it; None for anything else of it."""
    return BorrowedDjango(connection) if isinstance(connection, BaseDatabaseWrapper | ConnectionProxy) else None


class BorrowedDjango:
    """A connection of Django, each thread of which has its own: it is looked at in the caller's thread alone."""

    def __init__(self, owner: Any) -> None:  # noqa: ANN401 - the connection itself, or what stands for each thread's own
        """Work in the transaction of `owner`."""
        self.owner = owner
        self._atomic: transaction.Atomic | None = None

    async def run(self, work: Callable[[Any], T]) -> T:
        """Call `work` with the connection of sqlite3."""
        return await self._there(lambda: work(_sqlite(self._driver())))

    async def execute(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Run a statement."""
        return await self._there(lambda: blocking_driver(self._driver()).execute(sql, parameters))

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each of `rows`."""
        await self._there(lambda: blocking_driver(self._driver()).execute_many(sql, rows))

    async def after_commit(self, ring: Callable[[], None]) -> bool:
        """Call `ring` when the outermost block of `transaction.atomic()` has committed."""
        return await self._there(lambda: self._ring_after(ring))

    async def begin(self) -> None:
        """Begin a block of `transaction.atomic()`, the outermost."""
        await self._there(self._begin)

    async def commit(self) -> None:
        """Leave the block."""
        await self._there(self._leave)

    async def rollback(self) -> None:
        """Leave the block, undoing all of it."""
        await self._there(lambda: self._leave(undo=True))

    async def _there(self, work: Callable[[], T]) -> T:
        try:
            return await in_its_thread(work)
        except SynchronousOnlyOperation as error:
            message = (
                "a connection of Django cannot be used in a thread that runs an event loop: use windlass.connect_sync "
                "there where your own queries run, as in a function that sync_to_async calls, or a `def` handler"
            )
            raise InvalidValue(message) from error

    def _driver(self) -> Any:  # noqa: ANN401 - whatever the driver has
        self.owner.ensure_connection()
        return self.owner.connection

    def _ring_after(self, ring: Callable[[], None]) -> bool:
        if not self.owner.in_atomic_block:
            return False
        transaction.on_commit(ring, using=self.owner.alias)
        return True

    def _begin(self) -> None:
        atomic = transaction.atomic(using=self.owner.alias, durable=True)
        try:
            atomic.__enter__()
        except RuntimeError as error:
            raise InvalidValue(OPEN_ALREADY) from error
        self._atomic = atomic

    def _leave(self, *, undo: bool = False) -> None:
        atomic, self._atomic = self._atomic, None
        if atomic is not None:
            if undo:
                transaction.set_rollback(True, using=self.owner.alias)
            atomic.__exit__(None, None, None)


def _sqlite(driver: object) -> Connection:
    if isinstance(driver, Connection):
        return driver
    raise not_sqlite(driver)
