"""The schedules that servers declare which only work, for whoever fires in their place."""

from collections.abc import Collection
from datetime import datetime, timedelta

from windlass.core.clock import Clock
from windlass.core.duration import later
from windlass.core.looks import ServerRecord
from windlass.core.store import Store
from windlass.schedule.store_timeout import call_store


class DeclaredByServers:
    """Counts what live servers declare, as their records say at each look.

    So a declared schedule fires while a live server declares it, and what came due while none did passed in down time,
    although the store was served.
    """

    def __init__(self, store: Store, *, dead_after: timedelta, clock: Clock) -> None:
        """Take for live who was seen within `dead_after`."""
        self._store = store
        self._dead_after = dead_after
        self._clock = clock
        self._since: dict[str, datetime] = {}

    @property
    def ids(self) -> Collection[str]:
        """Those that a live server declares."""
        return self._since

    @property
    def again_at(self) -> float | None:
        """None: there is nothing to try again."""
        return None

    def since(self, schedule_id: str) -> datetime | None:
        """Return since when a live server declares it."""
        return self._since.get(schedule_id)

    async def look(self) -> None:
        """Read which servers there are."""
        now, _ = await call_store(self._store.schedules(()), "what time it is", self._clock)
        servers = await call_store(self._store.servers(), "which servers there are", self._clock)
        live = [server for server in servers if later(server.seen_at, self._dead_after) > now]
        begun: dict[str, datetime] = {}
        for server in live:
            for schedule_id in server.schedules:
                begun[schedule_id] = min(_started(server, now), begun.get(schedule_id, now))
        self._since = {name: self._since.get(name, at) for name, at in begun.items()}

    async def uphold(self) -> None:
        """Do nothing: each server sees to its own."""


def _started(server: ServerRecord, now: datetime) -> datetime:
    # a start after the last beat is told by a clock that is ahead of the store's, and tells nothing
    return server.started_at if server.started_at <= server.seen_at else now
