"""The service that takes back jobs whose lease ran out, or whose server has ended."""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta

from windlass.client.upkeep import rescue_all
from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.duration import ZERO
from windlass.core.requests import Rescued, RescueRequest
from windlass.core.retention import Retention
from windlass.core.store import Store
from windlass.engine.service import Service

logger = logging.getLogger("windlass")


class Rescuer(Service):
    """Rescues once at its start, or a while later, and then every five seconds.

    It goes by the lease, or by proof that a server has ended.
    """

    name = "rescuer"

    def __init__(
        self,
        store: Store,
        retention: Retention,
        *,
        clock: Clock,
        rng: Rng,
        spawn: Spawn,
        interval: timedelta = timedelta(seconds=5),
        begins_after: timedelta = ZERO,
        told: Callable[[list[Rescued]], None] | None = None,
    ) -> None:
        """Rescue in `store`; what is dead then stays as long as `retention` says. `told` hears of each job."""
        super().__init__(clock=clock, rng=rng, spawn=spawn)
        self.interval = interval
        self.begins_after = begins_after
        self._store = store
        self._retention = retention
        self._told = told

    async def tick(self) -> None:
        """Take back every claim that nobody holds any more."""
        if ended := await self._store.ended_servers():
            await self.rescue_ended(ended)
        self._tell(await rescue_all(self._store, RescueRequest(), self._retention), "lease had run out")

    async def rescue_ended(self, servers: Sequence[str]) -> None:
        """Take back every claim of servers that have ended, and take them out: whoever calls this has the proof."""
        request = RescueRequest(workers=servers, force=True)
        self._tell(await rescue_all(self._store, request, self._retention), "server had ended")
        for server in servers:
            await self._store.leave(server)

    def _tell(self, rescued: list[Rescued], why: str) -> None:
        if not rescued:
            return
        logger.info("rescued %d %s whose %s", len(rescued), "job" if len(rescued) == 1 else "jobs", why)
        if self._told is not None:
            self._told(rescued)
