"""The connection that is lent: begun and ended by its owner, used by whoever has it, and clean for the next one."""

import sqlite3
from typing import Any, Final, NoReturn
from weakref import WeakSet

from windlass.core.errors import InvalidValue
from windlass.core.topics import Topic

_NOT_YOURS: Final = (
    "this transaction is committed at the end of its block: leave the block, or raise an exception to roll it back"
)
_SPOILS: Final = {
    sqlite3.SQLITE_CREATE_TEMP_INDEX,
    sqlite3.SQLITE_CREATE_TEMP_TABLE,
    sqlite3.SQLITE_CREATE_TEMP_TRIGGER,
    sqlite3.SQLITE_CREATE_TEMP_VIEW,
    sqlite3.SQLITE_PRAGMA,
}
_OUR_PRAGMAS: Final = {"database_list", "wal_autocheckpoint"}


class LentConnection(sqlite3.Connection):
    """A connection whose transaction is not for its user to end; `news` is what rings after the commit."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as sqlite3.Connection takes them
        """Connect."""
        self._lent = False
        self._cursors: WeakSet[sqlite3.Cursor] = WeakSet()
        self.news: set[Topic] = set()
        self.spoilt = False
        """Whether a user left something behind that the next one would meet."""
        super().__init__(*args, **kwargs)
        self.set_authorizer(self._judge)

    def begin(self) -> None:
        """Take the write lock, and be like a fresh connection to whoever gets it."""
        self.isolation_level = "DEFERRED"
        self.row_factory = None
        self.text_factory = str
        self.news.clear()
        self.execute("begin immediate")
        self._lent = True

    def end(self, *, commit: bool) -> None:
        """End the transaction, and every look that was left unfinished: it would hold on to this moment."""
        self._lent = False
        for cursor in list(self._cursors):
            cursor.close()
        if commit:
            super().commit()
        else:
            super().rollback()

    def discard(self) -> None:
        """Close, whatever state it is in."""
        self._lent = False
        super().close()

    def cursor(self, factory: Any = sqlite3.Cursor) -> Any:  # noqa: ANN401 - as sqlite3.Connection gives it
        """Return a cursor."""
        cursor = super().cursor(factory)
        self._cursors.add(cursor)
        return cursor

    # sqlite3's own short forms would make cursors that nobody knows of

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:  # noqa: ANN401 - as sqlite3 takes them
        """Run a statement."""
        cursor: sqlite3.Cursor = self.cursor()
        return cursor.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any) -> sqlite3.Cursor:  # noqa: ANN401 - as sqlite3 takes them
        """Run a statement with each of several parameters."""
        cursor: sqlite3.Cursor = self.cursor()
        return cursor.executemany(sql, parameters)

    def commit(self) -> NoReturn:
        """Refuse."""
        raise InvalidValue(_NOT_YOURS)

    def rollback(self) -> NoReturn:
        """Refuse."""
        raise InvalidValue(_NOT_YOURS)

    def close(self) -> NoReturn:
        """Refuse."""
        raise InvalidValue(_NOT_YOURS)

    def _judge(self, action: int, first: str | None, *_: str | None) -> int:
        """Refuse the end of the transaction by a statement, too; called by SQLite before it runs one."""
        if not self._lent:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_TRANSACTION:
            return sqlite3.SQLITE_DENY
        if action in _SPOILS and first not in _OUR_PRAGMAS:
            self.spoilt = True
        return sqlite3.SQLITE_OK
