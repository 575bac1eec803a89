"""How an attempt ends that takes too long, or whose job somebody cancels."""

import asyncio
import threading
from contextlib import suppress

import pytest

from windlass.app.app import App
from windlass.client.client import Client
from windlass.core.requests import CancelOutcome
from windlass.core.retry import Fixed, NoRetry
from windlass.core.states import State
from windlass.engine.context import Context
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenApp, soon
from windlass.testing.conformance.given import MINUTE
from windlass.testing.conformance.served import busy, ended, goes_by, quiet, serving, stands, until, working

TIMED_OUT = "Timeout: the attempt ran longer than its timeout of 0:01:00"


async def test_a_coroutine_that_takes_too_long_is_cancelled_and_its_attempt_failed(app: App, clock: FakeClock) -> None:
    reasons: list[str | None] = []

    @app.job(timeout=MINUTE, retry=Fixed(0), max_attempts=2)
    async def work(ctx: Context) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            reasons.append(ctx.cancelled.reason)

    async with serving(app):
        handle = await work.enqueue()
        await stands(handle, State.RUNNING)
        await goes_by(app, clock, 59, step=5.9)
        assert reasons == []
        await goes_by(app, clock, 1, step=0.5)
        job = await stands(handle, State.RUNNING, attempt=2)
        assert job.last_error == TIMED_OUT
        await goes_by(app, clock, 60, step=6)
        job = await ended(handle)

    assert (job.state, job.last_error, reasons) == (State.DEAD, TIMED_OUT, ["timeout", "timeout"])


async def test_a_coroutine_that_will_not_end_is_settled_as_failed_and_keeps_its_slot(
    app: App, clock: FakeClock
) -> None:
    ends = asyncio.Event()

    @app.job(timeout=MINUTE, retry=NoRetry())
    async def stubborn() -> str:
        while not ends.is_set():
            with suppress(asyncio.CancelledError):
                await ends.wait()
        return "nobody sees this"

    @app.job
    async def neighbour() -> str:
        return "done"

    async with serving(app, concurrency=2) as server:
        handle = await stubborn.enqueue()
        await stands(handle, State.RUNNING)
        await goes_by(app, clock, 66)
        job = await ended(handle)
        assert (job.state, job.last_error) == (State.DEAD, TIMED_OUT)
        [reason] = server.health().reasons
        assert "1 of 2 slots are held" in reason
        assert handle.id in reason
        assert await soon((await neighbour.enqueue()).result()) == "done"

        ends.set()
        await until(lambda: server.health().ready)

    assert (await handle.job()).state is State.DEAD


async def test_a_thread_that_takes_too_long_is_told_and_settled_as_failed_and_keeps_its_slot(
    app: App, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    go, reasons = threading.Event(), list[str | None]()

    @app.job(timeout=MINUTE, retry=NoRetry())
    def work(ctx: Context) -> str:
        ctx.cancelled.wait_sync(10)
        reasons.append(ctx.cancelled.reason)
        go.wait(10)
        return "too late"

    @app.job
    async def neighbour() -> str:
        return "done"

    async with serving(app, concurrency=1) as server:
        handle, waiting = await work.enqueue(), await neighbour.enqueue()
        await stands(handle, State.RUNNING)
        await goes_by(app, clock, 60, step=6)
        job = await ended(handle)
        assert (job.state, job.attempt, job.last_error) == (State.DEAD, 1, TIMED_OUT)
        await until(lambda: reasons == ["timeout"])
        await quiet(app)
        assert (await waiting.job()).delivery == 0
        assert not server.health().ready
        assert "process=True" in caplog.text

        go.set()
        assert await soon(waiting.result()) == "done"
        assert server.health().ready

    assert (await handle.job()).state is State.DEAD


async def test_a_stuck_thread_is_shown_with_its_server(app: App, client: Client, clock: FakeClock) -> None:
    go = threading.Event()

    @app.job(timeout=1, retry=NoRetry())
    def work() -> None:
        go.wait(10)

    async with serving(app, concurrency=4) as server:
        handle = await work.enqueue()
        await stands(handle, State.RUNNING)
        await goes_by(app, clock, 12)
        [record] = await working(client.store)
        assert record.details["stuck"] == handle.id
        assert server.health().ready
        go.set()
        # a thread ends in its own time
        async with asyncio.timeout(10):
            while "stuck" in record.details:
                await goes_by(app, clock, 11)
                [record] = await working(client.store)


async def test_a_timeout_is_the_jobs_own_or_the_servers_or_none(app: App, clock: FakeClock) -> None:
    @app.job(timeout=20, retry=NoRetry())
    async def own() -> None:
        await asyncio.Event().wait()

    @app.job(retry=NoRetry())
    async def plain() -> None:
        await asyncio.Event().wait()

    @app.job(timeout=None)
    async def endless() -> str:
        await clock.sleep(100)
        return "done"

    async with serving(app, job_timeout=40):
        handles = [await work.enqueue() for work in (own, plain, endless)]
        for handle in handles:
            await stands(handle, State.RUNNING)
        await goes_by(app, clock, 20)
        assert [(await handle.job()).state.finished for handle in handles] == [True, False, False]
        await goes_by(app, clock, 20)
        assert [(await handle.job()).state.finished for handle in handles] == [True, True, False]
        await goes_by(app, clock, 60, step=5)
        assert (await ended(handles[2])).state is State.SUCCEEDED


async def test_a_job_without_a_timeout_is_nobodys_to_rescue_while_it_runs(open_app: OpenApp, clock: FakeClock) -> None:
    """It goes by the lease, which its server renews for as long as it takes."""
    app = open_app(lease=15)

    @app.job(timeout=None)
    async def endless() -> None:
        await clock.sleep(100)

    @app.job(timeout=0, retry=NoRetry())
    async def no_time_at_all() -> None:
        await asyncio.Event().wait()

    async with serving(app, job_timeout=20, rescue_interval=5):
        handle, over = await endless.enqueue(), await no_time_at_all.enqueue()
        await stands(handle, State.RUNNING)
        await goes_by(app, clock, 110, step=5)
        job, late = await ended(handle), await ended(over)

    assert (job.state, job.attempt, job.delivery) == (State.SUCCEEDED, 1, 1)
    assert late.state is State.DEAD
    assert "Timeout" in (late.last_error or "")
    assert (await app.client.stats()).totals.rescued == 0


async def test_a_coroutine_whose_job_is_cancelled_is_told_and_may_end_by_itself(app: App) -> None:
    reasons: list[str | None] = []

    @app.job
    async def returns(ctx: Context) -> str:
        await ctx.cancelled.wait()
        reasons.append(ctx.cancelled.reason)
        return "half done"

    @app.job(retry=Fixed(0))
    async def raises(ctx: Context) -> None:
        await ctx.cancelled.wait()
        raise LookupError("on the way out")

    async with serving(app) as server:
        one, other = await returns.enqueue(), await raises.enqueue()
        await busy(server, 2)
        for handle in (one, other):
            assert await handle.cancel() is CancelOutcome.REQUESTED
        assert (await ended(one)).state is State.SUCCEEDED
        job = await ended(other)

    assert (job.state, job.attempt, reasons) == (State.CANCELLED, 1, ["cancel"])


async def test_a_coroutine_that_does_not_listen_is_cancelled_after_five_seconds(app: App, clock: FakeClock) -> None:
    left: list[float] = []

    @app.job(retry=Fixed(0))
    async def deaf() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            left.append(clock.monotonic())

    async with serving(app) as server:
        handle = await deaf.enqueue()
        await busy(server)
        await handle.cancel()
        await goes_by(app, clock, 4.5, step=0.5)
        assert left == []
        await goes_by(app, clock, 1, step=0.5)
        job = await ended(handle)

    assert (job.state, job.delivery, len(left)) == (State.CANCELLED, 1, 1)


async def test_a_thread_whose_job_is_cancelled_is_told_and_no_more(app: App, clock: FakeClock) -> None:
    go, reasons = threading.Event(), list[str | None]()

    @app.job
    def work(ctx: Context) -> None:
        ctx.cancelled.wait_sync()
        reasons.append(ctx.cancelled.reason)
        go.wait(10)
        raise LookupError("on the way out")

    async with serving(app) as server:
        handle = await work.enqueue()
        await busy(server)
        await handle.cancel()
        await until(lambda: reasons == ["cancel"])
        await goes_by(app, clock, 15)
        assert (await handle.job()).state is State.RUNNING
        go.set()
        assert (await ended(handle)).state is State.CANCELLED


async def test_a_job_that_was_cancelled_in_its_last_moment_stays_what_it_is(app: App) -> None:
    @app.job
    async def work() -> str:
        return "done"

    async with serving(app):
        handle = await work.enqueue()
        await ended(handle)

        assert await handle.cancel() is CancelOutcome.NOT_FOUND
        assert (await handle.job()).state is State.SUCCEEDED
