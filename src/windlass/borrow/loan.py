"""A borrowed connection whose transaction is begun and ended for its caller."""

from typing import Protocol

from windlass.core.joined_transaction import BorrowedConnection


class Loan(BorrowedConnection, Protocol):
    """What `ctx.transaction(connection)` works in: from `begin` to `commit` or `rollback` there is one transaction."""

    async def begin(self) -> None:
        """Begin, where the library does not begin by itself; `InvalidValue` when somebody else is to end it."""
        ...

    async def commit(self) -> None:
        """Commit."""
        ...

    async def rollback(self) -> None:
        """Roll back."""
        ...
