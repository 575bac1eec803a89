"""SQLite's errors in our words."""

import errno
import sqlite3
from pathlib import Path

from windlass.core.errors import StoreCorrupt, StoreFull, StoreReadOnly, StoreUnavailable, WindlassError

_PRIMARY = 0xFF


def translate(error: Exception, path: Path) -> WindlassError:
    """Return what `error` means for a caller, and what to do about it, with `error` as its cause."""
    if isinstance(error, WindlassError):
        return error
    fault = _fault(error, path)
    # without its frames, which would keep a connection open for as long as somebody keeps the error
    fault.__cause__ = error.with_traceback(None)
    return fault


def _fault(error: Exception, path: Path) -> WindlassError:
    if isinstance(error, OSError):
        return _of_the_system(error, path)
    if isinstance(error, UnicodeDecodeError):
        # what SQLite wanted to say, or to read, is text no longer
        return _damaged(error, path)
    if not isinstance(error, sqlite3.Error):
        return StoreUnavailable(f"the store at {path} failed: {error!r}")
    code = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:
        # the index of the log could not grow
        return _full(path)
    match code & _PRIMARY:
        case sqlite3.SQLITE_FULL:
            return _full(path)
        case sqlite3.SQLITE_READONLY:
            return _read_only(path)
        case sqlite3.SQLITE_NOTADB:
            return not_a_database(path)
        case sqlite3.SQLITE_CORRUPT:
            return _damaged(error, path)
        case sqlite3.SQLITE_CANTOPEN:
            return _no_way_there(error, path)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreUnavailable(
                f"{path} is held by a writer outside of Windlass ({error}): end its transaction", retryable=True
            )
        case sqlite3.SQLITE_IOERR:
            return StoreUnavailable(f"the disk under {path} failed ({error}): look at the system's log", retryable=True)
        case _:
            return StoreUnavailable(f"the store at {path} failed: {error}")


def not_a_database(path: Path) -> StoreCorrupt:
    """Return the error for a file of another format."""
    return StoreCorrupt(f"{path} is not a SQLite database: check the path in the URL; the file was left as it is")


def _damaged(error: Exception, path: Path) -> StoreCorrupt:
    return StoreCorrupt(
        f"{path} is damaged ({error}): stop all its processes and restore it from a backup, or "
        "rescue what is left with `sqlite3 FILE .recover`; the file was left as it is"
    )


def _of_the_system(error: OSError, path: Path) -> WindlassError:
    """Return what a file beside the database met: the system says in other words what SQLite would say."""
    match error.errno:
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return _read_only(path)
        case errno.ENOSPC | errno.EDQUOT:
            return _full(path)
        case _:
            return _no_way_there(error, path)


def _read_only(path: Path) -> StoreReadOnly:
    return StoreReadOnly(f"{path} cannot be written: give this user write access to the file and its folder")


def _full(path: Path) -> StoreFull:
    return StoreFull(
        f"no room left for {path}: free disk space (or raise max_page_count); nothing was written, "
        "the same call will work then",
        retryable=True,
    )


def _no_way_there(error: Exception, path: Path) -> StoreUnavailable:
    return StoreUnavailable(
        f"{path} cannot be opened ({error}): check that its folder exists, and that this user may read and write both"
    )
