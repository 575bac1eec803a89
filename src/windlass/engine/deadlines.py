"""Timeouts of attempts, without a timer for each."""

import math
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from windlass.core.clock import Clock, Timer
from windlass.engine.attempt import Attempt

SOONEST: Final = 0.001


class Deadlines:
    """Calls back for each attempt that has run longer than its timeout.

    Attempts with the same timeout come due in the order in which they began, so that one line for each timeout and one
    timer for all of them do.
    """

    def __init__(self, clock: Clock, late: Callable[[Attempt], None]) -> None:
        """Call `late` on the event loop."""
        self._clock = clock
        self._late = late
        self._lines: dict[timedelta, OrderedDict[Attempt, float]] = {}
        self._timer: Timer | None = None
        self._due = math.inf

    def add(self, attempt: Attempt, timeout: timedelta, now: float) -> None:
        """Watch an attempt that begins now."""
        line = self._lines.get(timeout)
        if line is None:
            line = self._lines[timeout] = OrderedDict()
        line[attempt] = due = now + timeout.total_seconds()
        # a timer for one that has ended meanwhile is left as it is: it rings in vain, once
        if due < self._due:
            self._set_timer(due)

    def discard(self, attempt: Attempt, timeout: timedelta) -> None:
        """Watch an attempt no longer."""
        if (line := self._lines.get(timeout)) is not None:
            line.pop(attempt, None)

    def close(self) -> None:
        """Call nobody any more."""
        self._lines.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._due = math.inf

    def _set_timer(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._clock.call_later(max(SOONEST, due - self._clock.monotonic()), self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._due = math.inf
        now = self._clock.monotonic()
        for line in self._lines.values():
            while line and next(iter(line.values())) <= now:
                attempt, _ = line.popitem(last=False)
                self._late(attempt)
        if waiting := [next(iter(line.values())) for line in self._lines.values() if line]:
            self._set_timer(min(waiting))
