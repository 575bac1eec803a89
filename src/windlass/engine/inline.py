"""Running jobs in place: for an app's eager mode and for users' tests. No server, no slots, one job after the other."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final, TypeVar

from windlass.core.errors import WindlassError
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Claim
from windlass.core.requests import ClaimRequest
from windlass.core.states import State
from windlass.core.verdict import Outcome, Stopped
from windlass.engine.attempt import Attempt
from windlass.engine.attempt_services import AttemptServices
from windlass.engine.execution import Execution
from windlass.engine.executors.held import Held
from windlass.engine.executors.processes import Processes
from windlass.engine.executors.threads import Threads
from windlass.engine.held_claims import HeldClaims
from windlass.engine.hooks import Hooks
from windlass.engine.kept_log import kept_log
from windlass.engine.notes import Notes
from windlass.engine.observed import Observed
from windlass.engine.outcomes import CANCELLED_ON_REQUEST
from windlass.engine.ready import ReadyHandlers, ready_handlers
from windlass.engine.settlement_writer import SettlementWriter
from windlass.system import TaskSpawn

T = TypeVar("T")

MOST: Final = 10_000
"""Attempts in one go, beside those of the jobs that waited before: a job that enqueues itself for ever is somebody's
mistake, and must not hang a test."""
WORKER: Final = "in-place"


class Endless(WindlassError):
    """Jobs run in place did not come to an end."""

    def __init__(self, kind: str | None) -> None:
        super().__init__(
            f"more than {MOST:,} attempts were run in place, and there are more, the next one of "
            f"{kind or 'a raw job'}: does it enqueue, retry or put off itself for ever?"
        )


class Inline:
    """Runs what is ready in the store of an app, where it is called; belongs to the event loop that uses it first.

    What handlers need is opened by the first job and stays open until `close`. Timeouts have no say here: a handler
    ends when it ends.
    """

    def __init__(self, app: Observed, running: dict[JobId, Future[None]] | None = None) -> None:
        """Run the jobs of `app`; `running` is shared with others who run them in place."""
        self.app = app
        self._running: dict[JobId, Future[None]] = {} if running is None else running
        self._opening = asyncio.Lock()
        self._lifespan: Held[Mapping[type, Any]] | None = None
        self._provided: Mapping[type, Any] = {}

    async def drain(self) -> int:
        """Run every job that is ready, and those that come meanwhile; return how many attempts there were."""
        return await self._drain(await self._bound())

    async def finish(self, jobs: Collection[JobId]) -> None:
        """Run everything, also what is scheduled for later, at once; when this returns `jobs` have ended.

        Others may have begun some of them, which are waited for.
        """
        left = await self._bound()
        while True:
            left -= await self._drain(left)
            if await self._bring_forward():
                continue
            elsewhere = [self._running[job] for job in jobs if job in self._running]
            if not elsewhere:
                return
            await asyncio.wait([asyncio.wrap_future(each) for each in elsewhere])

    async def close(self) -> None:
        """Close what handlers needed; another use opens it again."""
        async with self._opening:
            lifespan, self._lifespan = self._lifespan, None
            self.app.forget()
            if lifespan is not None:
                await lifespan.close()

    async def _open(self) -> Mapping[type, Any]:
        await self.app.client.open()
        async with self._opening:
            if self._lifespan is None:
                lifespan = Held(_closed_in_any_case(self.app.open_lifespan()))
                self._provided = await lifespan.open()
                self._lifespan = lifespan
            return self._provided

    async def _bound(self) -> int:
        await self.app.client.open()
        waiting = [row.pending + row.scheduled for row in await self.app.client.store.stats()]
        return MOST + sum(waiting)

    async def _drain(self, most: int) -> int:
        provided = await self._open()
        handlers = ready_handlers(self.app, provided, timeout=None)
        return await _Round(self.app, handlers, self._running).run(most)

    async def _bring_forward(self) -> bool:
        """Let what is scheduled for later run now; return whether there was any."""
        store = self.app.client.store
        any_came = False
        for queue in self.app.queues:
            jobs = await store.jobs(JobFilter(queue=queue, state=State.SCHEDULED), after=None, limit=MOST)
            if ours := [job.id for job in jobs if job.kind in self.app.handlers or queue in self.app.consumers]:
                await store.reschedule(ours, None)
                any_came = True
        return any_came


class _Round:
    """One drain, with everything that its attempts need."""

    def __init__(self, app: Observed, handlers: ReadyHandlers, running: dict[JobId, Future[None]]) -> None:
        client = app.client
        notes = Notes(client.store)
        self._app = app
        self._store = client.store
        self._client = client
        self._handlers = handlers
        self._running = running
        self._services = AttemptServices(client, notes)
        self._threads = Threads()
        self._hooks = Hooks(app.state_change_hooks, app.dead_hooks, TaskSpawn())
        self._settlements = SettlementWriter(client, HeldClaims(), notes, on_committed=self._hooks.tell)
        self._execution = Execution(app, threads=self._threads, processes=Processes(most=1), on_end=self._ended)
        self._done = asyncio.Event()

    async def run(self, most: int) -> int:
        attempts = 0
        try:
            with kept_log():
                while claims := await self._claim():
                    for claim in claims:
                        if attempts >= most:
                            raise Endless(claim.job.kind)
                        await self._run_one(claim)
                        attempts += 1
        finally:
            self._threads.close()
        return attempts

    async def _claim(self) -> list[Claim]:
        kinds: frozenset[str | None] = frozenset(self._handlers.by_kind)
        for queue in sorted(self._app.queues):
            settings = self._client.settings.of(queue)
            wanted = kinds | {None} if queue in self._handlers.by_queue else kinds
            if claims := (await self._store.claim(ClaimRequest((queue,), 1, settings.lease, wanted, WORKER))).jobs:
                return claims
        return []

    async def _run_one(self, claim: Claim) -> None:
        over = self._running[claim.job.id] = Future[None]()
        try:
            await self._attempt(claim)
            await self._settlements.drain()
            # in place means that all of it is over
            await self._hooks.drain()
        finally:
            self._running.pop(claim.job.id, None)
            over.set_result(None)

    async def _attempt(self, claim: Claim) -> None:
        job = claim.job
        lease = self._client.settings.of(job.queue).lease.total_seconds()
        by_kind, by_queue = self._handlers
        handler = by_kind.get(job.kind or "") or by_queue[job.queue]
        attempt = Attempt(claim, handler, lease, self._client.clock.monotonic(), self._services)
        if job.cancel_requested:
            self._settlements.add(attempt, Stopped(CANCELLED_ON_REQUEST))
            return
        self._done.clear()
        self._execution.start(attempt, asyncio.get_running_loop())
        try:
            await self._done.wait()
        except BaseException:
            # whoever wanted it is gone: the claim is left to its lease
            attempt.settled = True
            if attempt.task is not None:
                attempt.task.cancel()
            raise

    def _ended(self, attempt: Attempt, outcome: Outcome) -> None:
        if not attempt.settled:
            self._settlements.add(attempt, outcome)
        self._done.set()


@asynccontextmanager
async def _closed_in_any_case(lifespan: AbstractAsyncContextManager[T]) -> AsyncGenerator[T, None]:
    """Open `lifespan`, and close it also when nobody did before the event loop ends, which cancels all there is."""
    async with lifespan as provided:
        with suppress(asyncio.CancelledError):
            yield provided
