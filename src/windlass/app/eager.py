"""Eager mode: jobs are run in place by whoever enqueues them."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future

from windlass.client.client import Client
from windlass.core.ids import JobId
from windlass.core.job import Enqueued
from windlass.engine.inline import Inline
from windlass.engine.observed import Observed
from windlass.engine.served import Served


class Eager:
    """Runs the jobs of an app in the event loop that they are enqueued from, through the client that it has there."""

    def __init__(self, app: Served) -> None:
        """Run nothing yet."""
        self._app = app
        self._running: dict[JobId, Future[None]] = {}
        self._inlines: dict[Client, tuple[asyncio.AbstractEventLoop, Inline]] = {}

    async def run(self, client: Client, enqueued: Sequence[Enqueued]) -> None:
        """Run what was enqueued through `client`, and what it leads to; retries and delays take no time."""
        if client not in self._inlines:
            # what belongs to an event loop that has ended is closed
            self._inlines = {each: pair for each, pair in self._inlines.items() if not pair[0].is_closed()}
            inline = Inline(Observed(self._app, client), self._running)
            self._inlines[client] = asyncio.get_running_loop(), inline
        _, inline = self._inlines[client]
        await inline.finish([each.id for each in enqueued if each.created])

    async def close(self) -> None:
        """Close what was opened for handlers, each in the event loop that it is open in."""
        inlines, self._inlines = self._inlines, {}
        for loop, inline in inlines.values():
            if loop is asyncio.get_running_loop():
                await inline.close()
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(inline.close(), loop))

    async def close_for(self, client: Client) -> None:
        """Close what was opened for the jobs that were enqueued through `client`."""
        _, inline = self._inlines.pop(client, (None, None))
        if inline is not None:
            await inline.close()
