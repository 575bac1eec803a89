"""Servers of other processes, which tell this one that they are live."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from windlass.core.clock import Clock
from windlass.core.looks import ServerRecord
from windlass.core.store import Store


class Remembered:
    """The last names that were added; the oldest are forgotten."""

    def __init__(self, most: int) -> None:
        """Know at most so many."""
        self._most = most
        self._names: dict[str, None] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        """Know a name from now on."""
        self._names[name] = None
        if len(self._names) > self._most:
            del self._names[next(iter(self._names))]


MOST: Final = 10_000
"""How many servers are remembered; one that was forgotten is found again in the store."""


class _Known(NamedTuple):
    started_at: datetime
    schedules: tuple[str, ...]


class Presence:
    """Writes the beats of servers that work over HTTP.

    Their clocks are those of other machines: when one has started is told by the clock here, at its first beat. So the
    starts of any two can be compared, and be set against the store's time.
    """

    def __init__(self, store: Store, clock: Clock, changed: Callable[[], None]) -> None:
        """Write into `store`, whose time is that of `clock` or its own; `changed` hears when others are declared."""
        self._store = store
        self._clock = clock
        self._changed = changed
        self._known: dict[str, _Known] = {}
        self._left = Remembered(MOST)

    async def beat(self, server: ServerRecord) -> None:
        """Write that a server is live.

        One that has left does not come back, since its id is new at every start: a beat that says so was late.
        """
        known = self._known.get(server.id)
        started_at = await self._started_at(server.id) if known is None else known.started_at
        if server.id in self._left:
            return
        await self._store.beat(replace(server, started_at=started_at))
        self._remember(server.id, _Known(started_at, server.schedules))
        if server.schedules != (known.schedules if known is not None else ()):
            self._changed()

    async def leave(self, server_id: str) -> None:
        """Take a server out."""
        self._left.add(server_id)
        self._known.pop(server_id, None)
        await self._store.leave(server_id)

    async def _started_at(self, server_id: str) -> datetime:
        # this process may have been started after the server
        found = [server.started_at for server in await self._store.servers() if server.id == server_id]
        return found[0] if found else self._clock.now()

    def _remember(self, server_id: str, known: _Known) -> None:
        self._known.pop(server_id, None)
        self._known[server_id] = known
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]
