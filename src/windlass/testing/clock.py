"""A clock that moves only when told, so that tests need no sleeps."""

import asyncio
import heapq
import threading
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Final

from windlass.core.clock import Timer
from windlass.core.duration import LONGEST, ZERO, Duration, duration

START: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
FEW_TURNS: Final = 25
MANY_TURNS: Final = 1_000
LEAST: Final = timedelta(microseconds=1)


class FakeClock:
    """Time that stands still until `advance` is called; may be read and moved from any thread.

    >>> clock = FakeClock()
    >>> clock.advance(90)
    >>> print(clock.now())
    2026-01-01 12:01:30+00:00
    """

    goes_by_itself = False

    def __init__(self, start: datetime = START) -> None:
        """Stand still at `start`."""
        self._start = start
        self._elapsed = ZERO
        self._waiting: list[_Waiting] = []
        self._watchers: list[_Watcher] = []
        self._made = 0
        self._guard = threading.RLock()

    def now(self) -> datetime:
        """Return the wall time in UTC."""
        return self._start + self._elapsed

    def monotonic(self) -> float:
        """Return the seconds since the clock was made."""
        return self._elapsed.total_seconds()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` on the running event loop when the clock was moved by `delay` seconds."""
        loop = asyncio.get_running_loop()
        if delay <= 0:
            return loop.call_soon(callback)
        with self._guard:
            self._made += 1
            # whoever sleeps for the rest of a float, less than this clock can tell, would sleep it again and again
            due = self._elapsed + max(LEAST, timedelta(seconds=min(delay, LONGEST.total_seconds())))
            timer = _Waiting(due, self._made, loop, callback, self._forget)
            heapq.heappush(self._waiting, timer)
            self._tell_watchers()
        return timer

    async def sleep(self, delay: float) -> None:
        """Return when the clock was moved by `delay` seconds."""
        if delay <= 0:
            await asyncio.sleep(0)
            return
        over = asyncio.get_running_loop().create_future()
        timer = self.call_later(delay, lambda: None if over.done() else over.set_result(None))
        try:
            await over
        finally:
            timer.cancel()

    def advance(self, by: Duration) -> None:
        """Move the time on; what comes due runs in order, and sees the time that it was due at.

        A timer of the running loop runs before `advance` returns. A timer of another loop is handed to that loop.
        """
        end = self._elapsed + duration(by, "by")
        while (timer := self._next_due(end)) is not None:
            timer.run()
        with self._guard:
            self._elapsed = max(self._elapsed, end)

    async def let_pass(self, by: Duration, *, after_each: Callable[[], Awaitable[None]] | None = None) -> None:
        """Move the time on from timer to timer: what wakes comes as far as it can before the next one is due.

        Where `advance` makes one leap, this lives through the time, as a server does that beats, renews and looks for
        work. `after_each` is awaited after each step, in place of what lets the event loop go round.
        """
        rest = after_each or turns
        end = self._elapsed + duration(by, "by")
        await rest()
        while (due := self._first_due(end)) is not None:
            self.advance(max(ZERO, due - self._elapsed))
            await rest()
        self.advance(max(ZERO, end - self._elapsed))
        await rest()

    async def timers(self, count: int) -> None:
        """Return when at least `count` timers wait: a test then knows that a call sleeps, and may advance."""
        with self._guard:
            if len(self._waiting) >= count:
                return
            watcher = _Watcher(count, asyncio.get_running_loop())
            self._watchers.append(watcher)
        await watcher.seen

    @property
    def waiting(self) -> int:
        """How many timers wait."""
        with self._guard:
            return len(self._waiting)

    def _first_due(self, end: timedelta) -> timedelta | None:
        with self._guard:
            return self._waiting[0].due if self._waiting and self._waiting[0].due <= end else None

    def _next_due(self, end: timedelta) -> "_Waiting | None":
        with self._guard:
            if not self._waiting or self._waiting[0].due > end:
                return None
            timer = heapq.heappop(self._waiting)
            self._elapsed = max(self._elapsed, timer.due)
            return timer

    def _forget(self, timer: "_Waiting") -> None:
        with self._guard:
            if timer in self._waiting:
                self._waiting.remove(timer)
                heapq.heapify(self._waiting)

    def _tell_watchers(self) -> None:
        ready = [watcher for watcher in self._watchers if len(self._waiting) >= watcher.count]
        for watcher in ready:
            self._watchers.remove(watcher)
            watcher.tell()


class _Waiting:
    """A callback that is still to come, in the loop that asked for it."""

    def __init__(
        self,
        due: timedelta,
        number: int,
        loop: asyncio.AbstractEventLoop,
        callback: Callable[[], None],
        forget: "Callable[[_Waiting], None]",
    ) -> None:
        self.due = due
        self._number = number
        self._loop = loop
        self._callback = callback
        self._forget = forget
        self._cancelled = False

    def __lt__(self, other: "_Waiting") -> bool:
        return (self.due, self._number) < (other.due, other._number)

    def cancel(self) -> None:
        """Take the callback back."""
        self._cancelled = True
        self._forget(self)

    def run(self) -> None:
        """Call it here when this is its loop, else let its loop call it."""
        if _running_loop() is self._loop:
            self._call()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._call)

    def _call(self) -> None:
        if not self._cancelled:
            self._callback()


class _Watcher:
    """Somebody who waits until `count` timers wait."""

    def __init__(self, count: int, loop: asyncio.AbstractEventLoop) -> None:
        self.count = count
        self.seen: asyncio.Future[None] = loop.create_future()
        self._loop = loop

    def tell(self) -> None:
        """Wake it, in its own loop."""
        self._loop.call_soon_threadsafe(self._set)

    def _set(self) -> None:
        if not self.seen.done():
            self.seen.set_result(None)


async def turns() -> None:
    """Let the event loop go round until nothing is left that can run now; what runs in threads is not waited for."""
    # asyncio's own loop shows what is ready; another one gets as many turns as ordinary code needs
    ready: Collection[object] | None = getattr(asyncio.get_running_loop(), "_ready", None)
    for _ in range(FEW_TURNS if ready is None else MANY_TURNS):
        await asyncio.sleep(0)
        if ready is not None and not ready:
            return


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
