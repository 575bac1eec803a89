"""What a serving process runs beside its routes, since the servers that it serves only work."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from windlass.client.client import Client
from windlass.core.duration import ZERO
from windlass.core.errors import Fenced
from windlass.core.looks import SERVES, ServerRecord
from windlass.engine.config import ServerConfig
from windlass.engine.heart import SCHEDULING, Heart, new_record, new_server_id
from windlass.engine.owner_watch import owner_watch
from windlass.engine.served import Around
from windlass.engine.service import Service
from windlass.engine.services import upkeep
from windlass.kit.timeouts import call_with_timeout
from windlass.schedule.declared_by_servers import DeclaredByServers
from windlass.schedule.scheduler import Scheduler
from windlass.system import TaskSpawn

logger = logging.getLogger("windlass")

STOPPED_WITHIN: Final = 2.0
"""Seconds after which a stop no longer waits for the store."""


class ServingServices:
    """Rescue, promotion, pruning, every schedule that is due, and a heart, so that people see who serves.

    It can be started again after a stop, and is another process to the store then, with an id of its own.
    """

    def __init__(
        self, client: Client, config: ServerConfig, *, name: str = "serve", rescue_after: timedelta = ZERO
    ) -> None:
        """Be ready to start on the store of `client`, whose settings tell what is kept; `name` is shown to people.

        `rescue_after` gives servers time to come back, and to renew what they hold, before any lease that ran out
        while nobody served is taken from them.
        """
        self._rescue_after = rescue_after
        self._client = client
        self._config = config
        self._name = name
        self._turn = asyncio.Lock()
        self._spawn = TaskSpawn()
        self._record: ServerRecord | None = None
        self._running: list[Service] = []
        self._scheduler: Scheduler | None = None
        self.fenced: Callable[[Fenced], None] = _tell_of_fence
        """Called, by each service that meets it, when another process has taken the store over; to be set before."""

    @property
    def id(self) -> str | None:
        """How the process is registered, as `name#uuid`; None when nothing runs."""
        return None if self._record is None else self._record.id

    async def start(self) -> None:
        """Begin, in the event loop of the client, which is open; harmless when it runs.

        When it returns, the process is registered and, unless rescue waits, jobs that were stranded are rescued. When
        it raises, nothing was begun.
        """
        async with self._turn:
            if self._running:
                return
            try:
                await self._start()
            except BaseException:
                await self._stop()
                raise

    async def stop(self) -> None:
        """End all, take the process out, and return when that is done or the store does not answer."""
        async with self._turn:
            await self._stop()

    def look(self) -> None:
        """Look again which schedules are due: a server has come, or declares others than before."""
        if self._scheduler is not None:
            self._scheduler.look()

    async def _start(self) -> None:
        client, config, spawn = self._client, self._config, self._spawn
        store, clock, rng = client.store, client.clock, client.rng
        record = self._record = self._new_record()
        heart = Heart(store, lambda: record, clock=clock, rng=rng, spawn=spawn, interval=config.heartbeat_interval)
        self._running.append(heart)
        await heart.tick()
        if config.services:
            kept = upkeep(
                store,
                config.retention(client.settings),
                clock=clock,
                rng=rng,
                spawn=spawn,
                rescue_interval=config.rescue_interval,
                prune_interval=config.prune_interval,
                rescue_after=self._rescue_after,
            )
            self._running += kept
            if not self._rescue_after:
                await kept[0].tick()
        if config.schedules:
            counted = DeclaredByServers(store, dead_after=config.dead_after, clock=clock)
            around = Around(config, clock, rng, spawn, client, record.id)
            self._scheduler = Scheduler(client, counted, around)
            self._running.append(self._scheduler)
        self._running += owner_watch(store, clock=clock, rng=rng, spawn=spawn)
        for service in self._running:
            service.fenced = self.fenced
            await service.start()

    def _new_record(self) -> ServerRecord:
        clock = self._client.clock
        record = new_record(new_server_id(self._name, clock=clock, rng=self._client.rng), clock=clock)
        told = {SERVES: "http", SCHEDULING: "" if self._config.schedules else "off"}
        return replace(record, details={name: text for name, text in told.items() if text})

    async def _stop(self) -> None:
        if self._record is None:
            return
        server_id = self._record.id
        try:
            await call_with_timeout(self._leave(server_id), STOPPED_WITHIN, self._client.clock)
        except Exception as error:  # noqa: BLE001 - the record says what is to be known
            if not isinstance(error, Fenced):
                logger.warning("%s stays listed among the servers until it is seen to be gone", server_id)
        finally:
            await self._spawn.close()
            self._running, self._scheduler, self._record = [], None, None

    async def _leave(self, server_id: str) -> None:
        for service in reversed(self._running):
            await service.stop()
        # also after a start that failed: then the heart has beaten and does not run
        await self._client.store.leave(server_id)


def _tell_of_fence(error: Fenced) -> None:
    logger.error("a service of this process has ended: %s", error)
