import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from windlass import App, Context, JobDead, PermanentFailure, Retry, Snooze, State, given
from windlass.app.handler import AsyncHandler


class Pool:
    def __init__(self) -> None:
        self.closed = False


@pytest.fixture(params=["memory://", "sqlite:///{}/jobs.db"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> App:
    return App(str(request.param).format(tmp_path), eager=True)


def with_a_pool(app: App) -> tuple[AsyncHandler[[], bool], list[Pool]]:
    opened: list[Pool] = []

    @app.lifespan
    @asynccontextmanager
    async def open_pool() -> AsyncGenerator[Pool, None]:
        pool = Pool()
        opened.append(pool)
        yield pool
        pool.closed = True

    @app.job
    async def use(*, pool: Pool = given()) -> bool:
        return not pool.closed

    return cast("AsyncHandler[[], bool]", use), opened


async def test_retries_take_no_time(app: App) -> None:
    @app.job(max_attempts=3)
    async def flaky(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise ConnectionError
        return ctx.attempt

    async with app:
        handle = await flaky.enqueue()

        assert await handle.result(0) == 3


async def test_neither_do_delays_and_snoozes(app: App) -> None:
    snoozed: list[int] = []

    @app.job
    async def later(ctx: Context) -> int:
        if not snoozed:
            snoozed.append(ctx.attempt)
            raise Snooze(3600)
        return ctx.delivery

    async with app:
        handle = await later.options(delay=3600).enqueue()

        assert await handle.result(0) == 2


async def test_what_commits_with_a_success_is_run_too(app: App) -> None:
    done: list[str] = []

    @app.job
    async def second() -> None:
        done.append("second")

    @app.job
    async def first(ctx: Context) -> None:
        done.append("first")
        ctx.then(second.call())

    async with app:
        await first.enqueue()

    assert done == ["first", "second"]


async def test_a_job_enqueued_by_a_job_is_run_at_its_enqueue(app: App) -> None:
    done: list[str] = []

    @app.job
    async def inner() -> str:
        done.append("inner")
        return "from inside"

    @app.job
    async def outer() -> str:
        handle = await inner.enqueue()
        done.append("outer")
        return await handle.result(0)

    async with app:
        handle = await outer.enqueue()

        assert await handle.result(0) == "from inside"
    assert done == ["inner", "outer"]


async def test_a_handler_in_a_thread_may_enqueue_too(app: App) -> None:
    @app.job
    def inner(number: int) -> int:
        return number + 1

    @app.job
    def outer() -> int:
        return inner.enqueue_sync(1).result(0)

    async with app:
        handle = await outer.enqueue()

        assert await handle.result(0) == 2


def test_so_may_one_that_was_enqueued_by_a_blocking_call(app: App) -> None:
    @app.job
    async def innermost(number: int) -> int:
        return number + 1

    @app.job
    def inner(number: int) -> int:
        return innermost.enqueue_sync(number).result(0) + 1

    @app.job
    def outer() -> int:
        return inner.enqueue_sync(1).result(0)

    handle = outer.enqueue_sync()

    assert handle.result(0) == 3
    app.close_sync()


async def test_a_dead_job_tells_what_it_died_of(app: App) -> None:
    class OutOfPaperError(Exception):
        pass

    @app.job(max_attempts=2)
    async def print_it() -> None:
        raise OutOfPaperError

    @app.job
    def give_up() -> None:
        raise PermanentFailure("never")

    @app.job(max_attempts=1)
    async def once_more() -> None:
        raise Retry(after=1) from OutOfPaperError()

    async with app:
        for handler, kind in ((print_it, OutOfPaperError), (give_up, PermanentFailure), (once_more, Retry)):
            handle = await handler.enqueue()
            with pytest.raises(JobDead) as dead:
                await handle.result(0)
            assert isinstance(dead.value.__cause__, kind)


def test_so_it_does_to_blocking_calls(app: App) -> None:
    @app.job(max_attempts=1)
    def fail() -> None:
        raise KeyError("gone")

    handle = fail.enqueue_sync()

    with pytest.raises(JobDead) as dead:
        handle.result(0)
    assert isinstance(dead.value.__cause__, KeyError)
    app.close_sync()


async def test_a_success_after_failures_has_no_cause_left(app: App) -> None:
    @app.job(max_attempts=2)
    async def flaky(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise KeyError
        raise asyncio.CancelledError

    async with app:
        handle = await flaky.enqueue()

        with pytest.raises(JobDead) as dead:
            await handle.result(0)
        assert dead.value.__cause__ is None


async def test_the_lifespan_is_opened_once_and_closed_with_the_app(app: App) -> None:
    use, opened = with_a_pool(app)

    async with app:
        for _ in range(3):
            await use.enqueue()

        assert len(opened) == 1
        assert not opened[0].closed
    assert opened[0].closed


def test_the_same_holds_for_blocking_calls(app: App) -> None:
    use, opened = with_a_pool(app)

    for _ in range(3):
        assert use.enqueue_sync().result(0) is True
    app.close_sync()

    assert [pool.closed for pool in opened] == [True]


async def test_closing_the_app_closes_what_blocking_calls_have_opened_too(app: App) -> None:
    use, opened = with_a_pool(app)

    async with app:
        await use.enqueue()
        await asyncio.to_thread(use.enqueue_sync)

        assert len(opened) == 2
    assert all(pool.closed for pool in opened)


async def test_many_at_once_have_all_run_when_their_enqueue_returns(app: App) -> None:
    @app.job
    async def one(number: int) -> int:
        await asyncio.sleep(0)
        return number

    async def enqueue(number: int) -> State:
        handle = await one.enqueue(number)
        return (await handle.job()).state

    async with app:
        states = await asyncio.gather(*[enqueue(number) for number in range(20)])

    assert set(states) == {State.SUCCEEDED}


async def test_many_threads_at_once_have_all_run_when_their_enqueue_returns(app: App) -> None:
    @app.job
    def one(number: int) -> int:
        return number

    def enqueue(number: int) -> State:
        return one.enqueue_sync(number).job().state

    async with app:
        states = await asyncio.gather(*[asyncio.to_thread(enqueue, number) for number in range(8)])

    assert set(states) == {State.SUCCEEDED}


async def test_a_batch_is_run_whole(app: App) -> None:
    @app.job
    def odd(number: int) -> bool:
        return number % 2 == 1

    async with app:
        handles = await app.enqueue_many(odd.call(number) for number in range(5))

        assert [await handle.result(0) for handle in handles] == [False, True, False, True, False]


async def test_an_enqueue_that_met_a_unique_key_runs_nothing_again() -> None:
    runs: list[int] = []
    async with App("memory://", eager=True) as app:

        @app.job
        async def once() -> None:
            runs.append(1)

        await app.client.pause("default")
        await once.options(unique="key").enqueue()
        await app.client.resume("default")
        handle = await once.options(unique="key").enqueue()

        assert handle.created is False
        assert runs == []


async def test_a_paused_queue_stays_as_it_is(app: App) -> None:
    @app.job
    async def never() -> None:
        pytest.fail("it ran")

    async with app:
        await app.client.pause("default")
        handle = await never.options(delay=60).enqueue()

        assert (await handle.job()).state is State.PENDING


async def test_in_a_transaction_of_the_caller_nothing_is_run(tmp_path: Path) -> None:
    async with App(f"sqlite:///{tmp_path}/jobs.db", eager=True) as app:

        @app.job
        async def later() -> None:
            pass

        await app.open()
        connection = sqlite3.connect(tmp_path / "jobs.db", isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        handle = await later.options(connection=connection).enqueue()
        connection.execute("COMMIT")
        connection.close()

        assert (await handle.job()).state is State.PENDING
