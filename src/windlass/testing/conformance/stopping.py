"""A stop lets running jobs finish, gives back what cannot, and costs no job an attempt."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from windlass.app.app import App
from windlass.client.client import Client
from windlass.client.server_details import presence
from windlass.core.retry import NoRetry
from windlass.core.signals import Cancel
from windlass.core.states import State
from windlass.core.store import Store
from windlass.engine.config import ServerConfig
from windlass.engine.context import Context
from windlass.engine.server import Server
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenApp, outlast, soon
from windlass.testing.conformance.given import HOUR
from windlass.testing.conformance.served import (
    FailingStore,
    SlowStore,
    busy,
    ended,
    goes_by,
    quiet,
    serving,
    until,
    working,
)


async def test_a_stop_waits_for_the_job_that_runs(app: App, client: Client) -> None:
    go, finished = asyncio.Event(), list[str]()

    @app.job
    async def work() -> None:
        await go.wait()
        finished.append("work")

    async with serving(app) as server:
        await work.enqueue()
        await busy(server)
        stopping = asyncio.create_task(server.stop())
        await quiet(app)
        assert not stopping.done()
        assert (server.running, server.stopping, server.health().reasons) == (True, True, ("the server is stopping",))

        go.set()
        await soon(stopping)

        assert finished == ["work"]
        stats = await client.stats("default")
        assert (stats.running, stats.succeeded) == (0, 1)


async def test_a_server_that_stops_is_listed_as_stopping_with_what_it_still_runs(
    app: App, clock: FakeClock, store: Store
) -> None:
    go = [asyncio.Event(), asyncio.Event()]

    @app.job
    async def work(number: int) -> None:
        await go[number].wait()

    async with serving(app) as server:
        for number in (0, 1):
            await work.enqueue(number)
        await busy(server, 2)
        stopping = asyncio.create_task(server.stop())
        await goes_by(app, clock, 1)
        [both] = await working(store)
        go[0].set()
        await busy(server, 1)
        await goes_by(app, clock, 1)
        [one] = await working(store)
        go[1].set()
        await soon(stopping)

        assert (both.running, one.running) == (2, 1)
        assert presence(both, both.seen_at, HOUR) == presence(one, one.seen_at, HOUR) == "stopping"
        assert await working(store) == []


async def test_a_job_that_ends_within_the_grace_is_settled(app: App, clock: FakeClock) -> None:
    ran = 0

    @app.job
    async def work() -> None:
        nonlocal ran
        await clock.sleep(0.5)
        ran += 1

    server = Server(app, ServerConfig(shutdown_timeout=5))
    await server.start()
    handle = await work.enqueue()
    await busy(server)
    stopping = asyncio.create_task(server.stop())
    await quiet(app)
    clock.advance(0.5)
    await soon(stopping)

    job = await handle.job()
    assert (ran, job.state, job.delivery) == (1, State.SUCCEEDED, 1)


async def test_running_code_is_told_of_a_stop_at_once(app: App, clock: FakeClock) -> None:
    reasons: list[str | None] = []
    begun = threading.Semaphore(0)

    @app.job
    async def work(ctx: Context) -> None:
        begun.release()
        told = asyncio.create_task(ctx.cancelled.wait())
        slept = asyncio.create_task(clock.sleep(10))
        await asyncio.wait((told, slept), return_when=asyncio.FIRST_COMPLETED)
        slept.cancel()
        reasons.append(ctx.cancelled.reason)

    @app.job
    def thread(ctx: Context) -> None:
        begun.release()
        ctx.cancelled.wait_sync(10)
        reasons.append(ctx.cancelled.reason)

    async with serving(app) as server:
        for each in (work, thread):
            await each.enqueue()
            assert await asyncio.to_thread(begun.acquire, timeout=10)

        await soon(server.stop())

    assert reasons == ["stop", "stop"]


async def test_running_code_is_told_of_a_stop_while_a_claim_is_on_its_way(
    open_app: OpenApp, new_store: Callable[[], Store]
) -> None:
    """What that claim brings goes back."""
    slow = SlowStore(new_store())
    app = open_app(url=slow)
    told = asyncio.Event()

    @app.job
    async def work(ctx: Context) -> None:
        await ctx.cancelled.wait()
        told.set()

    async with serving(app) as server:
        first = await work.enqueue()
        await busy(server)
        await quiet(app)
        slow.go.clear()
        second = await work.enqueue()
        await soon(slow.held_up.wait())
        stopping = asyncio.create_task(server.stop())

        await soon(told.wait())
        slow.go.set()
        await soon(stopping)

        assert (await first.job()).state is State.SUCCEEDED
        job = await second.job()
        assert (job.state, job.attempt, job.delivery) == (State.PENDING, 0, 1)


async def test_nothing_is_claimed_any_more_and_what_was_not_begun_goes_back_at_no_cost(
    app: App, client: Client
) -> None:
    go = asyncio.Event()
    begun: list[int] = []

    @app.job
    async def work(number: int) -> None:
        begun.append(number)
        if number >= 10:
            await go.wait()

    await client.pause("default")
    handles = await app.enqueue_many([work.call(number) for number in range(30)])
    async with serving(app, concurrency=1) as server:
        await client.resume("default")
        await until(lambda: 10 in begun)
        await quiet(app)
        assert (await client.stats("default")).running > 1
        stopping = asyncio.create_task(server.stop())
        await quiet(app)
        late = await work.enqueue(99)
        await quiet(app)
        assert (await client.stats("default")).running == 1
        go.set()
        await soon(stopping)

    jobs = [await handle.job() for handle in [*handles, late]]
    assert [job.state for job in jobs] == [State.SUCCEEDED] * 11 + [State.PENDING] * 20
    assert {job.attempt for job in jobs[11:]} == {0}
    assert begun == list(range(11))


async def test_what_does_not_end_within_the_grace_is_cancelled_and_given_back(app: App, clock: FakeClock) -> None:
    @app.job(max_attempts=1)
    async def work(ctx: Context) -> str:
        if ctx.delivery == 1:
            await asyncio.Event().wait()
        return f"delivery {ctx.delivery}, attempt {ctx.attempt}"

    handle = await work.enqueue()
    async with serving(app, shutdown_timeout=20) as server:
        await busy(server)
        stopping = asyncio.create_task(server.stop())
        await goes_by(app, clock, 19)
        assert not stopping.done()
        await goes_by(app, clock, 1)
        await soon(stopping)
        job = await handle.job()
        assert (job.state, job.attempt, job.delivery) == (State.PENDING, 0, 1)
        assert [each.outcome for each in job.history] == ["released"]

    async with serving(app):
        assert await soon(handle.result()) == "delivery 2, attempt 1"


async def test_a_stop_has_the_grace_that_it_is_given(app: App) -> None:
    @app.job
    async def work() -> None:
        await asyncio.Event().wait()

    server = Server(app)
    await server.start()
    handle = await work.enqueue()
    await busy(server)

    await soon(server.stop(grace=0))

    assert (await handle.job()).state is State.PENDING


async def test_a_coroutine_that_will_not_end_is_not_given_back(
    app: App, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    ends = asyncio.Event()

    @app.job
    async def stubborn() -> None:
        while not ends.is_set():
            with suppress(asyncio.CancelledError):
                await ends.wait()

    server = Server(app)
    await server.start()
    handle = await stubborn.enqueue()
    await busy(server)

    await outlast(clock, server.stop(grace=0))

    assert (await handle.job()).state is State.RUNNING
    assert "does not end with its server" in caplog.text
    ends.set()
    await until(lambda: "has ended after its server" in caplog.text)


async def test_a_thread_is_not_given_back_while_it_runs(
    app: App, client: Client, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Its lease runs out by itself, and nobody runs it twice at once."""
    go = threading.Event()

    @app.job
    def work() -> str:
        go.wait(10)
        return "too late"

    server = Server(app)
    await server.start()
    handle = await work.enqueue()
    await busy(server)

    await outlast(clock, server.stop(grace=0))

    job = await handle.job()
    assert (job.state, job.attempt) == (State.RUNNING, 1)
    assert "does not end with its server" in caplog.text
    assert await client.rescue() == 0
    go.set()
    await until(lambda: "has ended after its server" in caplog.text)
    clock.advance(31)
    assert await client.rescue() == 1
    assert (await handle.job()).attempt == 1


async def test_a_cancel_by_a_handler_during_a_stop_is_a_release(app: App, caplog: pytest.LogCaptureFixture) -> None:
    @app.job
    async def work(ctx: Context) -> None:
        await ctx.cancelled.wait()
        raise Cancel("somebody wants me to stop")

    async with serving(app) as server:
        handle = await work.enqueue()
        await busy(server)
        await soon(server.stop())

    job = await handle.job()
    assert (job.state, job.attempt) == (State.PENDING, 0)
    assert "raised Cancel while its server stops" in caplog.text


async def test_an_error_during_a_stop_is_one_of_the_attempt(app: App) -> None:
    @app.job(retry=NoRetry())
    async def work(ctx: Context) -> None:
        await ctx.cancelled.wait()
        raise LookupError("while stopping")

    async with serving(app) as server:
        handle = await work.enqueue()
        await busy(server)
        await soon(server.stop())

    assert (await handle.job()).last_error == "LookupError: while stopping"


async def test_leases_are_renewed_while_a_stop_waits_for_long_jobs(
    open_app: OpenApp, client: Client, clock: FakeClock
) -> None:
    app = open_app()
    ran = 0

    @app.job(timeout=None)
    async def long() -> None:
        nonlocal ran
        ran += 1
        await clock.sleep(300)

    async with serving(app, shutdown_timeout=HOUR) as server:
        handle = await long.enqueue()
        await busy(server)
        stopping = asyncio.create_task(server.stop())
        for _ in range(29):
            await goes_by(app, clock, 10, step=5)
            assert await client.rescue() == 0
        await goes_by(app, clock, 10, step=5)
        await soon(stopping)

    job = await handle.job()
    assert (job.state, job.delivery, ran) == (State.SUCCEEDED, 1, 1)


async def test_a_stop_without_the_store_ends_in_time_and_says_what_is_left(
    open_app: OpenApp, new_store: Callable[[], Store], clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    failing = FailingStore(new_store())
    app = open_app(url=failing)

    @app.job
    async def work(ctx: Context) -> None:
        await ctx.cancelled.wait()

    server = Server(app)
    await server.start()
    handle = await work.enqueue()
    await busy(server)
    failing.failing = {"settle": 1_000, "leave": 1_000, "beat": 1_000}

    stopping = asyncio.create_task(server.stop())
    await goes_by(app, clock, 30)
    await goes_by(app, clock, 1, step=0.1)

    assert stopping.done()
    assert not server.running
    assert "1 ends of jobs could not be written before the stop" in caplog.text
    failing.failing = {}
    assert (await handle.job()).state is State.RUNNING


async def test_two_stops_at_once_are_one(app: App) -> None:
    go = asyncio.Event()

    @app.job
    async def work() -> None:
        await go.wait()

    server = Server(app)
    await server.start()
    handle = await work.enqueue()
    await busy(server)
    stops = [asyncio.create_task(server.stop()) for _ in range(3)]
    await quiet(app)
    go.set()
    await soon(asyncio.gather(*stops))

    assert (await handle.job()).state is State.SUCCEEDED


async def test_work_goes_on_elsewhere_after_a_stop(open_app: OpenApp) -> None:
    one, other = open_app(), open_app()

    async def work(ctx: Context) -> str:
        if ctx.delivery == 1:
            await asyncio.Event().wait()
        return ctx.job.worker or ""

    handle = await one.job(work).enqueue()
    other.job(work)
    async with serving(one) as first:
        await busy(first)
        async with serving(other) as second:
            await soon(first.stop(grace=0))
            assert await soon(handle.result()) == second.id
    assert (await ended(handle)).attempt == 1
