"""What an app has around its handlers: middleware and hooks."""

from collections.abc import Sequence
from typing import TypeVar

from windlass.engine.served import Middleware, OnDead, OnStateChange

M = TypeVar("M", bound=Middleware)
S = TypeVar("S", bound=OnStateChange)
D = TypeVar("D", bound=OnDead)


class Surroundings:
    """Registers what wraps attempts, and what is called after them."""

    def __init__(self) -> None:
        """Have none yet."""
        self._middlewares: list[Middleware] = []
        self._state_change_hooks: list[OnStateChange] = []
        self._dead_hooks: list[OnDead] = []

    def middleware(self, function: M) -> M:
        """Wrap every attempt: `async def each(context, call_next)`; the first that is registered is the outermost."""
        self._middlewares.append(function)
        return function

    def on_state_change(self, function: S) -> S:
        """Call `function(job, old, new)` after the commit of every move that a server makes."""
        self._state_change_hooks.append(function)
        return function

    def on_dead(self, function: D) -> D:
        """Call `function(job)` after a job was written as dead by a server."""
        self._dead_hooks.append(function)
        return function

    @property
    def middlewares(self) -> Sequence[Middleware]:
        """What wraps every attempt, the outermost first."""
        return tuple(self._middlewares)

    @property
    def state_change_hooks(self) -> Sequence[OnStateChange]:
        """Called after the commit of every move that a server makes."""
        return tuple(self._state_change_hooks)

    @property
    def dead_hooks(self) -> Sequence[OnDead]:
        """Called after a job was written as dead."""
        return tuple(self._dead_hooks)
