"""Atomic step of a store in memory: no other call is inside of it, and time stands still."""

import threading
from collections.abc import Callable
from datetime import datetime
from itertools import count
from types import TracebackType

from windlass.core.clock import Clock, Rng
from windlass.core.topics import Hub
from windlass.kit.house import House
from windlass.kit.moves.scheduling import Schedules
from windlass.stores.memory.table import Table


class MemoryState:
    """All records of a store in memory, and the time of the step in progress."""

    __slots__ = ("house", "keyspace", "now", "rng", "schedules", "table")

    def __init__(self, rng: Rng, now: datetime) -> None:
        self.table = Table()
        self.keyspace = self.table.keyspace
        self.house = House()
        self.schedules = Schedules(self.table, {}, count(1).__next__)
        self.rng = rng
        self.now = now


class AtomicStep:
    """One step at a time: it begins with the time of the clock, and after it the hub notifies of what changed."""

    def __init__(self, state: MemoryState, clock: Clock, hub: Hub) -> None:
        self._state = state
        self._now: Callable[[], datetime] = clock.now
        self._hub = hub
        self._lock = threading.Lock()

    def __enter__(self) -> MemoryState:
        self._lock.acquire()
        self._state.now = self._now()
        return self._state

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        table = self._state.table
        news, table.news = table.news, set()
        self._lock.release()
        self._hub.ring(news)
