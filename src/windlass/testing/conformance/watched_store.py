"""A store that knows which calls are under way, so that a test can wait until whoever was woken is done."""

import inspect
from collections.abc import Awaitable
from typing import Any, Final, TypeVar
from weakref import WeakSet

from windlass.core.store import Store

T = TypeVar("T")

_watched: Final[WeakSet["WatchedStore"]] = WeakSet()
_UNWATCHED: Final = frozenset({"features", "join", "listen", "sibling", "transaction"})


def calls_under_way() -> int:
    """Count the calls that have not ended, of all stores that are watched."""
    return sum(store.calls for store in _watched)


class WatchedStore:
    """Lets every call through and counts those that have not ended."""

    def __init__(self, store: Store) -> None:
        """Stand in front of `store`."""
        self._store = store
        self.calls = 0
        _watched.add(self)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        """Give what the store has."""
        method = getattr(self._store, name)
        if name in _UNWATCHED or not callable(method):
            return method

        def watched(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the store takes
            answer = method(*args, **kwargs)
            return self._watch(answer) if inspect.isawaitable(answer) else answer

        return watched

    async def _watch(self, answer: Awaitable[T]) -> T:
        self.calls += 1
        try:
            return await answer
        finally:
            self.calls -= 1
