"""Damaged records of a SQLite file: what reads them, and the log of those that are left out.

The tables are STRICT, so a column holds values of its type alone, but a text may be bytes that are not UTF-8. The
driver then fails the whole fetch. What fails for a reason that may be damage is done again `with_any_text`: such a text
is read as an `Unreadable` then, and the rows around it are read as they are.
"""

import logging
import sqlite3
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from windlass.core.errors import WindlassError
from windlass.kit.damage import DECODE_ERRORS, DamageLog, Unreadable, read_each, shown

T = TypeVar("T")

logger = logging.getLogger("windlass.sqlite")

LOG: Final = DamageLog(logger)
_NOT_UTF8: Final = "Could not decode to UTF-8"
"""How the driver begins what it says of a text that it cannot decode; it has no error code for it."""


@contextmanager
def with_any_text(connection: Any) -> Generator[None]:  # noqa: ANN401 - any DB-API connection
    """Read a text that is not UTF-8 as an `Unreadable`."""
    factory = connection.text_factory
    connection.text_factory = _text
    try:
        yield
    finally:
        connection.text_factory = factory


def _text(stored: bytes) -> str | Unreadable:
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return Unreadable(f"is not UTF-8: {shown(stored)}")


def may_be_damage(error: Exception) -> bool:
    """Whether a damaged record can have caused `error`."""
    if isinstance(error, WindlassError):
        return False
    if isinstance(error, sqlite3.OperationalError):
        return str(error).startswith(_NOT_UTF8)
    # a counter at the end of its range becomes a REAL, which a STRICT table refuses
    return isinstance(error, (sqlite3.IntegrityError, *DECODE_ERRORS))


def has_unreadable(row: Iterable[object]) -> bool:
    """Whether a text of `row` is not UTF-8."""
    return Unreadable in map(type, row)


def readable_rows(rows: Iterable[tuple[Any, ...]], read: Callable[[tuple[Any, ...]], T], what: str) -> list[T]:
    """Return what each row reads as; `what` names a row that is left out in the log."""
    return read_each(rows, read, lambda why: LOG.log(f"{what} is damaged and left out: %s", why))
