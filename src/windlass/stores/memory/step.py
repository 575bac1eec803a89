"""Steps: nobody else is inside of one, and time stands still."""

import threading
from datetime import datetime
from types import TracebackType

from windlass.core.clock import Clock
from windlass.core.errors import StoreMoved
from windlass.core.topics import Hub
from windlass.kit.moves import moving
from windlass.stores.memory.house import House
from windlass.stores.memory.table import Table


class Step:
    """One atomic step: nobody else is inside, time stands still, and whoever waits for its news is woken after it."""

    def __init__(self, clock: Clock, table: Table, hub: Hub) -> None:
        self._clock = clock
        self._table = table
        self._hub = hub
        self._lock = threading.Lock()

    def __enter__(self) -> datetime:
        self._lock.acquire()
        return self._clock.now()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        news, self._table.news = self._table.news, set()
        self._lock.release()
        self._hub.ring(news)


class NewStep:
    """A step that begins something: it raises `StoreMoved` once the jobs of the store go elsewhere."""

    def __init__(self, step: Step, house: House) -> None:
        self._step = step
        self._house = house

    def __enter__(self) -> datetime:
        now = self._step.__enter__()
        try:
            moving.refuse(self._house.moved)
        except StoreMoved as moved:
            self._step.__exit__(StoreMoved, moved, None)
            raise
        return now

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._step.__exit__(kind, error, trace)
