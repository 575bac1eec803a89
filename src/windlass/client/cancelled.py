"""The event of a claim that tells its holder to stop."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from windlass.client.bell import resolve
from windlass.core.duration import Duration, duration
from windlass.core.ids import JobId
from windlass.core.job import Token

if TYPE_CHECKING:
    from windlass.client.watch import Watcher

# one for all events: it is held for the time of an append, by those few who wait
_guard = threading.Lock()


class Cancelled:
    """Set when a claim's job was asked to stop (`cancel`) or is no longer held (`claim_lost`); for any thread.

    It is watched from the first look at it on, so that a claim whose event nobody looks at costs nothing. A request
    from another process is seen within `poll_interval` of that first look, and then at once.
    """

    __slots__ = ("__weakref__", "_born", "_calls", "_reason", "_watched", "_watcher", "job_id", "token")

    def __init__(self, watcher: "Watcher", job_id: JobId, token: Token, *, requested: bool) -> None:
        """Stand for one claim; `requested` when its job was asked to stop before the claim."""
        self.job_id = job_id
        self.token = token
        self._watcher = watcher
        self._born = watcher.requests
        self._reason = "cancel" if requested else None
        self._watched = requested
        self._calls: list[Callable[[], None]] | None = None  # most claims never need a list

    @property
    def reason(self) -> str | None:
        """Why the job should stop; None while the event is not set."""
        return self._reason if self.is_set() else None

    def is_set(self) -> bool:
        """Whether the job should stop."""
        if not self._watched:
            self._watched = True
            self._watcher.watch(self, born=self._born)
        return self._reason is not None

    async def wait(self) -> None:
        """Return when the job should stop."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[bool] = loop.create_future()

        def tell() -> None:
            # a loop that was closed has nobody left to wake
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: resolve(told, value=True))

        await self._until(tell, told)

    def wait_sync(self, timeout: Duration | None = None) -> bool:
        """Block this thread until the job should stop, at most `timeout`; return whether it should."""
        seconds = None if timeout is None else duration(timeout, "timeout").total_seconds()
        told = threading.Event()
        self._call(told.set)
        try:
            return self.is_set() or told.wait(seconds)
        finally:
            self._forget(told.set)

    def fire(self, reason: str) -> None:
        """Set the event; the first reason stays."""
        # whoever waits adds its call first and looks at the reason then, so that one of the two reaches it
        if self._reason is not None:
            return
        self._reason = reason
        for call in list(self._calls or ()):
            call()

    def settle(self) -> None:
        """Stop watching: the claim ended by its holder."""
        if self._watched:
            self._watcher.forget(self)
        self._watched = True

    async def _until(self, tell: Callable[[], None], told: asyncio.Future[bool]) -> None:
        self._call(tell)
        try:
            if not self.is_set():
                await told
        finally:
            self._forget(tell)

    def _call(self, call: Callable[[], None]) -> None:
        with _guard:
            self._calls = self._calls or []
            self._calls.append(call)

    def _forget(self, call: Callable[[], None]) -> None:
        with _guard:
            if self._calls and call in self._calls:
                self._calls.remove(call)
