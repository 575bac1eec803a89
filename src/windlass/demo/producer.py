"""The producer: the shop's customers, who keep the queues busy."""

import asyncio
import random
from contextlib import suppress
from typing import Any, Final

import windlass
from windlass.demo.app import app, make_thumbnail, send_email

EVERY: Final = 0.25
"""Seconds from one batch to the next."""
MOST_WAITING: Final = 150
"""Jobs in line from which on nobody brings more: the machine may be a slow one."""


class Producer:
    """Brings jobs until it is told to end; `enqueued` are the ids of those that it was told are kept."""

    def __init__(self) -> None:
        self._chance = random.Random(1)
        self._count = 0
        self.ending = asyncio.Event()
        """Set to end it after the batch that is on its way."""
        self.enqueued: list[str] = []

    async def produce(self) -> None:
        while not self.ending.is_set():
            if (await app.client.stats()).pending < MOST_WAITING:
                self.enqueued += [handle.id for handle in await app.enqueue_many(self._batch())]
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ending.wait(), EVERY)

    def _batch(self) -> list[windlass.Call[Any]]:
        calls: list[windlass.Call[Any]] = []
        for _ in range(self._chance.randint(2, 9)):
            self._count += 1
            calls.append(send_email.call(f"customer-{self._count}@example.com"))
        if self._chance.random() < 0.3:
            calls.append(make_thumbnail.call(self._count))
        return calls
