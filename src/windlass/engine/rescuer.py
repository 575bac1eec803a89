"""The service that takes back jobs whose lease ran out, or whose server has ended."""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from windlass.client.upkeep import rescue_all
from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.duration import ZERO
from windlass.core.errors import WindlassError
from windlass.core.requests import Rescued, RescueRequest
from windlass.core.retention import Retention
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.verdict import LEASE_EXPIRED
from windlass.engine.job_log import log_rescued
from windlass.engine.job_log import logger as job_logger
from windlass.engine.service import Service

logger = logging.getLogger("windlass")

LOGGED: Final = 100
"""Rescued jobs that have a log record each, of those that are rescued at once."""


class Rescuer(Service):
    """Rescues once at its start, or a while later, and then every five seconds.

    It goes by the lease, or by proof that a server has ended.
    """

    name = "rescuer"

    def __init__(
        self,
        store: Store,
        retention: Retention,
        *,
        clock: Clock,
        rng: Rng,
        spawn: Spawn,
        interval: timedelta = timedelta(seconds=5),
        begins_after: timedelta = ZERO,
        told: Callable[[list[Rescued]], None] | None = None,
    ) -> None:
        """Rescue in `store`; what is dead then stays as long as `retention` says. `told` hears of each job."""
        super().__init__(clock=clock, rng=rng, spawn=spawn)
        self.interval = interval
        self.begins_after = begins_after
        self._store = store
        self._retention = retention
        self._told = told

    async def tick(self) -> None:
        """Take back every claim that nobody holds any more."""
        if ended := await self._store.ended_servers():
            await self.rescue_ended(ended)
        await self._tell(await rescue_all(self._store, RescueRequest(), self._retention), "lease had run out")

    async def rescue_ended(self, servers: Sequence[str]) -> None:
        """Take back every claim of servers that have ended, and take them out: whoever calls this has the proof."""
        request = RescueRequest(workers=servers, force=True)
        await self._tell(await rescue_all(self._store, request, self._retention), "server had ended")
        for server in servers:
            await self._store.leave(server)

    async def _tell(self, rescued: list[Rescued], why: str) -> None:
        if not rescued:
            return
        logger.info("rescued %d %s whose %s", len(rescued), "job" if len(rescued) == 1 else "jobs", why)
        if self._told is not None:
            self._told(rescued)
        await self._log_each(rescued[:LOGGED])

    async def _log_each(self, rescued: list[Rescued]) -> None:
        if not job_logger.isEnabledFor(logging.ERROR):
            return
        try:
            jobs = await self._store.get([one.id for one in rescued])
        except WindlassError as error:
            logger.debug("%d jobs that were rescued cannot be read: %s", len(rescued), error)
            return
        for one, job in zip(rescued, jobs, strict=True):
            # a job may have gone on since: the server that claimed it logs how that attempt ends
            if job is not None and job.state is one.state:
                log_rescued(job, LEASE_EXPIRED, dead=one.state is State.DEAD)
