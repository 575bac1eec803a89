"""`run_job`: one call of a handler, with a context that works."""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import windlass
from windlass import App, Context, EncodeError, InvalidValue, State, given
from windlass.testing import in_database, in_memory, in_memory_sync, run_job, run_job_sync

FILE = "sqlite:////nowhere/that/is/there/jobs.db"


processes = App(FILE)


@processes.job(process=True)
def apart(number: int) -> tuple[int, int]:
    return number, os.getpid()


class Pool:
    def __init__(self, name: str) -> None:
        self.name = name


class Shop:
    """An app whose own store must never be touched, and its handlers."""

    def __init__(self) -> None:
        self.app = app = App(FILE)
        self.opened: list[Pool] = []

        @app.lifespan
        async def pool() -> AsyncIterator[Pool]:
            self.opened.append(Pool("of the app"))
            yield self.opened[-1]

        @app.job(max_attempts=3)
        async def follow(number: int) -> int:
            return number

        @app.job(max_attempts=3)
        async def work(number: int, ctx: Context = given()) -> str:
            ctx.progress(1, 2, "half")
            ctx.log.info("line %d", number)
            await ctx.kv.put("seen", b"yes")
            ctx.then(follow.call(number + 1), kv={"last": b"value"})
            logging.getLogger("shop").warning("from the standard log")
            assert not ctx.cancelled.is_set()
            assert windlass.current() is ctx
            return f"{number} on attempt {ctx.attempt} of {ctx.job.kind}"

        @app.job
        def thread(number: int, ctx: Context = given()) -> tuple[int, bool]:
            ctx.log.info("in a thread")
            ctx.then(follow.call(number))
            return number, threading.current_thread() is threading.main_thread()

        @app.job
        async def fail(error: str, ctx: Context = given()) -> None:
            ctx.then(follow.call(1))
            raise LookupError(error)

        @app.job
        async def use(number: int, *, pool: Pool = given()) -> str:
            return f"{number} by the pool {pool.name}"

        @app.job
        async def unwritable() -> object:
            return object()

        self.follow, self.work, self.thread, self.fail = follow, work, thread, fail
        self.use, self.unwritable = use, unwritable


@pytest.fixture
def shop() -> Shop:
    return Shop()


async def test_it_returns_what_the_handler_returns(shop: Shop) -> None:
    assert await run_job(shop.work, 7) == "7 on attempt 1 of work"
    assert await run_job(shop.follow, number=7) == 7
    assert await run_job(shop.thread, 7) == (7, False)
    assert await run_job(apart, 7) == (7, os.getpid())


def test_it_has_a_blocking_form(shop: Shop) -> None:
    assert run_job_sync(shop.work, 7) == "7 on attempt 1 of work"
    assert run_job_sync(shop.thread, 7) == (7, False)


async def test_it_raises_what_the_handler_raises(shop: Shop) -> None:
    with pytest.raises(LookupError, match="no such order"):
        await run_job(shop.fail, "no such order")


def test_the_blocking_form_raises_it_too(shop: Shop) -> None:
    with pytest.raises(LookupError, match="no such order"):
        run_job_sync(shop.fail, "no such order")


async def test_what_the_context_wrote_is_found_in_the_test(shop: Shop) -> None:
    async with in_memory(shop.app) as test:
        await run_job(shop.work, 7)

        job = await test.client.get(test.assert_enqueued(shop.work, 7, count=1).id)
        test.assert_enqueued(shop.follow, 8, count=1)
        assert await test.client.kv.get("seen") == b"yes"
        assert await test.client.kv.get("last") == b"value"
    assert job is not None
    assert job.state is State.SUCCEEDED
    assert job.progress is not None
    assert (job.progress.done, job.progress.note) == (1, "half")
    assert [line.text for line in job.log] == ["line 7", "shop: from the standard log"]


def test_so_it_is_in_the_blocking_form(shop: Shop) -> None:
    with in_memory_sync(shop.app) as test:
        run_job_sync(shop.thread, 7)

        job = test.client.get(test.jobs(shop.thread)[0].id)
        assert job is not None
        assert [line.text for line in job.log] == ["in a thread"]
        test.assert_enqueued(shop.follow, 7)


async def test_a_job_that_raised_is_dead_and_did_nothing(shop: Shop) -> None:
    async with in_memory(shop.app) as test:
        with pytest.raises(LookupError):
            await run_job(shop.fail, "no such order")

        assert test.jobs(shop.fail)[0].state is State.DEAD
        test.assert_not_enqueued(shop.follow)
        assert await test.drain(advance=True) == 0


async def test_it_runs_its_own_job_and_leaves_others_as_they_are(shop: Shop) -> None:
    async with in_memory(shop.app) as test:
        other = await shop.work.options(priority=0).enqueue(1)
        assert await run_job(shop.work, 2) == "2 on attempt 1 of work"

        job = await other.job()
        assert job is not None
        assert job.state is State.PENDING
        assert await test.drain() == 3


async def test_a_cancellation_is_seen_by_the_handler(shop: Shop) -> None:
    @shop.app.job
    async def wait(ctx: Context = given()) -> str | None:
        await shop.app.client.cancel(ctx.job.id)
        await ctx.cancelled.wait()
        return ctx.cancelled.reason

    assert await asyncio.wait_for(run_job(wait), 10) == "cancel"


async def test_what_a_lifespan_provides_is_given_or_opened(shop: Shop) -> None:
    assert await run_job(shop.use, 1, pool=Pool("of the test")) == "1 by the pool of the test"
    assert shop.opened == []

    assert await run_job(shop.use, 2) == "2 by the pool of the app"


async def test_a_result_that_cannot_be_stored_is_told(shop: Shop) -> None:
    with pytest.raises(EncodeError):
        await run_job(shop.unwritable)


async def test_arguments_are_checked_as_by_enqueue(shop: Shop) -> None:
    with pytest.raises(InvalidValue, match="number"):
        await run_job(shop.follow, "seven")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        await run_job(shop.follow)  # type: ignore[call-arg]


async def test_anything_but_a_handler_is_refused(shop: Shop) -> None:
    async def plain() -> None: ...

    with pytest.raises(InvalidValue, match=r"a function under @app\.job, not function"):
        await run_job(plain)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="not BoundOptions"):
        run_job_sync(shop.follow.options(delay=1), 1)  # type: ignore[arg-type]


async def test_a_paused_queue_is_told(shop: Shop) -> None:
    async with in_memory(shop.app) as test:
        await test.client.pause("default")

        with pytest.raises(InvalidValue, match="is paused"):
            await run_job(shop.follow, 1)


async def test_a_handler_with_a_transaction_runs_in_a_database(shop: Shop, tmp_path: Path) -> None:
    @shop.app.job
    async def effect(ctx: Context = given()) -> None:
        async with ctx.transaction() as connection:
            connection.execute("create table mine (name text)")
            ctx.then(shop.follow.call(1))

    async with in_database(shop.app, tmp_path / "100% mine?.db") as test:
        await run_job(effect)

        assert test.jobs(effect)[0].state is State.SUCCEEDED
        test.assert_enqueued(shop.follow, 1)
    assert (tmp_path / "100% mine?.db").exists()


async def test_a_server_by_the_clock_is_refused_on_a_database(shop: Shop) -> None:
    async with in_database(shop.app) as test:
        with pytest.raises(InvalidValue, match="needs a store in memory"):
            async with test.server():
                pass


async def test_a_database_in_a_temporary_folder_is_gone_afterwards(shop: Shop) -> None:
    async with in_database(shop.app) as test:
        assert test.jobs() == []
        await shop.follow.enqueue(1)
        [job] = test.jobs()
        assert await test.drain() == 1

    assert job.kind == "follow"
