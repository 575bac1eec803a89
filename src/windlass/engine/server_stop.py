"""Server stop: how a run of a server ends, and until which moment it waits for what."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final

from windlass.core.errors import WindlassError
from windlass.engine.job_fields import fields_of
from windlass.engine.served import Around
from windlass.engine.server_parts import ServerParts
from windlass.engine.tally import LOST
from windlass.handlers.registered import RunsIn
from windlass.kit.timeouts import wait_for_task

logger = logging.getLogger("windlass")

LAST_MOMENT: Final = 0.4
"""Seconds that code has to end after force was used."""
CLAIMED_BY: Final = 0.5
SETTLED_BY: Final = 0.7
LEFT_BY: Final = 0.85
"""Seconds after the grace at which the store is no longer waited for: for a claim, for settlements, for the leave."""


class ServerStop:
    """Ends the parts of one server run: in order, at once, or as a process that is killed."""

    def __init__(self, around: Around, parts: ServerParts, resources: AsyncExitStack, *, ends_process: bool) -> None:
        """Be ready to end `parts`; what the start opened is in `resources`.

        `ends_process`: what does not end by itself does so with the process, right after the stop.
        """
        self._server_id = around.server_id
        self._client = around.client
        self._clock = around.clock
        self._loop = asyncio.get_running_loop()
        self._parts = parts
        self._resources = resources
        self._ends_process = ends_process
        self._over_at = 0.0
        self._is_fenced = False
        self.is_stopping = False
        """Whether the end has begun."""

    async def end(self, grace: float) -> None:
        """Stop gracefully: within `grace` seconds and one more."""
        parts = self._parts
        self.is_stopping = True
        self._over_at = self._clock.monotonic() + grace
        parts.claims.stop()
        if parts.slots.running and not self._is_fenced:
            parts.services.tell_of_stop()
        for attempt in list(parts.slots.running):
            attempt.tell("stop")
        if not await parts.slots.all_ended(grace):
            await self._end_by_force()
        await parts.claims.last_claim(self.seconds_until(CLAIMED_BY))
        await self._settle_the_rest()
        await self._leave()

    async def end_now(self) -> None:
        """Stop without any grace, also after an `end` that was cut short."""
        await self.end(0)
        await self._take_out()

    def fence(self) -> None:
        """Let go of all claims, which another process decides about now: an `end` that follows settles nothing.

        Code that runs is told that its claim is lost. An `end` that is under way gives it no more time.
        """
        if self._is_fenced:
            return
        self._is_fenced = True
        parts = self._parts
        running = list(parts.slots.running)
        parts.claims.abandon()
        parts.settlements.fence()
        for attempt in running:
            parts.counts.of(attempt.job).ends[LOST] += 1
            parts.stopper.request(attempt, "claim_lost")
        if self.is_stopping:
            self._over_at = self._clock.monotonic()
            parts.slots.end_wait()

    async def crash(self) -> None:
        """End as a process does that is killed: nothing is settled, released or taken out; for tests."""
        parts = self._parts
        self.is_stopping = True
        self._over_at = self._clock.monotonic()
        parts.claims.abandon()
        parts.settlements.abandon()
        running = list(parts.slots.running)
        for attempt in running:
            attempt.settled = True
            parts.stopper.force(attempt)
        if forced := [each.task for each in running if each.task and each.handler.runs_in is not RunsIn.THREAD]:
            await asyncio.wait(forced, timeout=LAST_MOMENT)
        parts.services.stay_listed()
        await self._leave()

    async def abort_start(self) -> None:
        """Close what a start has opened that failed, and leave no record of the server."""
        self._over_at = self._clock.monotonic()
        await self._leave()
        await self._take_out()

    def seconds_until(self, after_grace: float) -> float:
        """Return how many seconds are left until this long after the grace."""
        return max(0.0, self._over_at + after_grace - self._clock.monotonic())

    async def _end_by_force(self) -> None:
        parts = self._parts
        for attempt in list(parts.slots.running):
            parts.stopper.force(attempt)
        if await parts.slots.all_ended(LAST_MOMENT):
            return
        if self._is_fenced:
            logger.error("%d jobs do not end with their server, which holds them no more", len(parts.slots.running))
            return
        for attempt in [attempt for attempt in parts.slots.running if not attempt.settled]:
            if self._ends_process:
                parts.stopper.give_back(attempt)
                continue
            logger.error(
                "job %s (%s) does not end with its server: it is not given back, since it still runs; its lease "
                "runs out by itself",
                attempt.job.id,
                attempt.handler.name,
                extra=fields_of(attempt.job),
            )

    async def _settle_the_rest(self) -> None:
        settlements = self._parts.settlements
        written = self._loop.create_task(self._drain())
        try:
            await wait_for_task(written, self.seconds_until(SETTLED_BY), self._clock)
        finally:
            written.cancel()
        if left := len(settlements):
            logger.error("%d ends of jobs could not be written before the stop: their leases run out", left)
            settlements.abandon()

    async def _drain(self) -> None:
        await self._parts.settlements.drain()
        await self._parts.hooks.drain()

    async def _leave(self) -> None:
        parts = self._parts
        parts.stopper.close()
        parts.settlements.close()
        # from here on no end of an attempt is taken
        parts.slots.close()
        await self._while_the_store_answers(parts.services.stop())
        await parts.processes.close()
        parts.threads.close()
        await self._resources.aclose()

    async def _take_out(self) -> None:
        """Leave no record of a server that never ran, or could not take its leave."""
        if self._parts.services.registered and not self._is_fenced:
            await self._while_the_store_answers(self._client.store.leave(self._server_id))

    async def _while_the_store_answers(self, leaving: Coroutine[Any, Any, None]) -> None:
        """Run the last words to the store, and do not wait for them when it does not listen."""
        task = self._loop.create_task(leaving)
        try:
            await wait_for_task(task, self.seconds_until(LEFT_BY), self._clock)
        finally:
            task.cancel()
            await asyncio.wait((task,))
        error = WindlassError("the store does not answer") if task.cancelled() else task.exception()
        if error is not None:
            logger.warning("server %s stays listed until it is seen to be gone: %s", self._server_id, error)
