"""What an app wants to know of the moves of its jobs, told after the commit."""

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable, Sequence

from windlass.core.clock import Spawn
from windlass.core.states import State
from windlass.engine.context import of_no_job
from windlass.engine.served import OnDead, OnStateChange
from windlass.engine.settlements import Move

logger = logging.getLogger("windlass")


class Hooks:
    """Calls the hooks of an app, move by move in the order of the commits; one that raises changes nothing."""

    def __init__(self, on_state_change: Sequence[OnStateChange], on_dead: Sequence[OnDead], spawn: Spawn) -> None:
        """Call `on_state_change` for every move and `on_dead` for those to the state dead."""
        self._on_state_change = tuple(on_state_change)
        self._on_dead = tuple(on_dead)
        self._spawn = spawn
        self.context = of_no_job()
        """What they are called in copies of: whoever tells of a move may be the code of another job."""
        self._waiting: deque[Move] = deque()
        self._telling = False
        self._told = asyncio.Event()

    @property
    def wanted(self) -> bool:
        """Whether anybody wants to know."""
        return bool(self._on_state_change or self._on_dead)

    def tell(self, moves: list[Move]) -> None:
        """Call the hooks for moves that were committed, without waiting for them."""
        self._waiting += moves
        if self._waiting and not self._telling:
            self._telling = True
            self.context.run(self._spawn, self._tell(), name="windlass hooks")

    async def drain(self) -> None:
        """Return when the hooks have ended that were called so far."""
        while self._telling:
            self._told.clear()
            await self._told.wait()

    async def _tell(self) -> None:
        try:
            while self._waiting:
                job, old, new = self._waiting.popleft()
                for hook in self._on_state_change:
                    await _call(hook, job, old, new)
                if new is State.DEAD:
                    for dead_hook in self._on_dead:
                        await _call(dead_hook, job)
        finally:
            self._telling = False
            self._told.set()


async def _call(hook: Callable[..., object], *arguments: object) -> None:
    try:
        done = hook(*arguments)
        if inspect.isawaitable(done):
            await done
    except asyncio.CancelledError:
        logger.warning("a hook did not end with its server: %r", hook)
        raise
    except BaseException:
        # whatever it raises: left alone, a SystemExit would end the event loop
        logger.exception("a hook failed: %r", hook)
