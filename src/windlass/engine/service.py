"""Start, stop and loop of a background service, written once."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from windlass.core.clock import Clock, Rng, Running, Spawn
from windlass.core.duration import ZERO
from windlass.core.errors import Fenced, WindlassError
from windlass.core.retry import Exponential

logger = logging.getLogger("windlass")

BACKOFF: Final = Exponential(base=0.5, factor=2, cap=30)
_MANY: Final = 20
"""Failures after which the backoff has long reached its cap."""


def trace_of(error: Exception) -> Exception | None:
    """Return what a log shows of an error beside its message: nothing where it is the store that is away."""
    return None if isinstance(error, WindlassError) else error


def backoff(failures: int, rng: Rng) -> float:
    """Return how many seconds to wait after `failures` in a row: half a second to half a minute, with jitter."""
    delay = BACKOFF.delay(min(failures, _MANY), None, rng.random())
    return 0.0 if delay is None else delay.total_seconds()


class Service(ABC):
    """A background loop: `tick` now and after each interval, until it is stopped.

    Start and stop may be called by many at once and again and again: when a start returns the loop runs, when a stop
    returns it does not. An error of a tick is logged and backed off from, and the loop goes on; `Fenced` ends it, since
    no other try could end otherwise.
    """

    name: str
    interval: timedelta
    begins_after: timedelta = ZERO
    """How long it waits before its first tick."""

    def __init__(self, *, clock: Clock, rng: Rng, spawn: Spawn) -> None:
        """Be ready to start."""
        self._clock = clock
        self._rng = rng
        self._spawn = spawn
        self._turn = asyncio.Lock()
        self._running: Running | None = None
        self._ended = asyncio.Event()
        self.fenced: Callable[[Fenced], None] = self._tell_of_fence
        """Called when the loop has ended because another process has taken the store over."""

    @abstractmethod
    async def tick(self) -> None:
        """Do the work once. It may be cut short between two calls of the store by a stop."""

    async def tick_first(self) -> None:
        """Do the work once before the start, which then begins with a pause; raises what the work does."""
        await self.tick()
        self.begins_after = self.interval

    async def rest(self, seconds: float) -> None:
        """Wait until the next tick."""
        await self._clock.sleep(seconds)

    async def leave(self) -> None:  # noqa: B027 - most services leave nothing behind
        """Undo at the stop what the ticks left behind; there is nothing by default."""

    @property
    def running(self) -> bool:
        """Whether the loop runs."""
        return self._running is not None

    async def start(self) -> None:
        """Begin the loop; harmless when it runs."""
        async with self._turn:
            if self._running is None:
                begun = asyncio.Event()
                self._ended.clear()
                self._running = self._spawn(self._loop(begun), name=f"windlass {self.name}")
                # a task that is cancelled before its first step never reaches its end, and stop would wait for it
                await begun.wait()

    async def stop(self) -> None:
        """End the loop, and return when it has ended; harmless when it does not run."""
        async with self._turn:
            if self._running is None:
                return
            self._running.cancel()
            await self._ended.wait()
            self._running = None
            await self._leave()

    async def _loop(self, begun: asyncio.Event) -> None:
        begun.set()
        failures = 0
        try:
            if self.begins_after:
                await self.rest(self.begins_after.total_seconds())
            while True:
                failures = 0 if await self._tick(failures) else failures + 1
                await self.rest(self._pause(failures))
        except Fenced as error:
            self.fenced(error)
        finally:
            self._ended.set()

    async def _tick(self, failures: int) -> bool:
        try:
            await self.tick()
        except Fenced:
            raise
        except Exception as error:
            text = "%s failed %d times in a row; it goes on: %s"
            logger.error(text, self.name, failures + 1, error, exc_info=trace_of(error))  # noqa: TRY400
            return False
        return True

    def _pause(self, failures: int) -> float:
        if not failures:
            return self.interval.total_seconds()
        return backoff(failures, self._rng)

    def _tell_of_fence(self, error: Fenced) -> None:
        logger.error("%s has ended: %s", self.name, error)

    async def _leave(self) -> None:
        try:
            await self.leave()
        except Fenced:
            # what it left behind is seen to by the new owner
            logger.debug("%s takes no leave of a store that another process has taken over", self.name)
        except Exception as error:
            logger.error("%s could not take its leave: %s", self.name, error, exc_info=trace_of(error))  # noqa: TRY400
