"""Seam for a caller's own transaction: the connection that the caller brings, and the writes of a store inside it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from windlass.core.ids import JobId
from windlass.core.job import Enqueued, PreparedJob, Token
from windlass.core.requests import Settlement, SettleResult

T = TypeVar("T")


class BorrowedConnection(Protocol):
    """Connection that the caller opened, by any supported library.

    A store uses the methods of its own database; every call raises `InvalidValue` on a connection of another one.
    """

    @property
    def owner(self) -> object:
        """The object that the caller gave."""
        ...

    def run(self, work: Callable[[Any], T]) -> Awaitable[T]:
        """Call `work` with the connection of `sqlite3`, in the thread that it belongs to."""
        ...

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Awaitable[Sequence[Sequence[Any]]]:
        """Run one statement of Postgres, with $1, $2, ..., in the caller's transaction; return its rows."""
        ...

    def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> Awaitable[None]:
        """Run one statement of Postgres for each of many rows of parameters."""
        ...

    def after_commit(self, ring: Callable[[], None]) -> Awaitable[bool]:
        """Have `ring` called, in any thread, when the caller has committed; False when this library cannot tell.

        A rollback may call it as well: the waiters then look once without effect.
        """
        ...


class JoinedTransaction(Protocol):
    """Writes of a store inside a caller's own transaction: they happen if and only if it commits."""

    async def fence(self, claims: Sequence[tuple[JobId, Token]]) -> list[bool]:
        """Return which claims still hold, and keep these jobs from being rescued until the transaction ends.

        It is meant to be the transaction's first statement.
        """
        ...

    async def enqueue(self, jobs: Sequence[PreparedJob]) -> list[Enqueued]:
        """Enqueue jobs, as `Store.enqueue`."""
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> list[SettleResult]:
        """Write how claims ended, as `Store.settle`."""
        ...

    async def settle_last(self, settlements: Sequence[Settlement]) -> list[SettleResult]:
        """Write how claims ended as the last step before the commit, so that `was_committed` can read it."""
        ...

    async def was_committed(self, error: BaseException) -> bool:
        """Return whether a transaction that ended by `settle_last` was committed, though its commit raised `error`.

        If it was not, it never will be. Raises `OutcomeUnknown` when the store does not answer in time.
        """
        ...
