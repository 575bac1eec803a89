"""The interpreter's own `sqlite3`."""

from collections.abc import Callable, Sequence
from sqlite3 import Connection
from typing import Any, NoReturn, TypeVar

from windlass.borrow.drivers import not_postgres
from windlass.borrow.errand import in_its_thread

T = TypeVar("T")


class BorrowedSqlite:
    """A connection of the interpreter's own `sqlite3`, which refuses every thread but its own."""

    def __init__(self, owner: Connection) -> None:
        """Work on `owner`."""
        self.owner = owner

    async def run(self, work: Callable[[Any], T]) -> T:
        """Call `work` with the connection."""
        return await in_its_thread(lambda: work(self.owner))

    async def execute(self, sql: str, parameters: Sequence[object] = ()) -> NoReturn:  # noqa: ARG002 - there is none to run
        """Refuse."""
        raise not_postgres(self.owner)

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> NoReturn:  # noqa: ARG002 - as above
        """Refuse."""
        raise not_postgres(self.owner)

    async def after_commit(self, ring: Callable[[], None]) -> bool:  # noqa: ARG002 - there is no hook to give it to
        """Return False: sqlite3 tells nobody of a commit."""
        return False

    async def begin(self) -> None:
        """Do nothing: the first write begins."""

    async def commit(self) -> None:
        """Commit."""
        await in_its_thread(self.owner.commit)

    async def rollback(self) -> None:
        """Roll back."""
        await in_its_thread(self.owner.rollback)
