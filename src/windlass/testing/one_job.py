"""One call of a handler as a job: with a real context and a real claim, and without a server."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import Any, Final, Generic, NamedTuple, ParamSpec, TypeVar

from windlass.app.app import App
from windlass.app.handler import Handler
from windlass.client.client import Client
from windlass.client.failure import failure_of
from windlass.core.errors import InvalidValue
from windlass.core.job import Claim, NewJob
from windlass.core.verdict import GaveUp, Outcome, Returned
from windlass.engine.attempt import Attempt, arguments_of
from windlass.engine.attempt_services import AttemptServices
from windlass.engine.context import Context, running
from windlass.engine.executors.threads import Threads
from windlass.engine.held_claims import HeldClaims
from windlass.engine.kept_log import kept_log
from windlass.engine.notes import Notes
from windlass.engine.observed import here
from windlass.engine.ready import ReadyHandler
from windlass.engine.settlement_writer import SettlementWriter
from windlass.handlers.registered import RunsIn
from windlass.testing.app_in_memory import in_memory, in_memory_sync

P = ParamSpec("P")
R = TypeVar("R")

_MOST_URGENT: Final = 0


async def run_job(handler: Handler[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a handler as a job with these arguments, and return what it returns; what it raises is raised here.

    It gets a real `Context`. The arguments go through JSON, as those of every job; what a lifespan would provide may be
    given by its name, else the lifespan is opened. There is no middleware, no timeout and no retry: a job that raised
    is dead. The app is put on an empty store in memory for the time of the call, unless it is in a test already:
    then the job, its progress, its log and what it enqueued by `ctx.then` are found there.

    ```python
    import windlass
    from windlass.testing import run_job

    app = windlass.App("sqlite:///jobs.db")

    @app.job
    async def count(words: list[str], ctx: windlass.Context) -> int:
        ctx.progress(0, len(words))
        return len(words)

    assert await run_job(count, ["one", "two"]) == 2
    ```
    """
    app = _app_of(handler)
    call = _Call(handler, args, kwargs)
    if app.in_test:
        return await _run(app, app.client, call)
    async with in_memory(app) as test:
        return await _run(app, test.client, call)


def run_job_sync(handler: Handler[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a handler as a job, as `run_job` does, from a test without an event loop."""
    app = _app_of(handler)
    call = _Call(handler, args, kwargs)
    with nullcontext() if app.in_test else in_memory_sync(app):
        return app.blocking_client.run(lambda client: _run(app, client, call))


class _Call(NamedTuple, Generic[R]):
    handler: Handler[..., R]
    args: Sequence[object]
    kwargs: Mapping[str, object]


def _app_of(handler: object) -> App:
    name, app = type(handler).__name__, getattr(handler, "app", None)
    if isinstance(handler, Handler) and isinstance(app, App):
        return app
    message = f"run_job takes a handler, a function under @app.job, not {name}"
    raise InvalidValue(message)


async def _run(app: App, client: Client, call: _Call[R]) -> R:
    handler = call.handler
    wants = handler.registered.arguments.wants
    provided = {name: value for name, value in call.kwargs.items() if name in wants and wants[name] is not Context}
    arguments = {name: value for name, value in call.kwargs.items() if name not in provided}
    job = handler.call(*call.args, **arguments).new_job()
    missing = [name for name, wanted in wants.items() if wanted is not Context and name not in provided]
    async with app.open_lifespan() if missing else _nothing() as opened:
        by_type = {**opened, **{wants[name]: value for name, value in provided.items()}}
        ready = ReadyHandler(here(handler.registered), by_type, timeout=None)
        # two parameters of one type may be given two values
        ready.extras.update(provided)
        result: R = await _run_claimed(client, await _claimed(client, job), ready)
        return result


@asynccontextmanager
async def _nothing() -> AsyncGenerator[Mapping[type, Any]]:
    yield {}


async def _claimed(client: Client, job: NewJob) -> Claim:
    """Enqueue a job and claim it, and no other."""
    [enqueued] = await client.enqueue_many([job._replace(priority=_MOST_URGENT)])
    kinds = {job.kind} if job.kind is not None else None
    others: list[Claim] = []
    try:
        while claims := await client.claim_many((job.queue,), kinds=kinds):
            [claim] = claims
            if claim.job.id == enqueued.id:
                return claim
            others.append(claim)
    finally:
        for other in others:
            await client.release(other)
    message = f"queue {job.queue!r} is paused, so its jobs cannot be run: resume it first"
    raise InvalidValue(message)


async def _run_claimed(client: Client, claim: Claim, handler: ReadyHandler) -> Any:  # noqa: ANN401 - whatever the handler returns
    notes = Notes(client.store)
    lease = client.settings.of(claim.job.queue).lease.total_seconds()
    attempt = Attempt(claim, handler, lease, client.clock.monotonic(), AttemptServices(client, notes))
    settlements = SettlementWriter(client, HeldClaims(), notes)

    async def settle(outcome: Outcome) -> None:
        await notes.flush()
        if not attempt.settled:
            settlements.add(attempt, outcome)
            await settlements.drain()

    telling = asyncio.create_task(_tell(claim, attempt))
    try:
        result = await _call(attempt)
        outcome = Returned() if result is None else Returned(*client.preparer.encode(result, "result"))
    except Exception as error:
        await settle(GaveUp(failure_of(error)))
        raise
    finally:
        telling.cancel()
    await settle(outcome)
    return result


async def _call(attempt: Attempt) -> Any:  # noqa: ANN401 - as above
    function = partial(attempt.handler.function, **arguments_of(attempt))
    token = running.set(attempt)
    try:
        with kept_log():
            if attempt.handler.runs_in is not RunsIn.THREAD:
                return await function()
            threads = Threads()
            try:
                return await threads.call(function)
            finally:
                threads.close()
    finally:
        running.reset(token)


async def _tell(claim: Claim, attempt: Attempt) -> None:
    """Have a cancellation of the job set `ctx.cancelled`, as a server would."""
    await claim.cancelled.wait()
    attempt.tell(claim.cancelled.reason or "cancel")
