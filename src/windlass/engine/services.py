"""The services of one process, started and stopped together."""

import asyncio

from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.settings import Settings
from windlass.core.store import Store
from windlass.engine.heart import Heart
from windlass.engine.promoter import Promoter
from windlass.engine.pruner import Pruner
from windlass.engine.rescuer import Rescuer
from windlass.engine.service import Service


class Services:
    """Rescue, promotion, pruning and the heart, for one process on one store."""

    def __init__(self, store: Store, settings: Settings, *, name: str, clock: Clock, rng: Rng, spawn: Spawn) -> None:
        """Be ready to start, with the retention in `settings`; `name` is shown among the servers."""
        retention = settings.retention
        self._services: tuple[Service, ...] = (
            Heart(store, name, clock=clock, rng=rng, spawn=spawn),
            Rescuer(store, retention, clock=clock, rng=rng, spawn=spawn),
            Promoter(store, clock=clock, rng=rng, spawn=spawn),
            Pruner(store, retention, clock=clock, rng=rng, spawn=spawn),
        )

    async def start(self) -> None:
        """Start all of them; harmless when they run."""
        await asyncio.gather(*[service.start() for service in self._services])

    async def stop(self) -> None:
        """Stop all of them, and return when they have ended."""
        await asyncio.gather(*[service.stop() for service in self._services])
