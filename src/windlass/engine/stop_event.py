"""The event that tells running code to stop, whichever thread it is in."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from windlass.client.bell import resolve
from windlass.core.duration import Duration, duration


class StopEvent:
    """Set once, with the reason: `cancel`, `stop`, `timeout` or `claim_lost`; may be used from any thread."""

    __slots__ = ("_calls", "_guard", "_reason")

    def __init__(self) -> None:
        """Be not set."""
        self._reason: str | None = None
        self._calls: list[Callable[[], None]] = []
        self._guard = threading.Lock()

    @property
    def reason(self) -> str | None:
        """Why the job should stop; None while the event is not set."""
        return self._reason

    def is_set(self) -> bool:
        """Whether the job should stop."""
        return self._reason is not None

    async def wait(self) -> None:
        """Return when the job should stop."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[bool] = loop.create_future()

        def tell() -> None:
            # a loop that was closed has nobody left to wake
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: resolve(told, value=True))

        if self._call(tell):
            try:
                await told
            finally:
                self._forget(tell)

    def wait_sync(self, timeout: Duration | None = None) -> bool:
        """Block this thread until the job should stop, at most `timeout`; return whether it should."""
        seconds = None if timeout is None else duration(timeout, "timeout").total_seconds()
        told = threading.Event()
        if self._call(told.set):
            told.wait(seconds)
            self._forget(told.set)
        return self.is_set()

    def fire(self, reason: str) -> None:
        """Set the event; the first reason stays."""
        with self._guard:
            if self._reason is not None:
                return
            self._reason = reason
            calls, self._calls = self._calls, []
        for call in calls:
            call()

    def _call(self, call: Callable[[], None]) -> bool:
        """Have `call` called when the event is set; False when it is set already."""
        with self._guard:
            if self._reason is None:
                self._calls.append(call)
                return True
        return False

    def _forget(self, call: Callable[[], None]) -> None:
        with self._guard, suppress(ValueError):
            self._calls.remove(call)
