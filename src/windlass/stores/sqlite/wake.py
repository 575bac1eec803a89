"""News between processes: a small file that every commit writes to and every waiting process watches.

The file has 64 slots of 8 bytes. A topic has a slot by its hash, and whoever has news writes something new into it,
after the commit, so that whoever looks then sees the rows. On Linux the kernel tells of the write (inotify); elsewhere,
and as a safety net for commits that write no news (those of a caller's own connection), the store looks at SQLite's
`data_version`.
"""

import contextlib
import ctypes
import os
import sys
import time
import zlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from windlass.core.topics import Hub, Topic

SLOTS = 64
_WIDTH = 8
_EVENTS = 4096
"""Bytes that are read of the kernel's events; one of ours has 16, and the same one is told once until it is read."""
_IN_MODIFY = 0x2
_IN_NONBLOCK = os.O_NONBLOCK
_IN_CLOEXEC = os.O_CLOEXEC


@lru_cache(maxsize=4096)
def slot(topic: Topic) -> int:
    """Return where news on `topic` is written."""
    return zlib.crc32(topic.encode()) % SLOTS


class WakeFile:
    """One process' end of the news."""

    def __init__(self, database: Path, hub: Hub) -> None:
        """Open the file beside `database`."""
        self._path = Path(f"{database}-wake")
        self._hub = hub
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._seen = bytearray(self._read())
        self._watch: int | None = None

    def watch(self) -> int | None:
        """Return a descriptor that turns readable when somebody writes; None where the system cannot tell.

        Watching begins here and not before: the kernel charges every write for everybody who watches.
        """
        self._watch = _watch(self._path)
        self.look()
        return self._watch

    def bump(self, topics: Iterable[Topic]) -> None:
        """Write news on `topics`; called after the commit, from any thread."""
        for at in {slot(topic) * _WIDTH for topic in topics}:
            news = time.time_ns().to_bytes(_WIDTH, "little")
            # our own news need not wake ourselves again
            self._seen[at : at + _WIDTH] = news
            os.pwrite(self._file, news, at)

    def look(self) -> None:
        """Ring for what others wrote since the last look."""
        if self._watch is not None:
            _drain(self._watch)
        now, before = self._read(), bytes(self._seen)
        if now == before:
            return
        self._seen[:] = now
        changed = {
            at for at in range(SLOTS) if now[at * _WIDTH : (at + 1) * _WIDTH] != before[at * _WIDTH : (at + 1) * _WIDTH]
        }
        self._hub.ring(topic for topic in self._hub.topics() if slot(topic) in changed)

    def close(self) -> None:
        """Stop watching."""
        os.close(self._file)
        if self._watch is not None:
            os.close(self._watch)

    def _read(self) -> bytes:
        return os.pread(self._file, SLOTS * _WIDTH, 0).ljust(SLOTS * _WIDTH, b"\0")


def _watch(path: Path) -> int | None:
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    watch: int = libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)
    if watch < 0:
        return None
    if libc.inotify_add_watch(watch, os.fsencode(path), _IN_MODIFY) < 0:
        os.close(watch)
        return None
    return watch


def _drain(watch: int) -> None:
    # what does not fit is read at the next look, which comes at once: the descriptor stays readable
    with contextlib.suppress(BlockingIOError):
        os.read(watch, _EVENTS)
