"""Turns between processes: whoever writes has the turn, and nobody is passed over for long.

SQLite's own way to wait for its write lock is to sleep and try again, up to 100 ms at a time, and the busiest process
wins. Here a process queues at two doors. It waits at the gate, and whoever has the gate waits for the turn. So the
one who gives the turn back has to queue at the gate behind the others and cannot take it again at once.

The doors are `flock` locks on files of their own, so that SQLite's locks on the database are never touched: closing any
descriptor of the database file would drop those.
"""

import fcntl
import logging
import os
import time
from pathlib import Path
from typing import Final

from windlass.core.errors import StoreUnavailable

logger = logging.getLogger("windlass.sqlite")

WARN_AFTER: Final = 5.0
GIVE_UP_AFTER: Final = 30.0
"""Seconds that a writer waits before it says so, and before it gives up."""
_TRY_EVERY: Final = 0.005

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

    def take_in_time(self, database: Path) -> None:
        """Wait for the turn, for a store that is being opened; refuse when it is not given in time."""
        began = time.monotonic()
        warned = False
        while not self.take_now():
            waited = time.monotonic() - began
            if waited >= GIVE_UP_AFTER:
                message = f"{database} could not be opened in {waited:.0f} s: {self.likely_cause()}"
                raise StoreUnavailable(message, retryable=True)
            if waited >= WARN_AFTER and not warned:
                warned = True
                logger.warning("%s waits to be opened since %.0f s: %s", database, waited, self.likely_cause())
            time.sleep(_TRY_EVERY)

    def likely_cause(self) -> str:
        """Say who is in the way of everybody else."""
        return f"process {self.holder()} has the turn and does not give it back; it may be stopped: continue or end it"

    def take_now(self) -> bool:
        """Take the turn if nobody has it or waits for it."""
        try:
            fcntl.flock(self._gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)
        os.pwrite(self._turn, self._pid, 0)
        return True

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


class FileIdentity:
    """Check that the file at a path is still the one that was opened: no reader would find a write to another."""

    def __init__(self, path: Path) -> None:
        """Remember the file that is there now."""
        self._path = path
        self._name = str(path)
        self._inode = path.stat().st_ino

    def check(self) -> None:
        """Raise `StoreUnavailable` when the file was deleted or replaced."""
        try:
            inode = os.stat(self._name).st_ino  # noqa: PTH116 - a look by name: the file must not be opened
        except FileNotFoundError:
            inode = None
        if inode != self._inode:
            message = (
                f"{self._path} was deleted or replaced while it was open: stop, put the file back, and connect again"
            )
            raise StoreUnavailable(message)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
