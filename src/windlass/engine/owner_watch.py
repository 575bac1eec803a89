"""The service that sees that another process has taken the store over, also where nothing else is to do."""

from collections.abc import Callable

from windlass.client.bell import Bell
from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.duration import ZERO
from windlass.core.store import Store
from windlass.core.topics import OWNER
from windlass.engine.service import Service


class OwnerWatch(Service):
    """Asks the store for something small whenever its owner may have changed: it raises `Fenced` if so."""

    name = "owner watch"
    interval = ZERO

    def __init__(self, store: Store, *, clock: Clock, rng: Rng, spawn: Spawn) -> None:
        """Watch `store`."""
        super().__init__(clock=clock, rng=rng, spawn=spawn)
        self._store = store
        self._bell: Bell | None = None
        self._stop_listening: Callable[[], None] | None = None

    async def tick(self) -> None:
        """Sleep until the store rings, and ask."""
        bell = self._bell = self._bell or Bell(self._clock)
        if self._stop_listening is None:
            self._stop_listening = self._store.listen((OWNER,), bell.ring)
            # it may have changed before anybody listened
            bell.ring()
        await bell.wait(None)
        bell.clear()
        await self._store.paused(("owner",))

    async def leave(self) -> None:
        """Listen no more."""
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None
        self._bell = None


def owner_watch(store: Store, *, clock: Clock, rng: Rng, spawn: Spawn) -> tuple[Service, ...]:
    """Return the watch for a store that one process owns, and nothing for others."""
    return (OwnerWatch(store, clock=clock, rng=rng, spawn=spawn),) if store.features.one_owner else ()
