"""Tells other processes of news, outside of the transactions that made it."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from windlass.core.topics import Topic
from windlass.stores.postgres.channels import channels_of, letters
from windlass.stores.postgres.connections import Connections
from windlass.stores.postgres.listener import Listener
from windlass.stores.postgres.options import Options

logger = logging.getLogger("windlass.postgres")

GATHER_FOR: Final = 0.01
"""How long news gathers after some was sent, in seconds: sending takes a lock of the whole server for a moment."""
SEND_WITHIN: Final = 3.0
CLOSE_WITHIN: Final = 1.0


class Notifier:
    """Sends news through the listener's connection, or one of the pool while there is none.

    What cannot be sent is forgotten: whoever waits for it looks each second anyway.
    """

    def __init__(self, options: Options, connections: Connections, listener: Listener, *, store_id: str) -> None:
        """Send nothing yet."""
        self._on = options.notify
        self._connections = connections
        self._listener = listener
        self._channels = channels_of(store_id)
        self._news: set[Topic] = set()
        self._sender: asyncio.Task[None] | None = None
        self._closing = False

    def tell(self, topics: Iterable[Topic]) -> None:
        """Tell of `topics` soon: the first at once, and together what comes while that is on its way."""
        if not self._on or self._closing:
            return
        self._news.update(topics)
        if self._news and self._sender is None:
            self._sender = asyncio.get_running_loop().create_task(self._send_all(), name="windlass notifier")

    async def close(self) -> None:
        """Send what is left, or give it up after a second."""
        self._closing = True
        sender = self._sender
        if sender is not None:
            await asyncio.wait({sender}, timeout=CLOSE_WITHIN)
            sender.cancel()
            await asyncio.wait({sender})

    async def _send_all(self) -> None:
        try:
            while self._news:
                news, self._news = self._news, set()
                try:
                    await self._send(news)
                except Exception as error:  # noqa: BLE001 - polling finds what it told of
                    logger.debug("news could not be sent: %r", error)
                if not self._closing:
                    await asyncio.sleep(GATHER_FOR)
        finally:
            self._sender = None

    async def _send(self, news: set[Topic]) -> None:
        for channel, payload in letters(self._channels, news):
            if not await self._listener.tell(channel, payload):
                await self._send_otherwise(channel, payload)

    async def _send_otherwise(self, channel: str, payload: str) -> None:
        deadline = asyncio.get_running_loop().time() + SEND_WITHIN
        async with self._connections.session(deadline, aside=True) as session:
            session.deadline.set(deadline)
            try:
                await session.fetch("notify", {"channel": channel, "message": payload})
            finally:
                session.deadline.clear()
