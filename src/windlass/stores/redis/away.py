"""Servers that did not answer, and queues that had none: a round through many queues passes them by for a while."""

import asyncio
from typing import Final

from windlass.core.errors import StoreUnavailable
from windlass.stores.redis.options import Place

AWAY_FOR: Final = 5.0
"""Seconds for which nobody tries again in a round: each try may cost the other queues its patience."""


class Away:
    """What was given up a moment ago, by the clock of the event loop."""

    def __init__(self, where: str) -> None:
        """Know of nothing that is away; `where` names the store for people."""
        self._where = where
        self._until: dict[Place | str, float] = {}

    def note(self, prefix: str, silent: Place | None) -> None:
        """Note that the keys of `prefix` could not be reached, perhaps since the server at `silent` does not answer."""
        until = asyncio.get_running_loop().time() + AWAY_FOR
        self._until[prefix] = until
        if silent is not None:
            self._until[silent] = until

    def forget(self, prefix: str, place: Place) -> None:
        """Note that the server at `place` has answered."""
        if self._until:
            self._until.pop(prefix, None)
            self._until.pop(place, None)

    def refusal(self, prefix: str, place: Place) -> StoreUnavailable | None:
        """Return why the keys of `prefix` are passed by, if they are."""
        if not self._until:
            return None
        until = max(self._until.get(prefix, 0.0), self._until.get(place, 0.0))
        if asyncio.get_running_loop().time() >= until:
            return None
        return StoreUnavailable(
            f"{self._where}: the server of the keys {prefix} did not answer a moment ago, and is passed by for up to "
            f"{AWAY_FOR:.0f} s: look whether all masters are up",
            retryable=True,
        )
