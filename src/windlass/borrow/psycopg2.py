"""psycopg2, which writes the values into the statement by itself and has a style of its own for where they go."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from psycopg2.extensions import TRANSACTION_STATUS_IDLE, connection, cursor

from windlass.borrow.drivers import NO_TRANSACTION, OnPostgres, Rows, arrays
from windlass.borrow.errand import in_its_thread
from windlass.borrow.loan import Loan
from windlass.core.errors import InvalidValue

_COMMENT: Final = re.compile(r"--[^\n]*")
_PARAMETER: Final = re.compile(r"\$(\d+)")


def borrow_psycopg2(owner: object) -> Loan | None:
    """Return a connection of psycopg2 as a store can work with it; None for anything else of it."""
    return BorrowedPsycopg2(owner) if isinstance(owner, connection) else None


@cache
def in_its_style(sql: str) -> str:
    """Return one of our statements with `%(p1)s` for `$1`.

    Without its comments: they may name a parameter too, and its value must not be written there.
    """
    bare = _COMMENT.sub("", sql)
    # where there are no values psycopg2 leaves the text as it is
    return _PARAMETER.sub(r"%(p\1)s", bare.replace("%", "%%")) if _PARAMETER.search(bare) else bare


class Psycopg2:
    """Statements on a `connection`."""

    def __init__(self, owner: connection) -> None:
        """Work in its transaction."""
        self._owner = owner

    def execute(self, sql: str, parameters: Sequence[object]) -> Rows:
        """Run a statement."""
        _check_transaction(self._owner)
        # a cursor of the plain kind, whatever kind the caller's connection makes
        with self._owner.cursor(cursor_factory=cursor) as mine:
            mine.execute(in_its_style(sql), _named(parameters))
            return [] if mine.description is None else [_plain(row) for row in mine.fetchall()]

    def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each of `rows`."""
        _check_transaction(self._owner)
        with self._owner.cursor(cursor_factory=cursor) as mine:
            mine.executemany(in_its_style(sql), [_named(row) for row in rows])


class BorrowedPsycopg2(OnPostgres):
    """A `connection`."""

    owner: connection

    async def execute(self, sql: str, parameters: Sequence[object] = ()) -> Rows:
        """Run a statement, in the caller's thread."""
        return await in_its_thread(lambda: Psycopg2(self.owner).execute(sql, parameters))

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each of `rows`, in the caller's thread."""
        await in_its_thread(lambda: Psycopg2(self.owner).execute_many(sql, rows))

    async def begin(self) -> None:
        """Do nothing: the first statement begins, and in autocommit mode it is refused."""

    async def commit(self) -> None:
        """Commit."""
        await in_its_thread(self.owner.commit)

    async def rollback(self) -> None:
        """Roll back."""
        await in_its_thread(self.owner.rollback)


def _check_transaction(owner: connection) -> None:
    if owner.autocommit and owner.info.transaction_status == TRANSACTION_STATUS_IDLE:
        raise InvalidValue(NO_TRANSACTION)


def _named(parameters: Sequence[object]) -> dict[str, object]:
    return {f"p{number}": value for number, value in enumerate(arrays(parameters), 1)}


def _plain(row: Sequence[Any]) -> list[Any]:
    return [value.tobytes() if isinstance(value, memoryview) else value for value in row]
