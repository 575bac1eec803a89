"""Claim loop: claims as many jobs as a server has room for, and hands them to its slots in the order of the claims."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from windlass.client.bell import pause_until
from windlass.core.errors import Fenced, UnknownKind
from windlass.core.job import Claim, Job
from windlass.core.states import State
from windlass.core.topics import queue_topic
from windlass.engine.attempt import Attempt
from windlass.engine.attempt_services import AttemptServices
from windlass.engine.claim_plan import ClaimPlan, LookAhead
from windlass.engine.hooks import Hooks
from windlass.engine.ready import ReadyHandlers
from windlass.engine.service import backoff, trace_of
from windlass.engine.settlement_writer import StateChange
from windlass.engine.slots import Slots
from windlass.kit.timeouts import wait_for_task
from windlass.system import eager_task

logger = logging.getLogger("windlass")

FAST: Final = 200
"""Jobs that may wait here from which on two claims are under way at once: while one is begun the other comes."""


class ClaimLoop:
    """Asks the store for jobs while there is room, and sleeps until there is a job or room for one."""

    def __init__(
        self,
        plan: ClaimPlan,
        handlers: ReadyHandlers,
        slots: Slots,
        *,
        services: AttemptServices,
        hooks: Hooks,
        poll_interval: timedelta,
        on_store_error: Callable[[Exception], None],
    ) -> None:
        """Claim what `plan` says for `slots`.

        `on_store_error` is called with each error of a claim; after `Fenced` nothing is claimed any more.
        """
        client = services.client
        self._store = client.store
        self._clock = client.clock
        self._rng = client.rng
        self._loop = asyncio.get_running_loop()
        self._plan = plan
        self._handlers = handlers
        self._slots = slots
        self._settlements = slots.settlements
        self._settlements.on_written = self._on_written
        self._max_unsettled = client.store.features.most_unsettled
        self._has_settlement_backlog = False
        self._look_ahead = LookAhead()
        self._is_fast = False
        self._wake_at = 0
        self._services = services
        self._hooks = hooks if hooks.wanted else None
        self._poll_interval = poll_interval.total_seconds()
        self._on_store_error = on_store_error
        self._next: asyncio.Task[int] | None = None
        self._last_claim_was_empty = False
        self._next_at: datetime | None = None
        """Time at which a claim may be given something although no job comes due or is enqueued, if it is known."""
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self.failing_since: float | None = None
        """Time of the first error since the last claim that was answered."""

    def begin(self) -> None:
        """Begin to claim."""
        self._task = self._loop.create_task(self._claim_for_ever(), name="windlass worker")

    def stop(self) -> None:
        """Claim no more and give back what was not started; what runs goes on."""
        self._stopping = True
        self._slots.wake.ring()
        self._slots.stop()

    async def last_claim(self, within: float) -> None:
        """Wait for the claim that is on its way, and give back what it brings; at most `within` seconds.

        Without an answer by then, what it may still have taken is left to its lease.
        """
        if self._task is not None and not await wait_for_task(self._task, within, self._clock):
            self._task.cancel()
            await asyncio.wait((self._task,))

    def abandon(self) -> None:
        """Claim no more at once, and give nothing back."""
        self._stopping = True
        self._slots.abandon()
        for task in (self._task, self._next):
            if task is not None:
                task.cancel()

    async def _claim_for_ever(self) -> None:
        wake = self._slots.wake
        topics = [queue_topic(queue) for queue in self._plan.queues]
        stops = [self._store.listen(topics, wake.ring), self._slots.unstarted.listen()]
        failures = 0
        try:
            while self._next is not None or not self._stopping:
                wake.clear()
                try:
                    wait = await self._claim_once()
                    failures, self.failing_since = 0, None
                except Fenced as error:
                    self._on_store_error(error)
                    return
                except Exception as error:
                    failures += 1
                    self.failing_since = self.failing_since or self._clock.monotonic()
                    self._slots.counts.fail("claim")
                    wait = backoff(failures, self._rng)
                    text = "cannot claim (%d times in a row), again in %.1f s: %s"
                    logger.warning(text, failures, wait, error, exc_info=trace_of(error))
                    self._on_store_error(error)
                if not self._stopping and (wait is None or wait > 0):
                    await wake.wait(wait)
                else:
                    # a store in memory answers without a wait: what was begun and what ended must get on
                    await asyncio.sleep(0)
        finally:
            for stop in stops:
                stop()
            if self._next is not None:
                self._next.cancel()
                await asyncio.gather(self._next, return_exceptions=True)

    async def _claim_once(self) -> float | None:
        """Claim what there is room for; return how long to sleep, None until a slot is free."""
        self._slots.wake_at = -1
        claim = self._next or self._begin_claim(None)
        self._next = None
        if claim is None:
            self._slots.wake_at = self._wake_at
            return None
        if self._is_fast and not self._last_claim_was_empty and not self._stopping:
            self._next = self._begin_claim(claim)
        claimed = await claim
        self._last_claim_was_empty = not claimed
        if claimed or self._next is not None:
            # there may be more; a look without a job is the sign to sleep
            return 0.0
        return await self._idle_for()

    def _begin_claim(self, before: "asyncio.Task[int] | None") -> "asyncio.Task[int] | None":
        limit = self._claim_limit()
        if limit <= 0:
            return None
        self._slots.requested += limit
        # at once: it may have to wait until the rows of another one are read, and the store is idle meanwhile
        return eager_task(self._claim(limit, before), self._loop, name="windlass claim")

    def _claim_limit(self) -> int:
        """Return how many jobs to claim: for every free slot, and ahead of them as many as soon begin."""
        slots = self._slots
        self._has_settlement_backlog = len(self._settlements) > self._max_unsettled
        if slots.sole is not None or self._has_settlement_backlog:
            self._wake_at = slots.count
            return 0
        ahead = self._look_ahead.most(self._clock.monotonic(), slots.finished)
        # one slot means one after the other, strictly in line: two claims at once could mix their jobs
        self._is_fast = ahead >= FAST and slots.count > 1
        line, behind = slots.unstarted.line, slots.unstarted.behind
        free = slots.count - len(slots.running) - len(line) - sum(map(len, behind)) - slots.requested
        self._wake_at = ahead // 2
        if free < -self._wake_at:
            return 0
        return min(free + ahead, max(free, 0) + ahead // 2) if self._is_fast else free + ahead

    async def _claim(self, limit: int, before: "asyncio.Task[int] | None") -> int:
        """Claim jobs, and begin them after those of the claim before; return how many there were."""
        slots = self._slots
        claimed = 0
        next_at: datetime | None = None
        try:
            for request in self._plan.requests(limit):
                began, pauses = self._clock.monotonic(), slots.unstarted.pauses
                found = await self._store.claim(request._replace(limit=limit - claimed))
                if found.jobs:
                    self._look_ahead.took(self._clock.monotonic() - began)
                    claimed += len(found.jobs)
                    slots.requested -= len(found.jobs)
                    await self._hand_over(self._hold(found.jobs), before, pauses)
                if found.next_at is not None and (next_at is None or found.next_at < next_at):
                    next_at = found.next_at
                if claimed >= limit or self._stopping or slots.sole is not None:
                    break
        finally:
            slots.requested -= limit - claimed
        self._next_at = next_at
        # one that waits to be alone is not begun while a claim is under way
        slots.fill()
        return claimed

    async def _idle_for(self) -> float:
        due_in = await self._store.due_in(self._plan.queues)
        return pause_until(due_in, self._next_at, self._clock, self._poll_interval)

    def _hold(self, claims: list[Claim]) -> list[Attempt]:
        now = self._clock.monotonic()
        self._slots.counts.claimed += len(claims)
        by_kind, by_queue = self._handlers
        leases, services = self._plan.lease_seconds, self._services
        attempts: list[Attempt] = []
        for claim in claims:
            job = claim.job
            handler = by_kind.get(job.kind or "") or by_queue.get(job.queue)
            if handler is None:
                raise UnknownKind(job.kind or "", by_kind)
            attempts.append(Attempt(claim, handler, leases[job.queue], now, services))
        self._slots.held.add(attempts)
        return attempts

    async def _hand_over(self, attempts: list[Attempt], before: "asyncio.Task[int] | None", pauses: int) -> None:
        """Hand claims over after those of the claim before; what is given back while they wait leaves `attempts`."""
        unstarted = self._slots.unstarted
        unstarted.behind.append(attempts)
        try:
            if self._hooks is not None:
                await self._tell_of_claims(self._hooks, [attempt.job for attempt in attempts])
            if unstarted.pauses != pauses:
                # before the answer came: nobody saw them then
                await unstarted.release_paused()
            if before is not None and not before.done():
                unstarted.watch()
                await asyncio.wait((before,))
        finally:
            # also when a stop waits no longer, which gives them back
            unstarted.behind.remove(attempts)
            self._slots.take(attempts)

    def _on_written(self) -> None:
        """Begin what waits for settlements: a job that begins alone, or a claim that a backlog held up."""
        if self._slots.sole is not None:
            self._slots.fill()
        elif self._has_settlement_backlog and len(self._settlements) <= self._max_unsettled:
            self._slots.wake.ring()

    async def _tell_of_claims(self, hooks: Hooks, jobs: list[Job]) -> None:
        if any(job.delivery > 1 for job in jobs):
            # its end here may be written and not answered yet, and is told before it begins again
            await self._settlements.answered()
        hooks.tell([StateChange(job, State.PENDING, State.RUNNING) for job in jobs])
