"""Proof that a server has ended: while it lives it holds a lock on a file of its own, and the kernel frees it.

A file that is there and whose lock is free was left behind by a process that ended. Where there is no file there is no
proof: whoever leaves, and whoever closes the store without, takes the file away first.
"""

import fcntl
import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

from windlass.stores.sqlite.queries import server_records

_MARK: Final = "-alive-"
_held: Final[set[int]] = set()


class AliveFiles:
    """The files of the servers of one store; those of this process are held through it."""

    def __init__(self, database: Path) -> None:
        """Keep the files beside `database`."""
        self._folder = database.parent
        self._prefix = f"{database.name}{_MARK}"
        self._mine: dict[str, int] = {}

    def hold(self, server_id: str) -> None:
        """Show that a server of this process lives, from now until it is let go or the process ends."""
        if server_id not in self._mine:
            file = _make_held(self._path(server_id))
            _held.add(file)
            self._mine[server_id] = file

    def let_go(self, server_id: str) -> None:
        """Take the file of a server of this process away; harmless when it has none."""
        file = self._mine.pop(server_id, None)
        if file is None:
            return
        path = self._path(server_id)
        with suppress(FileNotFoundError):
            # another door may have made it anew for the same server
            if os.path.samestat(os.fstat(file), path.stat()):
                path.unlink()
        _held.discard(file)
        os.close(file)

    def ended(self, cursor: sqlite3.Cursor) -> list[str]:
        """Return the ids of registered servers whose process, on this machine, has ended."""
        here = socket.gethostname()
        return [
            server.id for server in server_records(cursor) if server.host == here and _is_free(self._path(server.id))
        ]

    def prune_files(self, cursor: sqlite3.Cursor) -> None:
        """Take away what processes left behind whose servers are registered no more."""
        kept = {self._path(server.id) for server in server_records(cursor)}
        for path in self._left():
            if path not in kept and _is_free(path):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Take the files of this process away: a store that was closed proves nothing."""
        for server_id in list(self._mine):
            self.let_go(server_id)

    def _path(self, server_id: str) -> Path:
        # an id may have any length, and slashes
        return self._folder / f"{self._prefix}{blake2b(server_id.encode(), digest_size=8).hexdigest()}"

    def _left(self) -> Iterator[Path]:
        with os.scandir(self._folder) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(self._prefix)]
        return (self._folder / name for name in names)


def _make_held(path: Path) -> int:
    """Return a new file at `path`, which nobody ever sees without its lock."""
    making = path.with_name(f"{path.name}.new")
    while True:
        file = os.open(making, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            making.rename(path)
        except (BlockingIOError, FileNotFoundError):
            # it was looked at, or swept away, between two of these steps
            os.close(file)
        except BaseException:
            os.close(file)
            raise
        else:
            return file


def _is_free(path: Path) -> bool:
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # shared: two who look at once must not take each other for the server
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        os.close(file)


def _leave_to_the_parent() -> None:
    """Close the files in a forked child: it shares their locks, and would show its parent alive after its end."""
    for file in _held:
        with suppress(OSError):
            os.close(file)
    _held.clear()


os.register_at_fork(after_in_child=_leave_to_the_parent)
