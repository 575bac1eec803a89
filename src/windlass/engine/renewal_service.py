"""Renewal on the event loop itself, for a clock that does not go on by itself."""

from datetime import timedelta

from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.store import Store
from windlass.engine.renewer import Renewals
from windlass.engine.service import Service


class RenewalService(Service):
    """Renews as the thread does; a test's clock can only wake what runs on the loop that moves it."""

    name = "renewals"

    def __init__(self, renewals: Renewals, store: Store, *, clock: Clock, rng: Rng, spawn: Spawn) -> None:
        """Renew through `store`."""
        super().__init__(clock=clock, rng=rng, spawn=spawn)
        self._renewals = renewals
        self._store = store
        self.interval = timedelta(seconds=1)

    async def tick(self) -> None:
        """Renew what is due."""
        self.interval = timedelta(seconds=await self._renewals.round(self._store))
