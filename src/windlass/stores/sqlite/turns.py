"""Turns between processes: whoever writes has the turn, and nobody is passed over for long.

SQLite's own way to wait for its write lock is to sleep and try again, up to 100 ms at a time, and the busiest process
wins. Here a process queues at two doors. It waits at the gate, and whoever has the gate waits for the turn. So the
one who gives the turn back has to queue at the gate behind the others and cannot take it again at once.

The doors are `flock` locks on files of their own, so that SQLite's locks on the database are never touched: closing any
descriptor of the database file would drop those.
"""

import fcntl
import os
from pathlib import Path

_MARK = b"windlass"
_MARK_AT = 32


class Turns:
    """One process' place in the queue for the turn; used by one thread."""

    def __init__(self, database: Path) -> None:
        """Open the doors beside `database`, readable by this user alone."""
        self._gate = _open(Path(f"{database}-wake"))
        self._turn = _open(Path(f"{database}-turn"))
        self._pid = f"{os.getpid():>20}".encode()

    def take(self) -> None:
        """Wait for the turn."""
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._turn, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)
        os.pwrite(self._turn, self._pid, 0)

    def give(self) -> None:
        """Let the next one write."""
        fcntl.flock(self._turn, fcntl.LOCK_UN)

    def holder(self) -> str:
        """Return the process id of whoever had the turn last."""
        return os.pread(self._turn, 20, 0).decode().strip() or "unknown"

    @property
    def store_was_here(self) -> bool:
        """Whether a store has been made beside these files."""
        return os.pread(self._turn, len(_MARK), _MARK_AT) == _MARK

    def mark_store(self) -> None:
        """Remember that a store has been made."""
        os.pwrite(self._turn, _MARK, _MARK_AT)

    def close(self) -> None:
        """Close the doors of this process."""
        os.close(self._gate)
        os.close(self._turn)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
