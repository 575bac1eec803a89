"""Subscribers of streams, and one loop that looks for all of them."""

from collections.abc import Awaitable, Callable, Generator, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from windlass.core.clock import Running, Spawn


class Subscriber(Protocol):
    """Where the events of one stream come from."""

    def end(self) -> None:
        """Let the stream end."""
        ...


K = TypeVar("K", bound=Hashable)
S = TypeVar("S", bound=Subscriber)


class Subscribers(Generic[K, S]):
    """Subscribers by what they read. While there are any, `look` is called again and again; it also pauses."""

    def __init__(self, look: Callable[[], Awaitable[None]], *, spawn: Spawn, name: str) -> None:
        """Begin with none; `name` is that of the loop's task."""
        self._look = look
        self._spawn = spawn
        self._name = name
        self._running: Running | None = None
        self.by_key: dict[K, set[S]] = {}

    def __iter__(self) -> Iterator[S]:
        """Go through all of them."""
        return (each for some in self.by_key.values() for each in some)

    def of(self, key: K) -> set[S]:
        """Return those who read this."""
        return self.by_key.get(key, set())

    @contextmanager
    def subscribed(self, key: K, subscriber: S) -> Generator[None]:
        """Let a subscriber read for the time of a block."""
        self.by_key.setdefault(key, set()).add(subscriber)
        if self._running is None:
            self._running = self._spawn(self._run(), name=self._name)
        try:
            yield
        finally:
            self.of(key).discard(subscriber)
            if not self.of(key):
                self.by_key.pop(key, None)

    async def _run(self) -> None:
        try:
            while self.by_key:
                await self._look()
        finally:
            self._running = None
            # of what is looked at no more there is nothing to be told
            for subscriber in list(self):
                subscriber.end()
