"""SQLite's errors in our words."""

import sqlite3
from pathlib import Path

from windlass.core.errors import StoreCorrupt, StoreFull, StoreReadOnly, StoreUnavailable, WindlassError

_PRIMARY = 0xFF


def translate(error: Exception, path: Path) -> WindlassError:
    """Return what `error` means for a caller, and what to do about it."""
    if isinstance(error, WindlassError):
        return error
    if not isinstance(error, sqlite3.Error):
        return StoreUnavailable(f"the store at {path} failed: {error!r}")
    match getattr(error, "sqlite_errorcode", 0) & _PRIMARY:
        case sqlite3.SQLITE_FULL:
            return StoreFull(
                f"no room left for {path}: free disk space (or raise max_page_count); nothing was written, "
                "the same call will work then",
                retryable=True,
            )
        case sqlite3.SQLITE_READONLY:
            return StoreReadOnly(f"{path} cannot be written: give this user write access to the file and its folder")
        case sqlite3.SQLITE_NOTADB:
            return StoreCorrupt(
                f"{path} is not a SQLite database: check the path in the URL; the file was left as it is"
            )
        case sqlite3.SQLITE_CORRUPT:
            return StoreCorrupt(
                f"{path} is damaged ({error}): stop all its processes and restore it from a backup, or "
                "rescue what is left with `sqlite3 FILE .recover`; the file was left as it is"
            )
        case sqlite3.SQLITE_CANTOPEN:
            return StoreUnavailable(f"{path} cannot be opened ({error}): check that its folder exists and is writable")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreUnavailable(f"{path} is held by a writer outside of Windlass ({error})", retryable=True)
        case sqlite3.SQLITE_IOERR:
            return StoreUnavailable(f"the disk under {path} failed ({error}): look at the system's log", retryable=True)
        case _:
            return StoreUnavailable(f"the store at {path} failed: {error}")
