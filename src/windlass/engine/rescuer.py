"""The service that takes back jobs whose lease ran out."""

import logging
from datetime import timedelta

from windlass.client.upkeep import rescue_all
from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.retention import Retention
from windlass.core.store import RescueRequest, Store
from windlass.engine.service import Service

logger = logging.getLogger("windlass")


class Rescuer(Service):
    """Rescues once at its start and then every five seconds, by the lease alone."""

    name = "rescuer"
    interval = timedelta(seconds=5)

    def __init__(self, store: Store, retention: Retention, *, clock: Clock, rng: Rng, spawn: Spawn) -> None:
        """Rescue in `store`; what is dead then stays as long as `retention` says."""
        super().__init__(clock=clock, rng=rng, spawn=spawn)
        self._store = store
        self._retention = retention

    async def tick(self) -> None:
        """Take back every expired claim."""
        if count := await rescue_all(self._store, RescueRequest(), self._retention):
            logger.info("rescued %d jobs whose lease had run out", count)
