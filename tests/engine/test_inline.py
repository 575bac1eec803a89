import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

import pytest

from windlass import App, Context, Job, NoRetry, PermanentFailure, Release, Snooze, State
from windlass.engine import inline as engine_inline
from windlass.engine.inline import Endless, Inline
from windlass.engine.observed import Observed
from windlass.testing import FakeClock

whose: ContextVar[str] = ContextVar("whose", default="nobody")


class Pool:
    def __init__(self) -> None:
        self.closed = False


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def app(clock: FakeClock) -> AsyncIterator[App]:
    async with App("memory://", clock=clock, retry=NoRetry()) as app:
        yield app


@pytest.fixture
async def inline(app: App) -> AsyncIterator[Inline]:
    inline = Inline(Observed(app))
    yield inline
    await inline.close()


async def test_every_ready_job_is_run_and_counted(app: App, inline: Inline) -> None:
    @app.job
    async def double(number: int) -> int:
        return 2 * number

    handles = await app.enqueue_many(double.call(n) for n in range(3))

    assert await inline.drain() == 3
    assert [await handle.result(0) for handle in handles] == [0, 2, 4]


async def test_what_a_job_leads_to_is_run_too(app: App, inline: Inline) -> None:
    done: list[str] = []

    @app.job
    async def last() -> None:
        done.append("last")

    @app.job
    async def middle(ctx: Context) -> None:
        done.append("middle")
        ctx.then(last.call())

    @app.job
    async def first() -> None:
        done.append("first")
        await middle.enqueue()

    await first.enqueue()

    assert await inline.drain() == 3
    assert done == ["first", "middle", "last"]


async def test_a_job_that_runs_in_place_sees_its_callers_context_and_leaves_nothing_in_it(
    app: App, inline: Inline
) -> None:
    @app.job
    async def look() -> str:
        before = whose.get()
        whose.set("the job before")
        return before

    handles = [await look.enqueue() for _ in range(2)]
    whose.set("the caller")
    await inline.drain()

    assert [await handle.result(0) for handle in handles] == ["the caller"] * 2
    assert whose.get() == "the caller"


async def test_what_is_scheduled_for_later_waits(app: App, inline: Inline, clock: FakeClock) -> None:
    @app.job
    async def later() -> None:
        pass

    handle = await later.options(delay=60).enqueue()

    assert await inline.drain() == 0
    clock.advance(60)
    assert await inline.drain() == 1
    assert (await handle.job()).state is State.SUCCEEDED


async def test_a_plain_function_runs_in_a_thread_of_its_own(app: App, inline: Inline) -> None:
    @app.job
    def where() -> int:
        return threading.get_ident()

    handle = await where.enqueue()
    await inline.drain()

    assert await handle.result(0) != threading.get_ident()


def in_a_process(number: int) -> int:
    return number + threading.get_ident()


async def in_a_process_with_a_loop(number: int) -> int:
    await asyncio.sleep(0)
    return number


async def test_a_function_for_a_child_process_runs_here(app: App, inline: Inline) -> None:
    plain = app.job(process=True)(in_a_process)
    with_loop = app.job(process=True)(in_a_process_with_a_loop)

    first, second = await plain.enqueue(1), await with_loop.enqueue(2)
    await inline.drain()

    assert (await first.job()).state is State.SUCCEEDED
    assert await second.result(0) == 2


async def test_raw_jobs_go_to_the_consumer_of_their_queue(app: App, inline: Inline) -> None:
    seen: list[bytes] = []

    @app.consumer("raw")
    async def take(job: Job) -> None:
        seen.append(job.payload)

    await app.client.enqueue("raw", b"one")

    assert await inline.drain() == 1
    assert seen == [b"one"]


async def test_a_kind_that_the_app_does_not_know_is_left_alone(app: App, inline: Inline) -> None:
    done = await app.client.enqueue("default", {}, kind="unknown")

    assert await inline.drain() == 0
    await inline.finish([done.id])
    job = await app.client.get(done.id)
    assert job is not None
    assert job.state is State.PENDING


async def test_the_lifespan_is_opened_once_and_closed_at_the_close(app: App, inline: Inline) -> None:
    opened: list[Pool] = []

    @app.lifespan
    @asynccontextmanager
    async def pool() -> AsyncGenerator[Pool, None]:
        opened.append(Pool())
        yield opened[-1]
        opened[-1].closed = True

    @app.job
    async def use(pool: Pool) -> bool:
        return pool.closed

    first = await app.client.enqueue("default", {}, kind="use")
    await inline.drain()
    await app.client.enqueue("default", {}, kind="use")
    await inline.drain()

    job = await app.client.get(first.id)
    assert job is not None
    assert job.result == b"false"
    assert len(opened) == 1
    await inline.close()
    assert opened[0].closed
    await app.client.enqueue("default", {}, kind="use")
    await inline.drain()
    assert len(opened) == 2


async def test_a_lifespan_that_cannot_be_opened_is_told_to_the_caller(app: App, inline: Inline) -> None:
    @app.lifespan
    async def pool() -> AsyncIterator[Pool]:
        raise OSError("no pool")
        yield Pool()

    @app.job
    async def use() -> None:
        pass

    await use.enqueue()

    with pytest.raises(OSError, match="no pool"):
        await inline.drain()
    assert (await app.client.stats()).pending == 1


async def test_hooks_have_run_when_it_returns(app: App, inline: Inline) -> None:
    told: list[tuple[str, State]] = []

    @app.on_state_change
    async def moved(job: Job, _old: State, new: State) -> None:
        await asyncio.sleep(0)
        told.append((job.kind or "", new))

    @app.on_dead
    def died(job: Job) -> None:
        told.append((job.kind or "", job.state))

    @app.job
    async def fail() -> None:
        raise ValueError

    await fail.enqueue()
    await inline.drain()

    assert told == [("fail", State.DEAD), ("fail", State.DEAD)]


async def test_a_hook_may_enqueue(app: App, inline: Inline) -> None:
    @app.job
    async def clean_up() -> None:
        pass

    @app.on_dead
    async def died(_: Job) -> None:
        await clean_up.enqueue()

    @app.job
    async def fail() -> None:
        raise ValueError

    await fail.enqueue()

    assert await inline.drain() == 2
    assert (await app.client.stats()).succeeded == 1


async def test_a_job_that_was_asked_to_stop_before_is_cancelled_and_not_run(app: App, inline: Inline) -> None:
    @app.job
    async def never() -> None:
        pytest.fail("it ran")

    handle = await never.enqueue()
    claim = await app.client.claim("default")
    assert claim is not None
    await handle.cancel()
    await app.client.nack(claim, "later", delay=0)

    await inline.drain()

    assert (await handle.job()).state is State.CANCELLED


async def test_a_job_that_never_comes_to_an_end_is_noticed(
    app: App, inline: Inline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_inline, "MOST", 50)

    @app.job
    async def again() -> None:
        raise Release

    await again.enqueue()

    with pytest.raises(Endless, match="the next one of again: does it enqueue"):
        await inline.drain()


async def test_a_job_that_is_put_off_for_ever_is_noticed(
    app: App, inline: Inline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_inline, "MOST", 50)

    @app.job
    async def again() -> None:
        raise Snooze(60)

    handle = await again.enqueue()

    with pytest.raises(Endless):
        await inline.finish([handle.id])


async def test_many_jobs_that_waited_before_are_no_mistake(
    app: App, inline: Inline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_inline, "MOST", 5)

    @app.job
    async def one(number: int) -> None:
        pass

    await app.enqueue_many(one.call(n) for n in range(100))

    assert await inline.drain() == 100


async def test_a_cancelled_drain_leaves_the_claim_to_its_lease(app: App, inline: Inline, clock: FakeClock) -> None:
    begun = asyncio.Event()
    ended = asyncio.Event()

    @app.job(max_attempts=2)
    async def hang() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    handle = await hang.enqueue()
    draining = asyncio.create_task(inline.drain())
    await begun.wait()
    draining.cancel()
    await asyncio.wait({draining})
    await ended.wait()

    assert (await handle.job()).state is State.RUNNING
    clock.advance(30)
    assert await app.client.rescue() == 1


async def test_an_exception_that_says_never_again_is_the_end(app: App, inline: Inline) -> None:
    @app.job(max_attempts=9)
    async def fail() -> None:
        raise PermanentFailure("no")

    handle = await fail.enqueue()

    assert await inline.drain() == 1
    assert (await handle.job()).state is State.DEAD
