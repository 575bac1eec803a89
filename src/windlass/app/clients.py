"""The clients of an app: one in the event loop that uses it, and one for code without an event loop."""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Final

from windlass.blocking.client import BlockingClient
from windlass.client.client import Client
from windlass.core.errors import AlreadyRunning

logger = logging.getLogger("windlass")

_ELSEWHERE: Final = (
    "the app is open in another event loop: close it there first, use enqueue_sync here, or make another App"
)


class Clients:
    """Makes clients when they are needed, and others after they were closed, and after a fork."""

    def __init__(self, make: Callable[[], Client]) -> None:
        """Make each by `make`."""
        self._make = make
        self._guard = threading.RLock()
        self._client: Client | None = None
        self._end_of_loop: AsyncGenerator[None, None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0
        self._blocking: BlockingClient | None = None

    @property
    def made(self) -> bool:
        """Whether there is any client."""
        return self._client is not None or self._blocking is not None

    @property
    def has_blocking(self) -> bool:
        """Whether there is a client for code without an event loop."""
        return self._blocking is not None

    @property
    def client(self) -> Client:
        """The client for the running event loop; it belongs to the first loop that asks for it."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        client = self._client
        if client is not None and loop is self._loop:
            return client
        with self._guard:
            return self._client_for(loop)

    @property
    def blocking(self) -> BlockingClient:
        """The client for code without an event loop, which any thread may use."""
        with self._guard:
            if self._blocking is None:
                self._blocking = BlockingClient(self._make)
            return self._blocking

    async def close(self) -> None:
        """Close what is open; another use makes new ones. Raises `AlreadyRunning` if that is in another event loop."""
        with self._guard:
            client, loop, blocking, end_of_loop = self._client, self._loop, self._blocking, self._end_of_loop
            mine = loop is None or loop is asyncio.get_running_loop()
            if not mine and not self._is_stale():
                raise AlreadyRunning(_ELSEWHERE)
            self._client = self._loop = self._blocking = self._end_of_loop = None
        if blocking is not None:
            await asyncio.to_thread(blocking.close)
        if client is not None and mine:
            await client.close()
            if end_of_loop is not None:
                await end_of_loop.aclose()

    def close_blocking(self) -> None:
        """Close the client for code without an event loop."""
        with self._guard:
            blocking, self._blocking = self._blocking, None
        if blocking is not None:
            blocking.close()

    def _client_for(self, loop: asyncio.AbstractEventLoop | None) -> Client:
        if self._client is None or self._is_stale():
            self._client, self._loop, self._pid = self._make(), None, os.getpid()
        if loop is not None and self._loop is None:
            self._loop, self._end_of_loop = loop, _close_at_end_of_loop(self._client)
        if loop is not None and self._loop is not loop:
            raise AlreadyRunning(_ELSEWHERE)
        return self._client

    def _is_stale(self) -> bool:
        if self._pid != os.getpid():
            return True
        if self._loop is None or not self._loop.is_closed():
            return False
        if self._client is not None and self._client.closed:
            return True
        logger.warning("the app was not closed before its event loop was: use `async with app`, or app.close()")
        return True


def _close_at_end_of_loop(client: Client) -> AsyncGenerator[None, None]:
    """Have the running event loop close `client` when it shuts its asynchronous generators down, as `asyncio.run` does.

    So `asyncio.run(handler.enqueue(...))` leaves no thread and no file open, however often a program calls it.
    """

    async def close_at_end() -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await client.close()

    generator = close_at_end()
    # the loop registers a generator at its first step, which here needs no await
    with suppress(StopIteration):
        generator.__anext__().send(None)
    return generator
