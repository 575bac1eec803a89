"""The service that deletes finished jobs past their retention."""

from datetime import timedelta

from windlass.client.upkeep import prune_all
from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.retention import Retention
from windlass.core.store import Store
from windlass.engine.service import Service


class Pruner(Service):
    """Prunes every minute, in small batches."""

    name = "pruner"

    def __init__(
        self,
        store: Store,
        retention: Retention,
        *,
        clock: Clock,
        rng: Rng,
        spawn: Spawn,
        interval: timedelta = timedelta(minutes=1),
    ) -> None:
        """Prune `store` by `retention`."""
        super().__init__(clock=clock, rng=rng, spawn=spawn)
        self.interval = interval
        self._store = store
        self._retention = retention

    async def tick(self) -> None:
        """Delete every record past its retention."""
        await prune_all(self._store, self._retention)
