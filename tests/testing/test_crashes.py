import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from windlass import App, Context, InvalidValue, Job, Server, ServerConfig, State
from windlass.testing import TestApp, crash, crash_at, in_memory


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App(f"sqlite:///{tmp_path}/jobs.db")


@pytest.fixture
async def test(app: App) -> AsyncIterator[TestApp]:
    async with in_memory(app) as test:
        yield test


async def test_a_crashed_server_settles_releases_and_takes_out_nothing(app: App, test: TestApp) -> None:
    let_go = threading.Event()

    @app.job
    async def hang() -> None:
        await asyncio.Event().wait()

    @app.job
    def hang_in_a_thread() -> None:
        let_go.wait(10)

    async with test.server(concurrency=2) as server:
        for handler in (hang, hang_in_a_thread):
            await handler.enqueue()
        await test.drain()

        await crash(server)

        let_go.set()
        assert not server.running
        assert [(job.state, job.attempt) for job in test.jobs()] == [(State.RUNNING, 1)] * 2
        assert [record.id for record in await test.client.store.servers()] == [server.id]
    assert [job.state for job in test.jobs()] == [State.RUNNING] * 2


async def test_its_jobs_come_back_when_their_leases_are_over(app: App, test: TestApp) -> None:
    @app.job
    async def work(ctx: Context) -> int:
        if ctx.attempt == 1:
            await asyncio.Event().wait()
        return ctx.attempt

    async with test.server(lease=30) as first:
        handle = await work.enqueue()
        await test.drain()
        await crash(first)
    async with test.server(lease=30):
        await test.advance(29)
        assert (await handle.job()).state is State.RUNNING

        await test.advance(10)

        assert await handle.result(0) == 2


async def test_after_a_crash_jobs_run_in_place_again(app: App, test: TestApp) -> None:
    @app.job
    async def work(ctx: Context) -> int:
        if ctx.attempt == 1:
            await asyncio.Event().wait()
        return ctx.attempt

    async with test.server(lease=30) as server:
        handle = await work.enqueue()
        await test.drain()
        await crash(server)

        assert await test.advance(30) == 1
        assert await handle.result(0) == 2


async def test_a_crashed_server_can_be_started_again(app: App, test: TestApp) -> None:
    @app.job
    async def work() -> str:
        return "done"

    async with test.server() as server:
        former = server.id
        await crash(server)
        await server.start()

        handle = await work.enqueue()

        assert await handle.result() == "done"
        assert server.id != former


async def test_crashing_a_server_that_does_not_run_is_harmless(test: TestApp) -> None:
    async with test.server() as server:
        await crash(server)
        await crash(server)


async def test_a_server_on_a_store_of_its_own_can_crash_too(app: App) -> None:
    begun = asyncio.Event()

    @app.job
    async def hang() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with app:
        server = Server(app, ServerConfig())
        await server.start()
        handle = await hang.enqueue()
        await begun.wait()

        await crash(server)

        assert (await handle.job()).state is State.RUNNING


@pytest.mark.parametrize("point,runs", [("after_claim", 1), ("before_handler", 1), ("before_settle", 2)])
@pytest.mark.parametrize("runner", ["in place", "by a server"])
async def test_an_attempt_that_crashed_is_made_again_after_its_lease(
    app: App, test: TestApp, point: str, runs: int, runner: str
) -> None:
    run: list[int] = []

    @app.job
    async def work(ctx: Context) -> int:
        run.append(ctx.attempt)
        return ctx.attempt

    async def scenario() -> None:
        handle = await work.enqueue()
        with crash_at(point):  # type: ignore[arg-type]
            assert await test.drain() == 1
        job = await handle.job()
        assert (job.state, job.attempt) == (State.RUNNING, 1)

        await test.advance(40)

        assert await handle.result(0) == 2
        assert len(run) == runs

    if runner == "by a server":
        async with test.server(lease=30):
            await scenario()
    else:
        await scenario()


async def test_an_attempt_that_failed_can_crash_before_that_is_written(app: App, test: TestApp) -> None:
    @app.job(max_attempts=1)
    async def fail() -> None:
        raise ValueError

    with crash_at("before_settle"):
        handle = await fail.enqueue()
        await test.drain()

    assert (await handle.job()).state is State.RUNNING
    await test.advance(30)
    job = await handle.job()
    assert job.state is State.DEAD
    assert "lease" in str(job.last_error)


async def test_after_the_settlement_only_the_hooks_are_lost(app: App, test: TestApp) -> None:
    told: list[State] = []

    @app.on_state_change
    def moved(_job: Job, _old: State, new: State) -> None:
        told.append(new)

    @app.job
    async def work() -> None:
        pass

    with crash_at("after_settle"):
        handle = await work.enqueue()
        await test.drain()

    assert (await handle.job()).state is State.SUCCEEDED
    assert told == []
    await work.enqueue()
    await test.drain()
    assert told == [State.SUCCEEDED]


async def test_a_handler_in_a_thread_can_crash(app: App, test: TestApp) -> None:
    @app.job
    def work() -> str:
        return "done"

    with crash_at("before_settle"):
        handle = await work.enqueue()
        await test.drain()

    assert (await handle.job()).state is State.RUNNING
    await test.drain(advance=True)
    assert await handle.result(0) == "done"


async def test_every_attempt_may_crash_until_none_is_left(app: App, test: TestApp) -> None:
    @app.job(max_attempts=3)
    async def work() -> None:
        pass

    with crash_at("before_settle", times=3) as fault:
        handle = await work.enqueue()
        await test.drain(advance=True)

    assert fault.fired == 3
    assert (await handle.job()).state is State.DEAD


async def test_other_attempts_go_on(app: App, test: TestApp) -> None:
    @app.job
    async def work(number: int) -> None:
        pass

    with crash_at("before_handler"):
        await app.enqueue_many(work.call(number) for number in range(3))
        await test.drain()

    assert [job.state for job in test.jobs()] == [State.RUNNING, State.SUCCEEDED, State.SUCCEEDED]


async def test_what_was_to_commit_with_the_success_is_lost_with_it(app: App, test: TestApp) -> None:
    @app.job
    async def second() -> None:
        pass

    @app.job
    async def first(ctx: Context) -> None:
        ctx.then(second.call())

    with crash_at("before_settle"):
        await first.enqueue()
        await test.drain()

    test.assert_not_enqueued(second)
    await test.drain(advance=True)
    test.assert_enqueued(second, count=1)


def test_a_block_in_which_nothing_crashed_fails() -> None:
    with pytest.raises(AssertionError, match="0 of 1 attempts crashed at 'before_settle'"), crash_at("before_settle"):
        pass


def test_an_error_in_the_block_is_not_hidden() -> None:
    with pytest.raises(KeyError), crash_at("before_settle"):
        raise KeyError


def test_an_unknown_point_is_refused() -> None:
    with (
        pytest.raises(InvalidValue, match="at after_claim, before_handler, before_settle, after_settle, not at 'now'"),
        crash_at("now"),  # type: ignore[arg-type]
    ):
        pass
