"""One run of a server, from its start to its stop: all parts, put together and taken apart."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from contextvars import Context
from dataclasses import replace
from typing import Any, Final

from windlass.core.errors import Fenced, UnknownKind, WindlassError
from windlass.core.job import Job
from windlass.core.looks import ServerRecord
from windlass.core.requests import Rescued
from windlass.core.states import State
from windlass.core.verdict import Outcome
from windlass.engine.attempt import Attempt
from windlass.engine.claim_plan import ClaimPlan, plan_of
from windlass.engine.config import ServerConfig
from windlass.engine.context import of_no_job
from windlass.engine.execution import Execution
from windlass.engine.executors.processes import Processes
from windlass.engine.executors.threads import Threads
from windlass.engine.halt import Halt
from windlass.engine.health import Health, health
from windlass.engine.heart import details_of, new_record
from windlass.engine.hooks import Hooks
from windlass.engine.kept_log import OFF, keep_log, least_of, leave_log
from windlass.engine.last_words import cut_off, write_last_words
from windlass.engine.notes import Notes
from windlass.engine.office import Office
from windlass.engine.ready import ReadyHandler
from windlass.engine.renewer import Answers, Renewals, RenewalThread
from windlass.engine.rescuer import Rescuer
from windlass.engine.served import Around, Served
from windlass.engine.server_services import ServerServices
from windlass.engine.settlements import Move, Settlements
from windlass.engine.tally import LOST, Tally
from windlass.engine.within import ends_within
from windlass.engine.worker import Worker
from windlass.handlers.registered import RunsIn
from windlass.system import TaskSpawn

logger = logging.getLogger("windlass")

LAST_MOMENT: Final = 0.4
"""Seconds that code has to end after force was used."""
CLAIMED_BY: Final = 0.5
SETTLED_BY: Final = 0.7
LEFT_BY: Final = 0.85
"""Seconds after the grace at which the store is no longer waited for: for a claim, for settlements, for the leave."""


class Shift:
    """What a running server consists of; made at its start, in the event loop that it runs in."""

    def __init__(
        self,
        app: Served,
        config: ServerConfig,
        server_id: str,
        *,
        failed: Callable[[Exception], None],
        tally: Tally,
        ends_process: bool = False,
    ) -> None:
        """Put the parts together that need nothing opened; `failed` is told of errors of the store, and of `Fenced`.

        What happens is counted in `tally`.
        `ends_process`: what does not end by itself does so with the process, right after the end of the shift.
        """
        self._app = app
        self._config = config
        self._id = server_id
        self._failed = failed
        self._tally = tally
        self._ends_process = ends_process
        self._client = client = app.client
        self._clock = client.clock
        self._rng = client.rng
        self._spawn = TaskSpawn()
        self._loop = asyncio.get_running_loop()
        self._parts = AsyncExitStack()
        self._threads = Threads(config.threads)
        self._processes = Processes(most=max(1, config.concurrency))
        self._notes = Notes(client.store)
        self._retention = config.retention(client.settings)
        self._hooks = Hooks(app.state_change_hooks, app.dead_hooks, self._spawn)
        self._settlements = Settlements(
            client.store,
            client.settings,
            self._retention,
            notes=self._notes,
            clock=self._clock,
            rng=self._rng,
            committed=self._hooks.tell if self._hooks.wanted else None,
            tally=tally,
        )
        self._settlements.fenced = failed
        self._halt = Halt(self._settlements, self._clock)
        self._execution = Execution(app, threads=self._threads, processes=self._processes, ended=self._ended)
        self._idle = asyncio.Event()
        self._stopping = False
        self._fenced = False
        self._left = False
        self.fenced_by: Fenced | None = None
        """What the store said when another process had taken it over; set by any thread, as soon as one knows."""
        self._handlers: dict[str, ReadyHandler] = {}
        self._consumers: dict[str, ReadyHandler] = {}
        self._record = new_record(server_id, clock=self._clock)
        self._services: ServerServices | None = None
        self._over_at = 0.0
        self._context: Context
        self._renewal_thread: RenewalThread | None = None
        self._renewals: Renewals
        self._worker: Worker

    async def begin(self) -> None:
        """Open all and begin to work; when it raises, all is closed again."""
        try:
            await self._begin()
        except BaseException:
            self._over_at = self._clock.monotonic()
            await self._leave()
            await self._take_out()
            raise

    async def end(self, grace: float) -> None:
        """Stop gracefully: within `grace` seconds and one more."""
        self._stopping = True
        self._over_at = self._clock.monotonic() + grace
        self._worker.end()
        for attempt in list(self._worker.running):
            attempt.tell("stop")
        if not await self._all_ended(grace):
            await self._end_by_force()
        await self._worker.last_claim(self._left_until(CLAIMED_BY))
        await self._settle_the_rest()
        await self._leave()

    def fence(self) -> None:
        """Let go of all claims, which another process decides about now: an `end` that follows settles nothing.

        Code that runs is told that its claim is lost. An `end` that is under way gives it no more time.
        """
        if self._fenced:
            return
        self._fenced = True
        running = list(self._worker.running)
        self._worker.abandon()
        self._settlements.fence()
        for attempt in running:
            self._tally.of(attempt.job).ends[LOST] += 1
            self._halt.lost(attempt)
        if self._stopping:
            self._over_at = self._clock.monotonic()
            self._idle.set()

    async def end_now(self) -> None:
        """Stop without any grace, also after an `end` that was cut short."""
        await self.end(0)
        await self._take_out()

    async def crash(self) -> None:
        """End as a process does that is killed: nothing is settled, released or taken out; for tests."""
        self._stopping = True
        self._over_at = self._clock.monotonic()
        self._worker.abandon()
        self._settlements.abandon()
        running = list(self._worker.running)
        for attempt in running:
            attempt.settled = True
            self._halt.force(attempt)
        if forced := [each.task for each in running if each.task and each.handler.runs_in is not RunsIn.THREAD]:
            await asyncio.wait(forced, timeout=LAST_MOMENT)
        if self._services is not None:
            self._services.stay_listed()
        await self._leave()

    @property
    def busy(self) -> int:
        """How many jobs run."""
        return len(self._worker.running)

    @property
    def unsettled(self) -> int:
        """How many ends wait for the store."""
        return len(self._settlements)

    async def rescue(self, servers: Sequence[str]) -> None:
        """Take back the jobs of servers that have ended."""
        store, clock, rng, spawn = self._client.store, self._clock, self._rng, self._spawn
        rescuer = Rescuer(store, self._retention, clock=clock, rng=rng, spawn=spawn, told=self._rescued)
        await rescuer.rescue_ended(servers)

    def give_back(self, within: float) -> None:
        """Settle all that is held, from another thread, since the event loop does not come back; the process then ends.

        What is past its timeout has failed, and all else is released. Raises what the store did, or `TimeoutError`.
        """
        if self._renewal_thread is not None:
            settlements = self._settlements.last_words(lambda attempt: cut_off(attempt, self._clock.monotonic()))
            self._renewal_thread.call(lambda store: write_last_words(store, settlements, self._id), within)

    def health(self) -> Health:
        """Judge the server."""
        now = self._clock.monotonic()
        not_claimed, not_settled = self._worker.failing_since, self._settlements.failing_since
        return health(
            running=True,
            stopping=self._stopping,
            slots=self._config.concurrency,
            stuck=list(self._halt.stuck),
            # not by who runs: one whose first step blocks the event loop has not come as far as that
            overdue=[attempt for attempt in list(self._renewals.overdue) if not attempt.over],
            not_claimed_for=None if not_claimed is None else now - not_claimed,
            not_settled_for=None if not_settled is None else now - not_settled,
        )

    # beginning

    async def _begin(self) -> None:
        client = self._client
        await client.open()
        provided = await self._parts.enter_async_context(self._app.open_lifespan())
        # after the lifespan: what it set is for all jobs, and what a job sets is for itself
        self._context = self._hooks.context = of_no_job()
        self._keep_log()
        timeout = self._config.job_timeout
        self._handlers = {k: ReadyHandler(r, provided, timeout=timeout) for k, r in self._app.handlers.items()}
        self._consumers = {q: ReadyHandler(r, provided, timeout=timeout) for q, r in self._app.consumers.items()}
        plan = plan_of(self._app, self._config, self._id)
        self._worker = self._make_worker(plan)
        shortest = min((lease.total_seconds() for lease in plan.leases.values()), default=30.0)
        self._renewals = Renewals(self._settlements.held, self._clock, shortest=shortest, told=self._renewed)
        self._services = self._make_services()
        await self._renew_aside()
        await self._services.register()
        await self._services.start()
        if self._config.processes > 1 and not self._ends_process:
            logger.warning(
                "server %s is one process: processes=%d has an effect under `windlass worker` alone",
                self._id,
                self._config.processes,
            )
        if self._config.concurrency:
            self._worker.begin()

    def _keep_log(self) -> None:
        """Keep what jobs log with them; after the lifespan, which may set up a log of its own."""
        if self._config.job_log_level != OFF:
            keep_log()
            self._parts.callback(leave_log)

    def _make_worker(self, plan: ClaimPlan) -> Worker:
        return Worker(
            self._client.store,
            plan,
            self._find,
            slots=self._config.concurrency,
            office=Office(self._client, self._notes, self._retention, log_from=least_of(self._config.job_log_level)),
            settlements=self._settlements,
            start=lambda attempt: self._execution.start(attempt, self._loop, self._context.copy()),
            late=self._halt.late,
            clock=self._clock,
            rng=self._rng,
            poll_interval=self._config.poll_interval,
            failed=self._failed,
            claimed=self._hooks.tell if self._hooks.wanted else None,
            tally=self._tally,
        )

    def _find(self, job: Job) -> ReadyHandler:
        handler = self._handlers.get(job.kind) if job.kind is not None else None
        handler = handler or self._consumers.get(job.queue)
        if handler is None:
            raise UnknownKind(job.kind or "", self._handlers)
        return handler

    def _make_services(self) -> ServerServices:
        around = Around(self._config, self._clock, self._rng, self._spawn, self._client, self._id)
        return ServerServices(
            around,
            self._app.services(around),
            describe=self._describe,
            queues=self._worker.queues,
            kinds=self._handlers,
            held=self._settlements.held,
            renewals=self._renewals,
            halt=self._halt,
            tally=self._tally,
            retention=self._retention,
            rescued=self._rescued,
            fenced=self._failed,
        )

    async def _renew_aside(self) -> None:
        """Start the thread that renews, where time goes by without us."""
        if self._clock.goes_by_itself:
            self._renewal_thread = thread = RenewalThread(
                self._renewals,
                self._client.store.sibling(),
                fenced=self._fenced_aside,
                failed=lambda: self._tally.fail("renew"),
            )
            self._parts.push_async_callback(lambda: thread.stop(self._left_until(LEFT_BY)))
            await thread.start()

    # while it runs

    def _ended(self, attempt: Attempt, outcome: Outcome) -> None:
        if self._left:
            logger.warning("job %s (%s) has ended after its server", attempt.job.id, attempt.handler.name)
            return
        if attempt.settled and attempt not in self._halt.stuck:
            self._tell_of_transaction(attempt)
        self._worker.ended(attempt, outcome)
        self._halt.ended(attempt)
        if self._stopping and not self._worker.running:
            self._idle.set()

    def _tell_of_transaction(self, attempt: Attempt) -> None:
        """Tell of a success that the handler's own transaction has written."""
        self._tally.of(attempt.job).ends["succeeded"] += 1
        if self._hooks.wanted:
            job = attempt.job._replace(state=State.SUCCEEDED, lease_expires_at=None)
            self._hooks.tell([Move(job, State.RUNNING, State.SUCCEEDED)])

    def _renewed(self, answers: Answers) -> None:
        """Take what renewal showed; called from its thread."""
        for attempt in answers.lost:
            self._loop.call_soon_threadsafe(self._halt.lost, attempt)
        for attempt in answers.cancelled:
            self._loop.call_soon_threadsafe(self._halt.requested, attempt)

    def _fenced_aside(self, error: Fenced) -> None:
        """Hear that the store has another owner; called from the thread that renews."""
        self.fenced_by = self.fenced_by or error
        with suppress(RuntimeError):  # the loop is closed: all is over
            self._loop.call_soon_threadsafe(self._failed, error)

    def _rescued(self, rescued: list[Rescued]) -> None:
        self._tally.rescued += len(rescued)
        if self._hooks.wanted:
            self._spawn(self._tell_of_rescue(rescued), name="windlass rescue hooks")

    async def _tell_of_rescue(self, rescued: Sequence[Rescued]) -> None:
        try:
            jobs = await self._client.store.get([one.id for one in rescued])
        except WindlassError as error:
            logger.warning("no hook is told of %d jobs that were rescued and cannot be read: %s", len(rescued), error)
            return
        # a job may have gone on since: whoever moved it tells of that
        self._hooks.tell(
            [
                Move(job._replace(state=one.state), State.RUNNING, one.state)
                for one, job in zip(rescued, jobs, strict=True)
                if job is not None
            ]
        )

    def _describe(self) -> ServerRecord:
        config = self._config
        stuck = [attempt.job.id for attempt in self._halt.stuck]
        return replace(
            self._record,
            queues=tuple(self._worker.queues),
            kinds=tuple(sorted(self._handlers)),
            schedules=tuple(sorted(self._app.schedules)) if config.schedules else (),
            running=len(self._worker.running),
            details=details_of(config, stuck, self._consumers, served=self._client.store.features.served),
        )

    # ending

    def _left_until(self, after_grace: float) -> float:
        """Return how many seconds are left until this long after the grace."""
        return max(0.0, self._over_at + after_grace - self._clock.monotonic())

    async def _all_ended(self, within: float) -> bool:
        """Return whether all code has ended, waiting for it at most `within` seconds."""
        if not self._worker.running:
            return True
        self._idle.clear()
        timer = self._clock.call_later(within, self._idle.set)
        try:
            await self._idle.wait()
        finally:
            timer.cancel()
        return not self._worker.running

    async def _end_by_force(self) -> None:
        for attempt in list(self._worker.running):
            self._halt.force(attempt)
        if await self._all_ended(LAST_MOMENT):
            return
        if self._fenced:
            logger.error("%d jobs do not end with their server, which holds them no more", len(self._worker.running))
            return
        for attempt in [attempt for attempt in self._worker.running if not attempt.settled]:
            if self._ends_process:
                self._halt.give_back(attempt)
                continue
            logger.error(
                "job %s (%s) does not end with its server: it is not given back, since it still runs; its lease "
                "runs out by itself",
                attempt.job.id,
                attempt.handler.name,
            )

    async def _settle_the_rest(self) -> None:
        written = self._loop.create_task(self._drain())
        try:
            await ends_within(written, self._left_until(SETTLED_BY), self._clock)
        finally:
            written.cancel()
        if left := len(self._settlements):
            logger.error("%d ends of jobs could not be written before the stop: their leases run out", left)
            self._settlements.abandon()

    async def _drain(self) -> None:
        await self._settlements.drain()
        await self._hooks.drain()

    async def _leave(self) -> None:
        self._left = True
        self._halt.close()
        self._settlements.close()
        if self._services is not None:
            await self._while_the_store_answers(self._services.stop())
        if hasattr(self, "_worker"):
            self._worker.close()
        await self._processes.close()
        self._threads.close()
        try:
            await self._parts.aclose()
        finally:
            await self._spawn.close()

    async def _take_out(self) -> None:
        """Leave no record of a server that never ran, or could not take its leave."""
        if self._services is not None and self._services.registered and not self._fenced:
            await self._while_the_store_answers(self._client.store.leave(self._id))

    async def _while_the_store_answers(self, leaving: Coroutine[Any, Any, None]) -> None:
        """Run the last words to the store, and do not wait for them when it does not listen."""
        task = self._loop.create_task(leaving)
        try:
            await ends_within(task, self._left_until(LEFT_BY), self._clock)
        finally:
            task.cancel()
            await asyncio.wait((task,))
        error = WindlassError("the store does not answer") if task.cancelled() else task.exception()
        if error is not None:
            logger.warning("server %s stays listed until it is seen to be gone: %s", self._id, error)
