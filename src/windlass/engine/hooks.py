"""What an app wants to know of the moves of its jobs, told after the commit."""

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable, Sequence

from windlass.core.clock import Spawn
from windlass.core.errors import WindlassError
from windlass.core.job import Job
from windlass.core.requests import Rescued
from windlass.core.states import State
from windlass.core.store import Store
from windlass.engine.context import of_no_job
from windlass.engine.job_fields import fields_of
from windlass.engine.served import OnDead, OnStateChange
from windlass.engine.settlement_writer import StateChange

logger = logging.getLogger("windlass")


class Hooks:
    """Calls the hooks of an app, move by move in the order of the commits; one that raises changes nothing."""

    def __init__(self, on_state_change: Sequence[OnStateChange], on_dead: Sequence[OnDead], spawn: Spawn) -> None:
        """Call `on_state_change` for every move and `on_dead` for those to the state dead."""
        self._on_state_change = tuple(on_state_change)
        self._on_dead = tuple(on_dead)
        self._spawn = spawn
        # they are called in copies of it: a caller of `tell` may be the code of another job
        self._context = of_no_job()
        self._waiting: deque[StateChange] = deque()
        self._telling = False
        self._told = asyncio.Event()

    @property
    def wanted(self) -> bool:
        """Whether anybody wants to know."""
        return bool(self._on_state_change or self._on_dead)

    def tell(self, moves: list[StateChange]) -> None:
        """Call the hooks for moves that were committed, without waiting for them."""
        self._waiting += moves
        if self._waiting and not self._telling:
            self._telling = True
            self._context.run(self._spawn, self._tell(), name="windlass hooks")

    async def tell_of_rescue(self, rescued: Sequence[Rescued], store: Store) -> None:
        """Call the hooks for jobs that were rescued, which `store` still has."""
        try:
            jobs = await store.get([one.id for one in rescued])
        except WindlassError as error:
            logger.warning("no hook is told of %d jobs that were rescued and cannot be read: %s", len(rescued), error)
            return
        # a job may have gone on since: the server that moved it tells of that
        self.tell(
            [
                StateChange(job._replace(state=one.state), State.RUNNING, one.state)
                for one, job in zip(rescued, jobs, strict=True)
                if job is not None
            ]
        )

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


async def _call(hook: Callable[..., object], job: Job, *states: State) -> None:
    try:
        done = hook(job, *states)
        if inspect.isawaitable(done):
            await done
    except asyncio.CancelledError:
        logger.warning("a hook did not end with its server: %r", hook, extra=fields_of(job))
        raise
    except BaseException:
        # whatever it raises: left alone, a SystemExit would end the event loop
        logger.exception("a hook failed: %r", hook, extra=fields_of(job))
