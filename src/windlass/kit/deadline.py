"""One timer for the deadlines of calls that follow each other on a connection."""

import asyncio
from collections.abc import Callable
from typing import Final

EARLY: Final = 0.002
"""Seconds by which the timers of an event loop may ring too soon, and a deadline be taken for passed."""


class Deadline:
    """Calls `passed` when the deadline of the call under way has passed; belongs to one event loop.

    A timeout for each call would be an object, a timer and its cancellation each time. Here a timer that was set for
    an earlier call stays as it is, and looks again when it rings.
    """

    __slots__ = ("_at", "_passed", "_timer")

    def __init__(self, passed: Callable[[], None]) -> None:
        """Begin with no deadline."""
        self._passed = passed
        self._at: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def set(self, at: float) -> None:
        """Let the call that begins now end at `at`, by the clock of the running loop."""
        self._at = at
        if self._timer is None or self._timer.when() > at:
            self._ring_at(at)

    def clear(self) -> None:
        """Forget the deadline: the call has ended."""
        self._at = None

    def close(self) -> None:
        """Ring no more."""
        self._at = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring_at(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(at, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._at is None:
            return
        if asyncio.get_running_loop().time() < self._at - EARLY:
            self._ring_at(self._at)
        else:
            self._at = None
            self._passed()
