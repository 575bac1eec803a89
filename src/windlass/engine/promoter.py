"""The service that makes due jobs pending."""

from datetime import timedelta

from windlass.client.upkeep import promote_all
from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.store import Store
from windlass.engine.service import Service


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
