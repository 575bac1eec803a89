"""What was claimed ahead of a free slot goes back when it waits for too long, or when its queue is paused."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from windlass.core.clock import Clock, Timer
from windlass.core.errors import Fenced, WindlassError
from windlass.core.store import Store
from windlass.core.topics import PAUSES
from windlass.engine.attempt import Attempt

logger = logging.getLogger("windlass")

AHEAD_FOR: Final = 1.0
"""Seconds after which a claim that was not started is given back."""
LOOK_EVERY: Final = 0.25


class Ahead(Protocol):
    """Who has claims that are not begun."""

    def waiting(self) -> list[Attempt]:
        """Return what is not begun."""
        ...

    def release_those(self, which: Callable[[Attempt], bool]) -> None:
        """Give back what is not begun, those that are meant."""
        ...


class AheadWatch:
    """Looks at what waits, while something does, and at each pause of a queue."""

    def __init__(self, ahead: Ahead, store: Store, clock: Clock) -> None:
        """Watch nothing yet."""
        self._ahead = ahead
        self._store = store
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timer: Timer | None = None
        self._over = False
        self._checks: set[asyncio.Task[None]] = set()
        self.pauses = 0
        """How often queues were paused or resumed, for all that was heard."""

    def listen(self) -> Callable[[], None]:
        """Hear of pauses; return what ends that."""
        return self._store.listen((PAUSES,), self._told)

    def begin(self) -> None:
        """Look soon at what waits, and again while something does."""
        if self._timer is None and not self._over:
            self._timer = self._clock.call_later(LOOK_EVERY, self._look)

    def end(self) -> None:
        """Look no more at how long anything waits."""
        self._over = True
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        """Ask no more which queues are paused."""
        for check in self._checks:
            check.cancel()

    async def release_paused(self) -> None:
        """Give back what waits in queues that are paused."""
        try:
            paused = set(await self._store.paused(sorted({attempt.job.queue for attempt in self._ahead.waiting()})))
        except Fenced:
            return
        except WindlassError as error:
            # they are given back within a second, or started
            logger.warning("cannot look which queues are paused: %s", error)
            return
        self._ahead.release_those(lambda attempt: attempt.job.queue in paused)

    def _look(self) -> None:
        self._timer = None
        oldest = self._clock.monotonic() - AHEAD_FOR
        self._ahead.release_those(lambda attempt: attempt.claimed_at <= oldest)
        if self._ahead.waiting():
            self.begin()

    def _told(self) -> None:
        """Look, on the event loop, whether a queue was paused of which claims wait here; called from any thread."""
        self._loop.call_soon_threadsafe(self._begin_check)

    def _begin_check(self) -> None:
        self.pauses += 1
        if self._ahead.waiting():
            check = self._loop.create_task(self.release_paused())
            self._checks.add(check)
            check.add_done_callback(self._checks.discard)
