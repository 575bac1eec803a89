"""Which part of the file of a Redis is on the disk, as the system tells of the server's thread that syncs.

`WAITAOF` would tell too, but a Valkey 9.1 answers it each tenth of a second while it syncs once in a second. The thread
does nothing else than to sync: it has, when it has run and sleeps again.
"""

import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

EVERY: Final = 0.004
THREAD: Final = "bio_aof"
FILE: Final = "appendonlydir/*.incr.aof"


class Look(NamedTuple):
    """The file and the thread at one moment."""

    at: float
    size: int
    switches: int
    """How often the thread has run and slept again."""
    sleeps: bool


class SyncWatch:
    """Looks again and again, until it is told to end, at a server that runs.

    A sync that has begun between two looks has at least what was there at the first of them. It counts when the thread
    was seen asleep behind it, not sooner.
    """

    def __init__(self, pid: int, folder: Path) -> None:
        [self.file] = folder.glob(FILE)
        [self._thread] = [
            thread for thread in Path(f"/proc/{pid}/task").iterdir() if (thread / "comm").read_text().startswith(THREAD)
        ]
        self._enough = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="watches syncs")
        self._last = self._before = self._look()
        self.synced = self._last
        """The file as it was when the last sync that is known began; at first all that was loaded."""
        self.syncs = 0
        self._watcher.start()

    def end(self) -> None:
        """Look no more."""
        self._enough.set()
        self._watcher.join(10)

    def _watch(self) -> None:
        while not self._enough.wait(EVERY):
            try:
                self._learn(self._look())
            except OSError:
                # it has ended
                return

    def _learn(self, look: Look) -> None:
        if look.switches == self._last.switches:
            # nothing since: what begins from now on has all of this
            if look.sleeps:
                self._last = look
        elif look.sleeps:
            self.synced, self._last = self._last, look
            self.syncs += 1

    def _look(self) -> Look:
        # the size first: what is written afterwards is not counted in
        at, size = time.monotonic(), self.file.stat().st_size
        told = dict(line.split(":", 1) for line in (self._thread / "status").read_text().splitlines())
        return Look(at, size, int(told["voluntary_ctxt_switches"]), told["State"].split()[0] == "S")
