"""A way from plain threads into an event loop that runs in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from windlass.borrow.call import Call
from windlass.core.errors import ClientClosed

R = TypeVar("R")


class Portal:
    """One event loop in a daemon thread, which begins with the first call."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._gate = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stopped: asyncio.Event | None = None
        self._closed = False

    def call(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Run `work` in the loop and return its result; an interrupt of the caller cancels it."""
        with self._gate:
            if self._closed:
                raise ClientClosed
            # within the gate: what is sent before the stop is begun before it, and so it has an end
            call = Call(self._loop or self._start(), work)
        return call.result()

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run `last` if there was any call, then end the loop; calls still under way end by `ClientClosed`."""
        loop = self._loop
        if loop is None or self._closed:
            self._closed = True
        else:
            self.call(last)
            self._stop(loop)

    def leave(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Let `last` be run and the loop end, without waiting for it."""
        loop = self._loop
        if loop is not None and not self._closed:
            with suppress(RuntimeError):  # the loop has ended already
                loop.call_soon_threadsafe(lambda: loop.create_task(self._finish(last)))

    def _start(self) -> asyncio.AbstractEventLoop:
        begun: SimpleQueue[asyncio.AbstractEventLoop] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(begun,), name="windlass blocking client", daemon=True)
        self._thread.start()
        self._loop = begun.get()
        return self._loop

    def _run(self, begun: "SimpleQueue[asyncio.AbstractEventLoop]") -> None:
        asyncio.run(self._live(begun))

    async def _live(self, begun: "SimpleQueue[asyncio.AbstractEventLoop]") -> None:
        self._stopped = asyncio.Event()
        begun.put(asyncio.get_running_loop())
        await self._stopped.wait()

    async def _finish(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await last()
        self._closed = True
        if self._stopped is not None:
            self._stopped.set()

    def _stop(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._gate:
            self._closed = True
        if self._stopped is not None and self._thread is not None:
            loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()
