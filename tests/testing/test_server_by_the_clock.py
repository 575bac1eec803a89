"""A real server by a clock that stands still: everything that takes time runs at once."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from windlass import App, CancelOutcome, Context, Exponential, JobDead, Snooze, State
from windlass.testing import TestApp, in_memory

HOUR = timedelta(hours=1)


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App(f"sqlite:///{tmp_path}/jobs.db")


@pytest.fixture
async def test(app: App) -> AsyncIterator[TestApp]:
    async with in_memory(app) as test:
        yield test


async def test_a_job_is_run_as_soon_as_it_is_there(app: App, test: TestApp) -> None:
    @app.job
    async def work() -> str:
        return "done"

    async with test.server():
        handle = await work.enqueue()

        assert await handle.result() == "done"


async def test_a_delay_is_over_when_the_clock_says_so(app: App, test: TestApp) -> None:
    @app.job
    async def work() -> float:
        return test.clock.monotonic()

    async with test.server():
        handle = await work.options(delay=HOUR).enqueue()

        assert await test.advance(HOUR - timedelta(seconds=1)) == 0
        assert await test.advance(1) == 1
        assert await handle.result(0) == HOUR.total_seconds()


async def test_one_leap_of_the_clock_is_enough_for_what_is_due(app: App, test: TestApp) -> None:
    @app.job
    async def work() -> str:
        return "done"

    async with test.server():
        handle = await work.options(delay=HOUR).enqueue()
        await test.drain()

        test.clock.advance(HOUR)

        assert await handle.result() == "done"


async def test_retries_come_when_their_policy_says(app: App, test: TestApp) -> None:
    times: list[float] = []

    @app.job(max_attempts=4, retry=Exponential(base=10, factor=2))
    async def fail() -> None:
        times.append(test.clock.monotonic())
        raise ConnectionError("no line")

    async with test.server():
        handle = await fail.enqueue()

        assert await test.advance(100) == 4
        assert times == [0, 10, 30, 70]
        with pytest.raises(JobDead, match="no line") as dead:
            await handle.result(0)
        assert isinstance(dead.value.__cause__, ConnectionError)


async def test_a_snooze_is_over_when_the_clock_says_so(app: App, test: TestApp) -> None:
    @app.job(max_attempts=1)
    async def later(ctx: Context) -> float:
        if ctx.delivery == 1:
            raise Snooze(HOUR)
        return test.clock.monotonic()

    async with test.server():
        handle = await later.enqueue()
        await test.drain(advance=True)

        assert await handle.result(0) == HOUR.total_seconds()


async def test_a_timeout_ends_an_async_handler(app: App, test: TestApp) -> None:
    @app.job(timeout=60, max_attempts=1)
    async def hang() -> None:
        await asyncio.Event().wait()

    async with test.server():
        handle = await hang.enqueue()
        await test.advance(59)
        assert (await handle.job()).state is State.RUNNING

        await test.advance(1)

        with pytest.raises(JobDead, match=r"longer than its timeout of 0:01:00"):
            await handle.result(0)


async def test_a_timeout_settles_what_runs_in_a_thread(app: App, test: TestApp) -> None:
    let_go = threading.Event()

    @app.job(timeout=60, max_attempts=1)
    def hang() -> None:
        let_go.wait(10)

    async with test.server():
        handle = await hang.enqueue()
        await test.advance(60)

        with pytest.raises(JobDead, match="longer than its timeout"):
            await handle.result(0)
        let_go.set()


async def test_the_lease_of_a_running_job_is_renewed_while_the_clock_goes_on(app: App, test: TestApp) -> None:
    go_on = asyncio.Event()

    @app.job(timeout=None)
    async def slow(ctx: Context) -> int:
        await go_on.wait()
        return ctx.delivery

    async with test.server(lease=30):
        handle = await slow.enqueue()
        await test.advance(HOUR)
        assert (await handle.job()).state is State.RUNNING

        go_on.set()

        assert await handle.result() == 1


async def test_a_claim_that_nobody_renews_is_rescued_when_its_lease_is_over(app: App, test: TestApp) -> None:
    @app.job
    async def work(ctx: Context) -> int:
        return ctx.attempt

    handle = await work.enqueue()
    await test.client.claim("default", lease=30)
    async with test.server(rescue_interval=5):
        await test.advance(29)
        assert (await handle.job()).state is State.RUNNING

        await test.advance(6)

        assert await handle.result(0) == 2


async def test_a_running_job_that_is_cancelled_is_given_five_seconds(app: App, test: TestApp) -> None:
    told = asyncio.Event()

    @app.job
    async def stubborn(ctx: Context) -> None:
        await ctx.cancelled.wait()
        told.set()
        await asyncio.Event().wait()

    async with test.server():
        handle = await stubborn.enqueue()
        await test.drain()
        assert await handle.cancel() is CancelOutcome.REQUESTED
        await told.wait()
        await test.advance(4)
        assert (await handle.job()).state is State.RUNNING

        await test.advance(1)

        assert (await handle.job()).state is State.CANCELLED


async def test_a_stop_waits_its_grace_by_the_clock_and_gives_the_job_back(app: App, test: TestApp) -> None:
    @app.job
    async def hang() -> None:
        await asyncio.Event().wait()

    async with test.server(shutdown_timeout=30) as server:
        handle = await hang.enqueue()
        await test.drain()
        stopping = asyncio.create_task(server.stop())
        await test.clock.let_pass(29)
        assert not stopping.done()

        await test.clock.let_pass(1)
        await stopping

        job = await handle.job()
        assert (job.state, job.attempt) == (State.PENDING, 0)


async def test_the_end_of_the_block_waits_for_no_handler_that_does_not_end(app: App, test: TestApp) -> None:
    @app.job
    async def hang() -> None:
        await asyncio.Event().wait()

    async with test.server():
        handle = await hang.enqueue()
        await test.drain()

    assert (await handle.job()).state is State.PENDING


async def test_a_handler_in_a_thread_is_waited_for_before_the_clock_goes_on(app: App, test: TestApp) -> None:
    @app.job(timeout=1, max_attempts=1)
    def think() -> int:
        return sum(range(100_000))

    async with test.server():
        handle = await think.options(delay=10).enqueue()
        await test.advance(HOUR)

        assert await handle.result(0) == sum(range(100_000))


def where_it_runs() -> int:
    return os.getpid()


async def test_no_child_process_is_started_which_would_look_for_its_app_elsewhere(app: App, test: TestApp) -> None:
    work = app.job(process=True)(where_it_runs)

    async with test.server():
        handle = await work.enqueue()

        assert await handle.result() == os.getpid()


async def test_records_are_pruned_when_the_clock_says_so(app: App, test: TestApp) -> None:
    @app.job
    async def work() -> None:
        pass

    async with test.server(keep_succeeded=600):
        await work.enqueue()
        await test.advance(599)
        assert len(test.jobs(work)) == 1

        await test.advance(61)

        assert test.jobs(work) == []


async def test_a_server_is_seen_alive_while_the_clock_goes_on(test: TestApp) -> None:
    async with test.server():
        await test.advance(HOUR)

        [record] = await test.client.store.servers()
        assert test.clock.now() - record.seen_at <= timedelta(seconds=10)
    assert await test.client.store.servers() == []
