"""What a handler may know and do about its own attempt."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextvars import ContextVar
from typing import Any

import pytest

from windlass.app.app import App
from windlass.client.client import Client
from windlass.core.errors import InvalidValue, NoCurrentJob
from windlass.core.filters import JobFilter
from windlass.core.job import Job, NewJob, Progress
from windlass.core.retry import Fixed, NoRetry
from windlass.core.settings import QueueSettings
from windlass.core.states import State
from windlass.core.unique import Unique
from windlass.engine.context import Context, current
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenApp, soon
from windlass.testing.conformance.given import found
from windlass.testing.conformance.reach import Reach
from windlass.testing.conformance.served import ended, goes_by, serving, stands, until

_whose: ContextVar[str] = ContextVar("whose", default="nobody")


class Oops(Exception):
    """What the handlers of these tests fail by."""


async def test_a_handler_knows_its_job_and_its_claim(app: App) -> None:
    seen: dict[str, list[object]] = {}

    def look(ctx: Context) -> None:
        seen[ctx.job.kind or ""] = [ctx.job.id, ctx.attempt, ctx.delivery, ctx.previous_error, len(ctx.token) >= 16]

    @app.job
    async def here(ctx: Context) -> None:
        look(ctx)
        assert current() is ctx

    @app.job
    def thread(ctx: Context) -> None:
        look(current())
        assert current() is ctx

    async with serving(app):
        handles = {work.kind: await work.enqueue() for work in (here, thread)}
        for handle in handles.values():
            assert (await ended(handle)).state is State.SUCCEEDED

    assert seen == {kind: [handle.id, 1, 1, None, True] for kind, handle in handles.items()}
    with pytest.raises(NoCurrentJob):
        current()


async def test_jobs_at_once_have_each_their_own_context(app: App) -> None:
    @app.job
    async def here(name: str) -> list[object]:
        await asyncio.sleep(0)
        return [name, current().job.payload.decode()]

    @app.job
    def thread(name: str) -> list[object]:
        return [name, current().job.payload.decode()]

    async with serving(app):
        handles = [await work.enqueue(f"{number}") for number in range(20) for work in (here, thread)]
        for handle in handles:
            name, payload = await soon(handle.result())
            assert payload == f'{{"name":"{name}"}}'


async def test_what_a_job_sets_in_its_context_is_not_seen_by_the_next(app: App) -> None:
    def look(name: str) -> str:
        before = _whose.get()
        _whose.set(name)
        return before

    @app.job
    async def at_once(name: str) -> str:
        return look(name)

    @app.job
    async def here(name: str) -> str:
        before = look(name)
        await asyncio.sleep(0)
        return before

    @app.job
    def thread(name: str) -> str:
        return look(name)

    handles = [await work.enqueue(f"{number}") for number in range(10) for work in (at_once, here, thread)]
    async with serving(app, concurrency=2):
        for handle in handles:
            assert await soon(handle.result()) == "nobody"


async def test_what_a_lifespan_sets_is_seen_by_every_job_and_hook(app: App) -> None:
    hooked: list[str] = []

    @app.lifespan
    async def everybody() -> AsyncGenerator[None]:
        _whose.set("all")
        yield

    @app.on_state_change
    def tell(_job: Job, _old: State, _new: State) -> None:
        hooked.append(_whose.get())

    @app.job
    async def here() -> str:
        return _whose.get()

    @app.job
    def thread() -> str:
        return _whose.get()

    async with serving(app):
        for work in (here, thread):
            assert await soon((await work.enqueue()).result()) == "all"
        await until(lambda: len(hooked) == 4)

    assert set(hooked) == {"all"}


async def test_progress_and_lines_are_kept_with_the_job(app: App, client: Client) -> None:
    go = asyncio.Event()

    @app.job
    async def here(ctx: Context) -> None:
        ctx.progress(1, 3, "begun")
        ctx.log.info("line one")
        ctx.log.warning("line \ud800 two")
        await go.wait()
        ctx.progress(3, 3)
        ctx.log.error("at the end")

    @app.job
    def thread(ctx: Context) -> None:
        for number in range(10):
            ctx.progress(number, 10)
            ctx.log.debug(str(number))

    async with serving(app):
        running = await here.enqueue()
        job = await stands(running, State.RUNNING, progress=Progress(1, 3, "begun"))
        assert [(line.level, line.text) for line in job.log] == [("info", "line one"), ("warning", "line \\ud800 two")]
        go.set()
        job = await ended(running)
        assert (job.progress, job.log[-1].text) == (Progress(3, 3), "at the end")

        other = await ended(await thread.enqueue())
        assert other.progress == Progress(9, 10)
        assert [line.text for line in (await found(client, other.id)).log] == [f"{number}" for number in range(10)]


@pytest.mark.parametrize("done", [float("nan"), float("inf"), "half"])
async def test_progress_that_is_no_number_is_the_handlers_own_error(app: App, done: Any) -> None:  # noqa: ANN401
    @app.job(retry=NoRetry())
    async def work(ctx: Context) -> None:
        ctx.progress(done)

    async with serving(app):
        job = await ended(await work.enqueue())

    assert (job.state, job.progress) == (State.DEAD, None)


async def test_a_job_that_never_stops_reporting_holds_nobody_up(app: App) -> None:
    enough = threading.Event()

    @app.job
    def chatter(ctx: Context) -> None:
        while not enough.is_set():
            ctx.progress(1)

    @app.job
    async def work() -> str:
        return "done"

    async with serving(app):
        talking = await chatter.enqueue()
        try:
            await stands(talking, State.RUNNING, progress=Progress(1))
            for _ in range(3):
                assert await soon((await work.enqueue()).result()) == "done"
        finally:
            enough.set()
        await ended(talking)


async def test_a_handler_reaches_the_key_space(app: App, client: Client) -> None:
    @app.job
    async def work(ctx: Context) -> None:
        await ctx.kv.put("kept", b"by the handler")

    async with serving(app):
        await ended(await work.enqueue())

    assert await client.kv.get("kept") == b"by the handler"


async def test_what_comes_then_commits_with_the_success_and_not_otherwise(
    app: App, client: Client, reach: Reach
) -> None:
    following, raw = reach.queue("next"), reach.queue("raw")

    @app.job(queue=following)
    async def follow(number: int) -> int:
        return number

    @app.job(retry=Fixed(0))
    async def work(ctx: Context) -> str:
        ctx.then(follow.call(ctx.attempt), NewJob(raw, b"bytes"), kv=reach.kv({f"attempt {ctx.attempt}": b"done"}))
        ctx.then(kv=reach.kv({"more": b"done"}))
        if ctx.attempt == 1:
            raise Oops
        return "done"

    async with serving(app, queues=["default"]):
        handle = await work.enqueue()
        await ended(handle)

    [follower] = await client.jobs(JobFilter(queue=following, kind="follow"))
    assert (follower.payload, follower.parent_id) == (b'{"number":2}', handle.id)
    bare = [job for job in await client.jobs(JobFilter(queue=raw)) if job.kind is None]
    assert [(job.payload, job.state) for job in bare] == [(b"bytes", State.PENDING)]
    kv = reach.kv({"attempt 2": b"done", "more": b"done"})
    assert await client.kv.scan() == [(key.encode(), value) for key, value in kv.items()]


async def test_a_key_that_is_held_among_what_comes_then_fails_the_attempt(
    app: App, client: Client, reach: Reach
) -> None:
    ran = 0
    following = reach.queue("next")

    @app.job(retry=Fixed(0), max_attempts=2)
    async def work(ctx: Context) -> None:
        nonlocal ran
        ran += 1
        again = NewJob(following, b"", unique=Unique("key", on_conflict="raise"))
        ctx.then(again, kv=reach.kv({"written": b"no"}))

    await client.enqueue(following, b"the holder", unique="key")
    async with serving(app):
        job = await ended(await work.enqueue())

    assert (job.state, job.attempt, ran) == (State.DEAD, 2, 2)
    assert (job.last_error or "").startswith("UniqueConflict")
    assert [job.payload for job in await client.jobs(JobFilter(state=State.PENDING))] == [b"the holder"]
    assert await client.kv.get("written") is None


async def test_a_mistake_in_what_comes_then_is_the_handlers_own_error(app: App) -> None:
    caught: list[str] = []

    @app.job
    async def work(ctx: Context) -> None:
        try:
            ctx.then(NewJob("no name"))
        except InvalidValue as error:
            caught.append(str(error))

    async with serving(app):
        assert (await ended(await work.enqueue())).state is State.SUCCEEDED

    assert len(caught) == 1


async def test_a_queue_says_how_long_a_claim_is_held_and_how_often_it_may_be_tried(
    open_app: OpenApp, clock: FakeClock
) -> None:
    app = open_app(queues={"slow": QueueSettings(lease=90, max_attempts=7)})

    @app.job(queue="slow")
    async def work(ctx: Context) -> list[object]:
        job = ctx.job
        assert job.lease_expires_at is not None
        return [(job.lease_expires_at - clock.now()).total_seconds(), job.max_attempts]

    async with serving(app):
        assert await soon((await work.enqueue()).result()) == [90, 7]
        await goes_by(app, clock, 1)
