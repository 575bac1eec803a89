"""Unstarted claims: claims that wait for a free slot, and their release before they wait for too long."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from windlass.core.clock import Clock, Timer
from windlass.core.errors import Fenced, WindlassError
from windlass.core.store import Store
from windlass.core.topics import PAUSES
from windlass.core.verdict import GivenBack
from windlass.engine.attempt import Attempt
from windlass.engine.settlement_writer import SettlementWriter

logger = logging.getLogger("windlass")

AHEAD_FOR: Final = 1.0
"""Seconds after which a claim that was not started is given back."""
CHECK_INTERVAL: Final = 0.25
"""Seconds between two checks for claims that wait for too long."""


class UnstartedClaims:
    """Attempts in the order in which they are to begin.

    An attempt is released when it has waited for a second, when its queue is paused, and at the stop.
    """

    def __init__(self, store: Store, settlements: SettlementWriter, clock: Clock) -> None:
        """Release through `settlements`; `store` knows which queues are paused."""
        self._store = store
        self._settlements = settlements
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self.line: Final[deque[Attempt]] = deque()
        """Attempts that begin as soon as a slot is free."""
        self.behind: Final[list[list[Attempt]]] = []
        """Attempts of claims that were answered before an earlier claim was: they join the line after its attempts."""
        self.pauses = 0
        """Number of notifications that a queue was paused or resumed."""
        self._timer: Timer | None = None
        self._stopped = False
        self._checks: set[asyncio.Task[None]] = set()

    def all(self) -> list[Attempt]:
        """Return every attempt that has not begun."""
        return [attempt for line in (self.line, *self.behind) for attempt in line]

    def release(self, attempt: Attempt) -> None:
        """Give one claim back: its job may be claimed again at once and has lost no attempt."""
        self._settlements.add(attempt, GivenBack(started=False))

    def release_where(self, condition: Callable[[Attempt], bool]) -> None:
        """Give back every claim for which `condition` holds; the others keep their order."""
        for line in (self.line, *self.behind):
            waiting = list(line)
            line.clear()
            for attempt in waiting:
                if condition(attempt):
                    self.release(attempt)
                else:
                    line.append(attempt)

    def release_all(self) -> None:
        """Give all claims back."""
        self.release_where(lambda _: True)

    async def release_paused(self) -> None:
        """Give back the claims of queues that are paused."""
        try:
            paused = set(await self._store.paused(sorted({attempt.job.queue for attempt in self.all()})))
        except Fenced:
            return
        except WindlassError as error:
            # they are given back within a second, or started
            logger.warning("cannot look which queues are paused: %s", error)
            return
        self.release_where(lambda attempt: attempt.job.queue in paused)

    def clear(self) -> None:
        """Forget all claims and give none back, as a process that is gone."""
        for line in (self.line, *self.behind):
            line.clear()
        self.stop_watch()

    # watch

    def listen(self) -> Callable[[], None]:
        """Listen for paused queues; return the function that ends it."""
        return self._store.listen((PAUSES,), self._on_pause)

    def watch(self) -> None:
        """Check soon for claims that wait for too long, and again while any claim waits."""
        if self._timer is None and not self._stopped:
            self._timer = self._clock.call_later(CHECK_INTERVAL, self._release_old)

    def stop_watch(self) -> None:
        """Check no more for claims that wait for too long."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def close(self) -> None:
        """End the queries for paused queues."""
        for check in self._checks:
            check.cancel()

    def _release_old(self) -> None:
        self._timer = None
        oldest = self._clock.monotonic() - AHEAD_FOR
        self.release_where(lambda attempt: attempt.claimed_at <= oldest)
        if self.line or any(self.behind):
            self.watch()

    def _on_pause(self) -> None:
        """Check the queues of the waiting claims on the event loop; called from any thread."""
        self._loop.call_soon_threadsafe(self._begin_check)

    def _begin_check(self) -> None:
        self.pauses += 1
        if self.line or any(self.behind):
            check = self._loop.create_task(self.release_paused())
            self._checks.add(check)
            check.add_done_callback(self._checks.discard)
