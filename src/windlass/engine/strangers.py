"""The service that says aloud which jobs wait that no live server can do."""

import logging
from collections.abc import Collection
from datetime import timedelta

from windlass.client.server_details import is_stopping
from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.store import Store
from windlass.engine.service import Service

logger = logging.getLogger("windlass")


class StrangerWatch(Service):
    """Looks each minute for kinds of waiting jobs that nobody knows, and warns of each once."""

    name = "strangers"
    interval = timedelta(minutes=1)

    def __init__(
        self,
        store: Store,
        queues: Collection[str],
        kinds: Collection[str],
        *,
        dead_after: timedelta,
        clock: Clock,
        rng: Rng,
        spawn: Spawn,
    ) -> None:
        """Look into `queues` for kinds not among `kinds`, nor known to a server that was seen within `dead_after`."""
        super().__init__(clock=clock, rng=rng, spawn=spawn)
        self._store = store
        self._queues = tuple(queues)
        self._kinds = frozenset(kinds)
        self._dead_after = dead_after
        self._told: set[tuple[str, str]] = set()

    async def tick(self) -> None:
        """Look, and warn."""
        for queue in self._queues:
            strange = set(await self._store.kinds(queue, self._kinds))
            if strange:
                strange -= await self._known_elsewhere()
            for kind in sorted(strange):
                self._warn(queue, kind)

    async def _known_elsewhere(self) -> set[str]:
        since = self._clock.now() - self._dead_after
        live = [server for server in await self._store.servers() if server.seen_at >= since]
        return {kind for server in live if not is_stopping(server) for kind in server.kinds}

    def _warn(self, queue: str, kind: str) -> None:
        if (queue, kind) not in self._told:
            self._told.add((queue, kind))
            logger.warning(
                "jobs of kind %r wait in queue %r, and no live server knows that kind: they are left alone. Import the "
                "module of its handler, or name the kind among the aliases of another",
                kind,
                queue,
            )
