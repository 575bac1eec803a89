"""A store that another process can take over, at the word of a test."""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, Final, cast

from windlass.connect import open_store
from windlass.core.clock import Clock
from windlass.core.errors import Fenced
from windlass.core.store import Store
from windlass.core.topics import Hub, Topic

_ALWAYS: Final = frozenset({"open", "close", "join", "transaction"})


class FenceableStore:
    """Gives what the store behind it has, until it is taken over: then it rings everybody, and every call raises.

    The store behind it is what the new owner has.
    """

    def __init__(self, *, clock: Clock | None = None) -> None:
        self.behind: Store = open_store("memory://", clock=clock)
        self.features = replace(self.behind.features, one_owner=True)
        self._hub = Hub()
        self._fenced = False

    @property
    def here(self) -> Store:
        """The store as whoever may lose it has it."""
        store: Any = self
        return cast("Store", store)

    def take_over(self, *, ring: Collection[Topic] | None = None) -> None:
        """Be fenced from now on, and ring everybody, or those who listen to `ring`."""
        self._fenced = True
        self._hub.ring_all() if ring is None else self._hub.ring(ring)

    def listened(self, topic: str) -> bool:
        """Whether somebody listens to this."""
        return Topic(topic) in self._hub.topics()

    def sibling(self) -> "FenceableStore":
        return self

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        stop_behind, stop_here = self.behind.listen(topics, ring), self._hub.listen(topics, ring)

        def stop() -> None:
            stop_behind()
            stop_here()

        return stop

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        method = getattr(self.behind, name)
        if name in _ALWAYS:
            return method

        async def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the store takes
            if self._fenced:
                raise Fenced("another process has taken the store of this test over: this one must stop")
            return await method(*args, **kwargs)

        return call
