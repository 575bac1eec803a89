"""How a coroutine sleeps until it is rung, from any thread, or until its time is over."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Generator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Final, TypeVar

from windlass.core.clock import Clock
from windlass.core.store import Store
from windlass.core.topics import Topic

T = TypeVar("T")
SOONEST: Final = 0.001
NEXT_AT_PASSED: Final = 0.1
"""Seconds until the next try when the time that the store has named is over by the clock of this process."""


class Bell:
    """Wakes one coroutine of one event loop; may be rung from any thread, and a ring before the wait is kept."""

    __slots__ = ("_clock", "_error", "_loop", "_rung", "_sleeper", "_thread")

    def __init__(self, clock: Clock) -> None:
        """Belong to the running event loop."""
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._rung = False
        self._error: Exception | None = None
        self._sleeper: asyncio.Future[bool] | None = None

    def ring(self) -> None:
        """Wake the sleeper, or let its next sleep end at once."""
        if self._rung:
            return
        self._rung = True
        if threading.get_ident() == self._thread:
            self._wake()
            return
        # a loop that was closed has nobody left to wake
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._wake)

    def clear(self) -> None:
        """Forget what rang; call it before looking, so that nothing that happens after the look is missed."""
        self._rung = False

    async def wait(self, timeout: float | None) -> bool:
        """Sleep until a ring, at most `timeout` seconds; return whether it rang. Raises what it was ended by."""
        if not self._rung and self._error is None:
            self._sleeper = self._loop.create_future()
            await answer(self._sleeper, timeout, self._clock)
        if self._error is not None:
            raise self._error
        return self._rung

    async def find(
        self, look: Callable[[], Awaitable[T]], *, timeout: float, pause: Callable[[T], Awaitable[float]]
    ) -> T:
        """Return what `look` finds: now, at a ring, or after so many seconds as `pause` says; at last after `timeout`.

        `pause` is called with what was found, which is then nothing yet.

        The bell listens before the first look, so that what happens in between rings.
        """
        deadline = self._clock.monotonic() + timeout
        while True:
            self.clear()
            found = await look()
            left = deadline - self._clock.monotonic()
            if found or left <= 0:
                return found
            if (seconds := min(left, await pause(found))) > 0:
                await self.wait(seconds)

    def end(self, error: Exception) -> None:
        """Let this and every later sleep end by `error`."""
        self._error = error
        self.ring()

    def _wake(self) -> None:
        if self._sleeper is not None:
            resolve(self._sleeper, value=True)


class Listeners:
    """Everybody in one client who sleeps until there is news in the store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        """Begin with nobody."""
        self._store = store
        self._clock = clock
        self._bells: set[Bell] = set()

    @contextmanager
    def bell(self, topics: Collection[Topic]) -> Generator[Bell, None, None]:
        """Give a bell that news on `topics` rings, for the time of a block."""
        bell = Bell(self._clock)
        stop = self._store.listen(topics, bell.ring)
        self._bells.add(bell)
        try:
            yield bell
        finally:
            self._bells.discard(bell)
            stop()

    def close(self, error: Exception) -> None:
        """End every sleep by `error`."""
        for bell in list(self._bells):
            bell.end(error)


async def answer(future: asyncio.Future[bool], timeout: float | None, clock: Clock) -> bool:
    """Return what `future` says, or False when `timeout` seconds are over."""
    if timeout is None:
        return await future
    timer = clock.call_later(timeout, lambda: resolve(future, value=False))
    try:
        return await future
    finally:
        timer.cancel()


def resolve(future: asyncio.Future[bool], *, value: bool) -> None:
    """Give `future` its value unless it has one or nobody waits for it any more."""
    if not future.done():
        future.set_result(value)


def pause_until(due_in: timedelta | None, next_at: datetime | None, clock: Clock, longest: float) -> float:
    """Return the seconds until the next claim: until a job comes due or one may be given, and at most `longest`."""
    seconds = longest if due_in is None else min(longest, max(SOONEST, due_in.total_seconds()))
    if next_at is None:
        return seconds
    until = (next_at - clock.now()).total_seconds()
    # over by this clock and not by that of the store: claims one after the other would not make it come sooner
    return min(seconds, max(SOONEST, until) if until > 0 else NEXT_AT_PASSED)
