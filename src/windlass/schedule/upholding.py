"""Which declaration of a schedule holds while servers of several releases come and go."""

import logging
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Final

from windlass.client.schedules import replaced
from windlass.client.wanted import Wanted
from windlass.core.clock import Clock
from windlass.core.duration import later
from windlass.core.errors import Fenced
from windlass.core.looks import ServerRecord
from windlass.core.schedule import Schedule
from windlass.core.store import Store
from windlass.schedule.store_timeout import call_store

logger = logging.getLogger("windlass")

EVERY: Final = 60.0
"""Seconds from one look to the next."""


class Upholding:
    """Keeps declared schedules as that live server says which declares them and started last.

    Each server writes its own when it starts. When one of an old release is started again during a deploy and then
    ends, what it wrote would stay, with nobody left who declares it so: the others see that here. What somebody has put
    at run time, or removed, is left alone.
    """

    def __init__(self, store: Store, server_id: str, *, dead_after: timedelta, clock: Clock) -> None:
        """Look for the server of this id; another one is live that was seen within `dead_after`."""
        self._store = store
        self._server_id = server_id
        self._dead_after = dead_after
        self._clock = clock
        self._again_at = clock.monotonic() + EVERY

    async def attempt(self, wanted: Mapping[str, Wanted]) -> None:
        """Look, if it is time to, whether those that this server has written are still as they are `wanted` here."""
        if not wanted or self._clock.monotonic() < self._again_at:
            return
        self._again_at = self._clock.monotonic() + EVERY
        try:
            await self._look(wanted)
        except Fenced:
            raise
        except Exception as error:  # noqa: BLE001 - it comes again, and is not to stop what is due
            logger.warning("whether schedules are as they are declared could not be seen, it is tried again: %s", error)

    async def _look(self, wanted: Mapping[str, Wanted]) -> None:
        look = self._store.schedules(sorted(wanted))
        now, found = await call_store(look, "what became of declared schedules", self._clock)
        changes = [
            (schedule, change)
            for schedule in found
            if schedule.declared and (change := replaced(schedule, wanted[schedule.id], now, declared=True)) != schedule
        ]
        if not changes:
            return
        servers = await call_store(self._store.servers(), "which servers there are", self._clock)
        live = [server for server in servers if later(server.seen_at, self._dead_after) > now]
        for schedule, change in changes:
            if self._started_last(schedule.id, live):
                await self._write(schedule, change)

    def _started_last(self, schedule_id: str, live: Collection[ServerRecord]) -> bool:
        declaring = [(server.started_at, server.id) for server in live if schedule_id in server.schedules]
        return bool(declaring) and max(declaring)[1] == self._server_id

    async def _write(self, schedule: Schedule, change: Schedule) -> None:
        # whoever changes it meanwhile has the last word
        write = self._store.write_schedule(change, expected=schedule.revision)
        if await call_store(write, f"to write schedule {schedule.id!r}", self._clock) is not None:
            logger.info(
                "schedule %r was as another server declared it that is gone (%s), and is as declared here again (%s)",
                schedule.id,
                schedule.rule,
                change.rule,
            )
