"""Moving the write-ahead log into the database, where no commit can overlap it.

SQLite before 3.51.3 can lose committed rows when one connection's checkpoint overlaps another's commit that begins the
log anew. A checkpoint here runs on a connection of its own while the writing connection holds SQLite's write lock and
writes nothing, so that nobody, in this process or another, can commit meanwhile. `docs/decisions` tells the rest.
"""

import logging
import os
import sqlite3
from pathlib import Path

from windlass.core.clock import Clock
from windlass.core.failpoint import reach

logger = logging.getLogger("windlass.sqlite")

_REPORTED_SIZE = 64 * 1024 * 1024
_REPORTED_EVERY = 60.0


class Checkpointer:
    """Checkpoints of one process; used by the writing thread alone."""

    def __init__(self, connection: sqlite3.Connection, path: Path, clock: Clock) -> None:
        """Checkpoint through `connection`, which does nothing else."""
        self._connection = connection
        self._log = Path(f"{path}-wal")
        self._clock = clock
        self._behind_since: float | None = None
        self._reported = float("-inf")

    def run(self) -> None:
        """Checkpoint while the writing connection holds the write lock."""
        reach("sqlite.checkpoint.before")
        _, frames, moved = self._connection.execute("pragma wal_checkpoint(passive)").fetchone()
        reach("sqlite.checkpoint.after")
        self._report(whole=frames == moved)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _report(self, *, whole: bool) -> None:
        now = self._clock.monotonic()
        if whole:
            self._behind_since = None
            return
        if self._behind_since is None:
            self._behind_since = now
        size = os.stat(self._log).st_size  # noqa: PTH116 - a look by name: the file must not be opened
        if size >= _REPORTED_SIZE and now - self._reported >= _REPORTED_EVERY:
            self._reported = now
            logger.warning(
                "%s has grown to %d MiB: some connection has kept a read transaction open for at least %.0f s; end it",
                self._log,
                size // 2**20,
                now - self._behind_since,
            )
