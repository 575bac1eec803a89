"""Running one attempt: arguments, tenant, middleware, handler, outcome."""

import asyncio
import inspect
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import Any

from windlass.client.failure import failure_of
from windlass.client.settle import done_in_vain
from windlass.codec import Encoded
from windlass.core.errors import ClaimLost, DecodeError, EncodeError, InvalidValue, PayloadTooLarge
from windlass.core.verdict import GaveUp, Outcome, Returned
from windlass.engine.attempt import Attempt, arguments_of
from windlass.engine.context import running
from windlass.engine.executors.processes import Processes
from windlass.engine.executors.threads import Threads
from windlass.engine.outcomes import if_flagged, killed_for, outcome_of
from windlass.engine.served import Next, Served
from windlass.engine.settlement_writer import PLAIN
from windlass.handlers.registered import RunsIn
from windlass.system import eager_task


class ChildFailed(Exception):
    """An attempt in a child process ended otherwise than by returning."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"the attempt in the child process ended by {outcome}")
        self.outcome = outcome


class Execution:
    """Runs attempts where their handlers want to run, inside of what the app wraps around them."""

    def __init__(
        self,
        app: Served,
        *,
        threads: Threads,
        processes: Processes,
        on_end: Callable[[Attempt, Outcome], None] = lambda _attempt, _outcome: None,
    ) -> None:
        """Run plain functions in `threads` and those that want a process of their own in `processes`."""
        self._threads = threads
        self._processes = processes
        self.on_end = on_end
        """The one event of an attempt: called on the event loop when its code has ended, however it did."""
        self._client = app.client
        self._tenant_scope = app.tenant_scope
        self._middlewares = tuple(app.middlewares)

    def start(self, attempt: Attempt, loop: asyncio.AbstractEventLoop, context: Context | None = None) -> None:
        """Begin to run an attempt; one whose code waits for nothing has ended when this returns.

        It runs in `context`, or without one in a copy of the caller's, who may be another job at its end.
        """
        task = eager_task(self._run(attempt), loop, context=context)
        if not task.done():
            attempt.task = task

    async def _run(self, attempt: Attempt) -> None:
        running.set(attempt)
        try:
            outcome = await self._attempt(attempt)
        except ChildFailed as failed:
            outcome = failed.outcome
        except ClaimLost as error:
            if error.job_id == attempt.job.id:
                attempt.tell("claim_lost")
            outcome = outcome_of(error, job=attempt.job, reason=attempt.reason, timeout=attempt.timeout)
        except BaseException as error:  # noqa: BLE001 - nothing that a handler raises may stop the server
            outcome = outcome_of(error, job=attempt.job, reason=attempt.reason, timeout=attempt.timeout)
        if attempt.reason == "cancel":
            outcome = if_flagged(outcome)
        self.on_end(attempt, outcome)
        # the task's context leads back to the attempt: thousands of both would wait for the garbage collector
        attempt.task = None

    async def _attempt(self, attempt: Attempt) -> Outcome:
        handler = attempt.handler
        if handler.runs_in is RunsIn.PROCESS:
            return await self._wrapped(attempt, partial(self._in_a_process, attempt))
        try:
            arguments = arguments_of(attempt)
        except DecodeError as error:
            return GaveUp(failure_of(error), error)
        if handler.runs_in is RunsIn.THREAD:
            return await self._wrapped(attempt, partial(self._threads.call, partial(handler.function, **arguments)))
        if self._middlewares or (attempt.job.tenant is not None and self._tenant_scope is not None):
            return await self._wrapped(attempt, partial(handler.function, **arguments))
        result = await handler.function(**arguments)
        return PLAIN if result is None else self._returned(result)

    async def _wrapped(self, attempt: Attempt, call: Next) -> Outcome:
        """Run `call` inside of the tenant's scope and the middlewares, the first of them outermost."""
        for middleware in reversed(self._middlewares):
            call = partial(middleware, attempt.context, call)
        tenant = attempt.job.tenant
        # a child process opens the scope by itself, where its handler runs
        if tenant is None or self._tenant_scope is None or attempt.handler.runs_in is RunsIn.PROCESS:
            return self._returned(await call())
        async with self._tenant_scope(tenant):
            return self._returned(await call())
        # the scope took care of what was raised
        return PLAIN

    async def _in_a_process(self, attempt: Attempt) -> Any:  # noqa: ANN401 - whatever the handler returned
        child = attempt.child = self._processes.start(attempt.handler.registered, attempt)
        if attempt.reason is not None:
            child.tell(attempt.reason)
        try:
            end = await child.ended
        except BaseException:
            # a middleware waits no longer: nobody would hear how it ends
            child.kill()
            raise
        attempt.child = None
        if end.settled:
            attempt.settled = True
        outcome = killed_for(attempt.reason, attempt.timeout) if end.died is not None else None
        outcome = outcome or end.outcome
        if not isinstance(outcome, Returned):
            raise ChildFailed(outcome)
        attempt.next_jobs, attempt.kv_writes = end.next_jobs, end.kv_writes
        if outcome.result is None or outcome.codec is None:
            return None
        encoded = Encoded(outcome.result, outcome.codec)
        # a middleware sees the value, as of every other handler
        return self._client.preparer.decode(encoded) if self._middlewares else encoded

    def _returned(self, result: object) -> Outcome:
        if result is None:
            return PLAIN
        try:
            if inspect.iscoroutine(result):
                result.close()
                message = "the handler returned a coroutine, which nobody awaits: make it an async def"
                unawaited = InvalidValue(message)
                return GaveUp(failure_of(unawaited), unawaited)
            return Returned(*self._client.preparer.encode(result, "result"))
        except (EncodeError, PayloadTooLarge) as error:
            return done_in_vain(error)
        except BaseException as error:  # noqa: BLE001 - a value may bring code of its own, which fails as it likes
            why = failure_of(error).summary
            return done_in_vain(EncodeError(f"a value of type {type(result).__name__} cannot be encoded ({why})"))
