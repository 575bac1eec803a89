"""The services of one process, started and stopped together."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from windlass.client.upkeep import promote_all, prune_all
from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.duration import ZERO
from windlass.core.errors import Fenced
from windlass.core.looks import ServerRecord
from windlass.core.requests import Rescued
from windlass.core.retention import Retention
from windlass.core.settings import Settings
from windlass.core.store import Store
from windlass.engine.heart import SCHEDULING, Heart, new_record, new_server_id
from windlass.engine.owner_watch import owner_watch
from windlass.engine.rescuer import Rescuer
from windlass.engine.service import Service

logger = logging.getLogger("windlass")

RESCUE_INTERVAL: Final = timedelta(seconds=5)
PRUNE_INTERVAL: Final = timedelta(minutes=1)
HEARTBEAT_INTERVAL: Final = timedelta(seconds=10)


class Services:
    """Rescue, promotion, pruning and the heart, for a client without a server."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        name: str,
        clock: Clock,
        rng: Rng,
        spawn: Spawn,
        rescue_interval: timedelta = RESCUE_INTERVAL,
        prune_interval: timedelta = PRUNE_INTERVAL,
        heartbeat_interval: timedelta = HEARTBEAT_INTERVAL,
    ) -> None:
        """Be ready to start, with the retention in `settings`; `name` is shown among the servers."""
        self._name = name
        self._clock = clock
        self._rng = rng
        self._record: ServerRecord | None = None
        heart = Heart(store, self._describe, clock=clock, rng=rng, spawn=spawn, interval=heartbeat_interval)
        kept = upkeep(
            store,
            settings.retention,
            clock=clock,
            rng=rng,
            spawn=spawn,
            rescue_interval=rescue_interval,
            prune_interval=prune_interval,
        )
        self._services = (heart, *kept, *owner_watch(store, clock=clock, rng=rng, spawn=spawn))
        self._fenced = False
        for service in self._services:
            service.fenced = self._fence

    async def start(self) -> None:
        """Start all of them; harmless when they run."""
        self._fenced = False
        await asyncio.gather(*[service.start() for service in self._services])

    async def stop(self) -> None:
        """Stop all of them, and return when they have ended."""
        await asyncio.gather(*[service.stop() for service in self._services])
        self._record = None

    def _fence(self, error: Fenced) -> None:
        """Tell once why they end: each does when it meets it."""
        if not self._fenced:
            self._fenced = True
            logger.error("rescue, promotion and pruning end here: %s", error)

    def _describe(self) -> ServerRecord:
        if self._record is None:
            server_id = new_server_id(self._name, clock=self._clock, rng=self._rng)
            self._record = replace(new_record(server_id, clock=self._clock), details={SCHEDULING: "off"})
        return self._record


class Promoter(Service):
    """Promotes every second: a claim promotes by itself, so this is for whoever looks at the counts."""

    name = "promoter"
    interval = timedelta(seconds=1)

    def __init__(self, store: Store, *, clock: Clock, rng: Rng, spawn: Spawn) -> None:
        """Promote in `store`."""
        super().__init__(clock=clock, rng=rng, spawn=spawn)
        self._store = store

    async def tick(self) -> None:
        """Make every job that has come due pending."""
        await promote_all(self._store)


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


def upkeep(
    store: Store,
    retention: Retention,
    *,
    clock: Clock,
    rng: Rng,
    spawn: Spawn,
    rescue_interval: timedelta = RESCUE_INTERVAL,
    prune_interval: timedelta = PRUNE_INTERVAL,
    rescue_after: timedelta = ZERO,
    rescued: Callable[[list[Rescued]], None] | None = None,
) -> tuple[Service, ...]:
    """Return rescue, promotion and pruning; rescue comes first, and begins after `rescue_after`."""
    return (
        Rescuer(
            store,
            retention,
            clock=clock,
            rng=rng,
            spawn=spawn,
            interval=rescue_interval,
            begins_after=rescue_after,
            told=rescued,
        ),
        Promoter(store, clock=clock, rng=rng, spawn=spawn),
        Pruner(store, retention, clock=clock, rng=rng, spawn=spawn, interval=prune_interval),
    )
