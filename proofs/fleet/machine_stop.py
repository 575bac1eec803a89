"""A Redis whose machine stops: it is killed, and what was not synced is gone from its file.

A killed process alone loses nothing that it has handed to the system. So when it was killed its file is cut off behind
what is known to be synced; or at a random byte behind that, as if the system had got to write some of the rest, and the
last command is torn. Now and then the process alone is killed, and its file stays as it is.
"""

import math
import os
import random
import time
from typing import Final, Literal, NamedTuple, TypeAlias

from proofs.children import eventually
from proofs.fleet.database import RedisDatabase
from proofs.fleet.sync_watch import SyncWatch
from tests.redis.private import PrivateRedis

EVERYSEC: Final = {
    "appendonly": "yes",
    "appendfsync": "everysec",
    # a file that is never rewritten: what is cut off is the end of one file
    "auto-aof-rewrite-percentage": "0",
}
Way: TypeAlias = Literal["cut off", "torn", "killed"]
WAYS: Final[tuple[Way, ...]] = ("cut off", "torn", "killed")
PERIOD: Final = 1.0
PATIENCE: Final = 10.0


class Stop(NamedTuple):
    """One of them; times in seconds of the ledger."""

    at: float
    kept_until: float
    """When all was there that is known to be synced."""
    cut_off: int
    """Bytes that the file has lost."""
    way: Way
    """Whether nothing of what was not synced is still there, or some of it, or all."""
    back_at: float = math.inf
    """When the server answered again."""

    @property
    def unsynced_for(self) -> float:
        return self.at - self.kept_until


class StoppingMachine(RedisDatabase):
    """A Redis with `appendfsync everysec` on a machine that stops at random moments between two syncs."""

    def __init__(self, private: PrivateRedis, *, soonest: float, seed: int) -> None:
        """Let it stop between two syncs, `soonest` seconds after the first of them."""
        super().__init__(private)
        self._soonest = soonest
        self._chance = random.Random(seed)
        self._watch = self._begin()
        self.stops: Final[list[Stop]] = []

    def kill(self) -> None:
        """Stop the machine, at a random moment from one sync to the next."""
        syncs = self._watch.syncs
        eventually(lambda: self._watch.syncs > syncs, PATIENCE)
        time.sleep(self._chance.uniform(self._soonest, PERIOD))
        super().kill()
        at = time.monotonic()
        self._watch.end()
        self.stops.append(self._cut_off(at, WAYS[len(self.stops) % len(WAYS)]))

    def start(self) -> None:
        super().start()
        self.stops[-1] = self.stops[-1]._replace(back_at=time.monotonic())
        self._watch = self._begin()

    def close(self) -> None:
        self._watch.end()

    def _begin(self) -> SyncWatch:
        return SyncWatch(self.pid, self.private.folder)

    def _cut_off(self, at: float, way: Way) -> Stop:
        synced, file = self._watch.synced, self._watch.file
        written = file.stat().st_size
        ends = {"cut off": synced.size, "torn": self._chance.randint(synced.size, written), "killed": written}
        os.truncate(file, ends[way])
        return Stop(at, synced.at, written - ends[way], way)
