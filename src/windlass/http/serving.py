"""The serving process: a store, its services and its routes, from a start to a stop."""

import asyncio
import logging
from typing import Final, Self

from windlass.client.client import Client
from windlass.core.errors import Fenced, InvalidValue
from windlass.engine.config import ServerConfig
from windlass.http.app import Api
from windlass.http.front_door import DoorOptions, FrontDoor
from windlass.http.services import ServingServices

logger = logging.getLogger("windlass")

FENCED_GRACE: Final = 0.5
"""Seconds that requests have to be answered, with a refusal, when another process has taken the store over."""


class Serving:
    """Serves the store of a client, which it opens and closes, and runs its services.

    A stop answers whoever waits, lets requests under way be done, and then lets go of the store.
    """

    def __init__(self, client: Client, config: ServerConfig, options: DoorOptions) -> None:
        """Be ready to start; raises `InvalidValue` for what cannot be served safely."""
        if client.store.features.served:
            message = "this store is served by another process already: serve the store itself, by its own URL"
            raise InvalidValue(message)
        self._client = client
        self._grace = config.shutdown_timeout.total_seconds()
        self._door = FrontDoor(options, clock=client.clock)
        # servers renew each third of a lease: those that live have come back by then
        self._services = ServingServices(client, config, rescue_after=client.settings.of("default").lease / 2)
        self._services.fenced = self._fence
        self._fenced: Fenced | None = None
        self._over = asyncio.Event()
        self._api = Api(
            client,
            auth=self._door.auth,
            hosts=self._door.hosts,
            sessions=self._door.sessions,
            services=self._services,
            largest_body=options.largest_body,
        )
        self._listening = self._door.listening(self._api, self._api.stop_waiting)

    @property
    def url(self) -> str:
        """Where it can be reached."""
        return self._door.url(self._listening.port)

    async def start(self) -> None:
        """Open the store, start the services, and then the port; when it raises nothing is left open."""
        try:
            await self._client.open()
            await self._services.start()
            await self._listening.start()
        except BaseException:
            await self._close()
            raise

    async def stop(self) -> None:
        """Stop in the order in which callers notice least."""
        await self._listening.stop(self._grace if self._fenced is None else min(self._grace, FENCED_GRACE))
        await self._close()

    async def serve_until(self, asked_to_stop: asyncio.Event) -> None:
        """Serve until somebody wants it to end; raises `Fenced` when another process has taken the store over."""
        async with self:
            logger.info("serving at %s", self.url)
            await self._until(asked_to_stop)
            if self._fenced is None:
                logger.info("stopping: requests under way have %g seconds", self._grace)
        if self._fenced is not None:
            raise self._fenced

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _until(self, asked_to_stop: asyncio.Event) -> None:
        ends = [asyncio.ensure_future(event.wait()) for event in (asked_to_stop, self._over)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()

    def _fence(self, error: Fenced) -> None:
        self._fenced = self._fenced or error
        self._over.set()

    async def _close(self) -> None:
        await self._api.close()
        await self._services.stop()
        await self._client.close()
