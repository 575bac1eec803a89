import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from windlass import App, Context, JobDead, Snooze, State, given
from windlass.core.errors import NotTransactional
from windlass.testing import Endless, FakeClock, TestApp, in_memory, in_memory_sync
from windlass.testing import app as testing_app


class Pool:
    closed = False


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App(f"sqlite:///{tmp_path}/jobs.db")


async def test_jobs_go_to_a_store_in_memory_and_nothing_of_the_other_is_touched(app: App, tmp_path: Path) -> None:
    @app.job
    async def work() -> None:
        pass

    async with in_memory(app) as test:
        await work.enqueue()
        await test.drain()

        assert [job.state for job in test.jobs()] == [State.SUCCEEDED]
    assert list(tmp_path.iterdir()) == []


async def test_connection_in_memory_names_the_stores_of_a_test_that_have_transactions(app: App) -> None:
    async with in_memory(app):
        with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(NotTransactional) as refused:
            await app.client.enqueue("mail", b"", connection=connection)

    assert "in_database(app)" in str(refused.value)
    assert 'windlass_store = "sqlite"' in str(refused.value)


async def test_after_the_block_the_app_is_as_before(app: App) -> None:
    @app.job
    async def work() -> None:
        pass

    async with app:
        outside = await work.enqueue()
        client = app.client
        async with in_memory(app) as test:
            await work.enqueue()
            assert test.client is app.client is not client

        assert app.client is client
        assert (await outside.job()).state is State.PENDING
        assert (await client.stats()).pending == 1


async def test_an_app_without_a_url_can_be_tested() -> None:
    app = App()

    @app.job
    async def work() -> None:
        pass

    async with in_memory(app) as test:
        await work.enqueue()

        assert await test.drain() == 1


async def test_the_environment_has_no_say(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_URL", "sqlite:////no/such/folder/jobs.db")

    @app.job
    async def work() -> None:
        pass

    async with in_memory(app) as test:
        await work.enqueue()

        assert await test.drain() == 1


async def test_blocks_may_stand_in_each_other(app: App) -> None:
    @app.job
    async def work() -> None:
        pass

    async with in_memory(app) as outer:
        await work.enqueue()
        async with in_memory(app) as inner:
            assert inner.jobs() == []

        assert len(outer.jobs()) == 1


async def test_drain_leaves_what_is_scheduled(app: App) -> None:
    @app.job
    async def later() -> None:
        pass

    async with in_memory(app) as test:
        await later.options(delay=60).enqueue()

        assert await test.drain() == 0
        assert test.jobs(later, state="scheduled")


async def test_drain_with_advance_lives_through_delays_and_retries(app: App) -> None:
    @app.job(max_attempts=3)
    async def flaky(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise ConnectionError
        return ctx.attempt

    async with in_memory(app) as test:
        start = test.clock.now()
        handle = await flaky.options(delay=3600).enqueue()

        assert await test.drain(advance=True) == 3
        assert await handle.result(0) == 3
        # the delay, and backoff of one and two seconds
        assert (test.clock.now() - start).total_seconds() == 3603


async def test_advance_runs_each_job_at_its_time(app: App) -> None:
    times: list[float] = []

    async with in_memory(app) as test:
        start = test.clock.now()

        @app.job
        async def note() -> None:
            times.append((test.clock.now() - start).total_seconds())

        for delay in (10, 20, 30, 40):
            await note.options(delay=delay).enqueue()

        assert await test.advance(30) == 3
        assert times == [10, 20, 30]
        assert (test.clock.now() - start).total_seconds() == 30


async def test_an_abandoned_claim_is_rescued_when_its_lease_is_over(app: App) -> None:
    @app.job
    async def work(ctx: Context) -> int:
        return ctx.attempt

    async with in_memory(app) as test:
        handle = await work.enqueue()
        await test.client.claim("default", lease=30)

        assert await test.advance(29) == 0
        assert await test.advance(1) == 1
        assert await handle.result(0) == 2


async def test_drain_with_advance_waits_for_leases_too(app: App) -> None:
    @app.job
    async def work() -> None:
        pass

    async with in_memory(app) as test:
        await work.enqueue()
        await test.client.claim("default", lease=30)

        assert await test.drain(advance=True) == 1


async def test_a_job_that_is_put_off_for_ever_is_noticed(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing_app, "MOST", 20)

    @app.job
    async def again() -> None:
        raise Snooze(60)

    async with in_memory(app) as test:
        await again.enqueue()

        with pytest.raises(Endless):
            await test.drain(advance=True)


async def test_a_dead_job_tells_what_it_died_of(app: App) -> None:
    @app.job(max_attempts=1)
    async def fail() -> None:
        raise KeyError("gone")

    async with in_memory(app) as test:
        handle = await fail.enqueue()
        await test.drain()

        with pytest.raises(JobDead) as dead:
            await handle.result(0)
        assert isinstance(dead.value.__cause__, KeyError)


async def test_the_lifespan_is_opened_once_for_the_block(app: App) -> None:
    opened: list[Pool] = []

    @app.lifespan
    @asynccontextmanager
    async def pool() -> AsyncGenerator[Pool, None]:
        opened.append(Pool())
        yield opened[-1]
        opened[-1].closed = True

    @app.job
    async def use(*, pool: Pool = given()) -> None:
        assert not pool.closed

    async with in_memory(app) as test:
        await use.enqueue()
        await test.drain()
        await use.enqueue()
        await test.drain()

        assert len(opened) == 1
        assert len(test.jobs(use, state=State.SUCCEEDED)) == 2
    assert opened[0].closed


async def test_code_that_enqueues_from_a_thread_reaches_the_same_store(app: App) -> None:
    @app.job
    def work(number: int) -> int:
        return number

    async with in_memory(app) as test:
        await asyncio.to_thread(work.enqueue_sync, 1)

        assert await test.drain() == 1


async def test_jobs_can_be_chosen(app: App) -> None:
    @app.job(queue="email")
    async def send() -> None:
        pass

    @app.consumer("raw")
    async def take(job: object) -> None:
        pass

    async with in_memory(app) as test:
        await send.enqueue()
        await test.client.enqueue("raw", b"bytes")
        await test.client.enqueue("raw", {}, kind="other")

        assert [job.kind for job in test.jobs(send)] == ["send"]
        assert [job.kind for job in test.jobs("other")] == ["other"]
        assert [job.payload for job in test.jobs(take)] == [b"bytes"]
        assert len(test.jobs(queue="raw")) == 2
        assert len(test.jobs(state="pending")) == 3


async def test_the_clock_of_the_caller_is_used(app: App) -> None:
    clock = FakeClock()

    async with in_memory(app, clock=clock) as test:
        assert test.clock is clock
        assert test.client.clock is clock


async def test_an_eager_app_is_eager_in_memory_too(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/jobs.db", eager=True)

    @app.job(max_attempts=2)
    async def flaky(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise ConnectionError
        return ctx.attempt

    async with in_memory(app):
        handle = await flaky.enqueue()

        assert await handle.result(0) == 2
    assert list(tmp_path.iterdir()) == []


def test_without_an_event_loop_it_is_the_same(app: App, tmp_path: Path) -> None:
    @app.job(max_attempts=2)
    def flaky(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise ConnectionError
        return ctx.attempt

    with in_memory_sync(app) as test:
        handle = flaky.enqueue_sync()

        assert test.drain() == 1
        assert test.jobs(flaky, state="scheduled")
        assert test.advance(1) == 1
        assert handle.result(0) == 2
        test.assert_enqueued(flaky, count=1)
        assert test.client.stats().succeeded == 1
    assert list(tmp_path.iterdir()) == []


def test_the_blocking_form_closes_lifespans_too(app: App) -> None:
    opened: list[Pool] = []

    @app.lifespan
    @asynccontextmanager
    async def pool() -> AsyncGenerator[Pool, None]:
        opened.append(Pool())
        yield opened[-1]
        opened[-1].closed = True

    @app.job
    def use(*, pool: Pool = given()) -> None:
        assert not pool.closed

    with in_memory_sync(app) as test:
        use.enqueue_sync()
        test.drain()

        assert test.jobs(use, state="succeeded")
    assert [pool.closed for pool in opened] == [True]


def test_a_queue_that_is_set_in_the_block_stays_set(app: App) -> None:
    with in_memory_sync(app):
        app.queue("email", max_attempts=9)

    assert "email" in app.queues


def test_pytest_does_not_take_it_for_a_test() -> None:
    assert TestApp.__test__ is False
