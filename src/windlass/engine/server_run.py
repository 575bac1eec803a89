"""Server run: a server from its start to its stop."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any, Self

from windlass.core.errors import Fenced
from windlass.core.looks import ServerRecord
from windlass.core.requests import Rescued
from windlass.core.store import Store
from windlass.engine.attempt_stopper import cut_off
from windlass.engine.config import ServerConfig
from windlass.engine.health import Health, health
from windlass.engine.heart import details_of, new_record
from windlass.engine.kept_log import OFF, keep_log, leave_log
from windlass.engine.rescuer import Rescuer
from windlass.engine.served import Around, Served
from windlass.engine.server_parts import ServerParts
from windlass.engine.server_stop import LEFT_BY, ServerStop
from windlass.engine.tally import Tally
from windlass.system import TaskSpawn

logger = logging.getLogger("windlass")


class ServerRun:
    """A server that runs; made by `begin`, in the event loop that it runs in, and ended by `stop`."""

    def __init__(
        self,
        around: Around,
        app: Served,
        provided: Mapping[type, Any],
        resources: AsyncExitStack,
        *,
        counts: Tally,
        on_store_error: Callable[[Exception], None],
        ends_process: bool,
    ) -> None:
        """Put the parts together; `provided` is what the lifespan of the app gave, which `resources` close."""
        self._around = around
        self._app = app
        self._resources = resources
        self._counts = counts
        self._ends_process = ends_process
        self._loop = asyncio.get_running_loop()
        self._record = new_record(around.server_id, clock=around.clock)
        self.on_store_error = on_store_error
        self.fenced_by: Fenced | None = None
        """What the store said when another process had taken it over; set by any thread, as soon as one knows."""
        self._parts = parts = ServerParts(around, app, provided, self, counts=counts)
        self.stop = ServerStop(around, parts, resources, ends_process=ends_process)
        """How the run ends."""

    @classmethod
    async def begin(
        cls,
        app: Served,
        config: ServerConfig,
        server_id: str,
        *,
        counts: Tally,
        on_store_error: Callable[[Exception], None],
        ends_process: bool = False,
    ) -> Self:
        """Open everything and begin to work; when it raises, everything is closed again.

        What happens is counted in `counts`. `on_store_error` is called with each error of a claim, and with `Fenced`.
        `ends_process`: what does not end by itself does so with the process, right after the stop.
        """
        client, spawn, resources = app.client, TaskSpawn(), AsyncExitStack()
        resources.push_async_callback(spawn.close)
        around = Around(config, client.clock, client.rng, spawn, client, server_id)
        try:
            await client.open()
            provided = await resources.enter_async_context(app.open_lifespan())
            # after the lifespan, which may set up a log of its own
            if config.job_log_level != OFF:
                keep_log()
                resources.callback(leave_log)
            # after the lifespan too: context variables that it set are for all jobs, those that a job sets are its own
            run = cls(
                around,
                app,
                provided,
                resources,
                counts=counts,
                on_store_error=on_store_error,
                ends_process=ends_process,
            )
        except BaseException:
            await resources.aclose()
            raise
        try:
            await run._begin()
        except BaseException:
            await run.stop.abort_start()
            raise
        return run

    @property
    def busy(self) -> int:
        """How many jobs run."""
        return len(self._parts.slots.running)

    @property
    def unsettled(self) -> int:
        """How many ends wait for the store."""
        return len(self._parts.settlements)

    def health(self) -> Health:
        """Judge the server."""
        parts = self._parts
        now = self._around.clock.monotonic()
        not_claimed, not_settled = parts.claims.failing_since, parts.settlements.failing_since
        return health(
            running=True,
            stopping=self.stop.is_stopping,
            slots=self._around.config.concurrency,
            stuck=list(parts.stopper.stuck),
            # not by who runs: one whose first step blocks the event loop has not come as far as that
            overdue=[attempt for attempt in list(parts.renewals.overdue) if not attempt.over],
            not_claimed_for=None if not_claimed is None else now - not_claimed,
            not_settled_for=None if not_settled is None else now - not_settled,
        )

    async def rescue(self, servers: Sequence[str]) -> None:
        """Take back the jobs of servers that have ended."""
        _, clock, rng, spawn, client, _ = self._around
        retention = self._parts.retention
        rescuer = Rescuer(client.store, retention, clock=clock, rng=rng, spawn=spawn, told=self.on_rescued)
        await rescuer.rescue_ended(servers)

    def give_back(self, within: float) -> None:
        """Settle all that is held, from another thread, since the event loop does not come back; the process then ends.

        What is past its timeout has failed, and all else is released. Raises what the store did, or `TimeoutError`.
        """
        parts, clock, server_id = self._parts, self._around.clock, self._around.server_id
        if parts.renewal_thread is not None:
            settlements = parts.settlements.last_words(lambda attempt: cut_off(attempt, clock.monotonic()))

            async def write(store: Store) -> None:
                await store.settle(settlements)
                await store.leave(server_id)

            parts.renewal_thread.call(write, within)

    async def _begin(self) -> None:
        parts, config = self._parts, self._around.config
        if (thread := parts.renewal_thread) is not None:
            self._resources.push_async_callback(lambda: thread.stop(self.stop.seconds_until(LEFT_BY)))
            await thread.start()
        await parts.services.register()
        await parts.services.start()
        if config.processes > 1 and not self._ends_process:
            logger.warning(
                "server %s is one process: processes=%d has an effect under `windlass worker` alone",
                self._around.server_id,
                config.processes,
            )
        if config.concurrency:
            parts.claims.begin()

    # as the parts report to it

    def describe(self) -> ServerRecord:
        """Return what the store is to know of the server now."""
        parts, config = self._parts, self._around.config
        stuck = [attempt.job.id for attempt in parts.stopper.stuck]
        served = self._around.client.store.features.served
        consumed = parts.handlers.by_queue
        return replace(
            self._record,
            queues=tuple(parts.plan.queues),
            kinds=tuple(sorted(parts.handlers.by_kind)),
            schedules=tuple(sorted(self._app.schedules)) if config.schedules else (),
            running=len(parts.slots.running),
            details=details_of(config, stuck, consumed, served=served, stopping=self.stop.is_stopping),
        )

    def on_rescued(self, rescued: list[Rescued]) -> None:
        """Count the jobs that were rescued, and tell the hooks of them."""
        self._counts.rescued += len(rescued)
        if self._parts.hooks.wanted:
            telling = self._parts.hooks.tell_of_rescue(rescued, self._around.client.store)
            self._around.spawn(telling, name="windlass rescue hooks")

    def on_fenced_in_thread(self, error: Fenced) -> None:
        """Keep what the store said, and stop on the event loop; called from the thread that renews."""
        self.fenced_by = self.fenced_by or error
        with suppress(RuntimeError):  # the loop is closed: all is over
            self._loop.call_soon_threadsafe(self.on_store_error, error)
