"""The seams to the world outside: time, chance and tasks are given, never taken from the air."""

from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any, Protocol


class Timer(Protocol):
    """A callback that is still to come."""

    def cancel(self) -> None:
        """Take the callback back; harmless when it has run already."""
        ...


class Clock(Protocol):
    """Time as the engine and the stores see it; may be read from any thread."""

    @property
    def goes_by_itself(self) -> bool:
        """Whether nobody has to move it: a thread can wait by such a clock."""
        ...

    def now(self) -> datetime:
        """Return the wall time in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never step back, from an unnamed start."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` on the running event loop after `delay` seconds."""
        ...

    async def sleep(self, delay: float) -> None:
        """Return after `delay` seconds."""
        ...


class Rng(Protocol):
    """Chance: jitter, ids, tokens."""

    def random(self) -> float:
        """Return a number from 0.0 up to, not including, 1.0."""
        ...

    def token_bytes(self, count: int) -> bytes:
        """Return `count` bytes that nobody can guess."""
        ...


class Running(Protocol):
    """A task that was started."""

    def cancel(self) -> object:
        """Ask the task to end."""
        ...


class Spawn(Protocol):
    """Starts background work and keeps hold of it, so that none is orphaned or fails unseen."""

    def __call__(self, work: Coroutine[Any, Any, None], *, name: str) -> Running:
        """Start `work`; an exception that leaves it is logged with `name`."""
        ...
