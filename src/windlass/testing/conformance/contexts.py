"""What a handler may know and do about its own attempt."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextvars import ContextVar
from inspect import isawaitable
from typing import Any

import pytest

from windlass.app.app import App
from windlass.client.client import Client
from windlass.core.errors import ClaimLost, InvalidValue, NoCurrentJob
from windlass.core.filters import JobFilter
from windlass.core.job import Job, NewJob, Progress
from windlass.core.retry import Fixed, NoRetry
from windlass.core.settings import QueueSettings
from windlass.core.states import State
from windlass.core.store import Store
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
    """I15."""
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


async def _without_effects(store: Store) -> None:
    async with store.transaction() as connection:
        gone = connection.execute("drop table if exists effects")
        if isawaitable(gone):
            await gone


async def _effects(connection: Any) -> int:  # noqa: ANN401 - the connection of whichever driver
    made = connection.execute("create table if not exists effects (number integer)")
    if not isawaitable(made):
        return _effects_in_a_thread(connection)
    await made
    await connection.execute("insert into effects values (1)")
    count: int = await connection.fetchval("select count(*) from effects")
    return count


def _effects_in_a_thread(connection: Any) -> int:  # noqa: ANN401 - the connection of whichever driver
    connection.execute("create table if not exists effects (number integer)")
    connection.execute("insert into effects values (1)")
    if hasattr(connection, "fetchval"):
        count: int = connection.fetchval("select count(*) from effects")
    else:
        count = connection.execute("select count(*) from effects").fetchone()[0]
    return count


async def test_effects_in_the_transaction_of_the_claim_happen_once(
    transactional: Store, open_app: OpenApp, client: Client
) -> None:
    await _without_effects(transactional)
    app = open_app(retry=Fixed(0))
    counts: list[int] = []
    hooked: list[State] = []

    @app.on_state_change
    def tell(_job: Job, _old: State, new: State) -> None:
        if new is not State.RUNNING:
            hooked.append(new)

    @app.job
    async def here(ctx: Context) -> str:
        async with ctx.transaction() as connection:
            counts.append(await _effects(connection))
            ctx.then(NewJob("next", b""))
        raise Oops("changes nothing any more")

    @app.job
    def thread(ctx: Context) -> str:
        with ctx.transaction() as connection:
            counts.append(_effects_in_a_thread(connection))
        return "nobody sees this"

    async with serving(app, queues=["default"]):
        jobs = [await ended(await work.enqueue()) for work in (here, thread)]
        await until(lambda: len(hooked) == 2)

    assert counts == [1, 2]
    assert [(job.state, job.attempt, job.result, job.last_error) for job in jobs] == [
        (State.SUCCEEDED, 1, None, None)
    ] * 2
    assert hooked == [State.SUCCEEDED] * 2
    assert (await client.stats("next")).pending == 1


async def test_an_error_inside_of_the_transaction_takes_its_effects_back_and_fails_the_attempt(
    transactional: Store, open_app: OpenApp, client: Client
) -> None:
    await _without_effects(transactional)
    app = open_app(retry=Fixed(0))
    counts: dict[int, list[int]] = {1: [], 2: []}

    async def fall_first(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            counts[ctx.attempt].append(await _effects(connection))
            if ctx.attempt < 2:
                raise Oops("inside")

    def fall_first_in_a_thread(ctx: Context) -> None:
        with ctx.transaction() as connection:
            counts[ctx.attempt].append(_effects_in_a_thread(connection))
            if ctx.attempt < 2:
                raise Oops("inside")

    handles = [await app.job(each).enqueue() for each in (fall_first, fall_first_in_a_thread)]
    async with serving(app, concurrency=1):
        jobs = [await ended(handle) for handle in handles]

    assert [(job.state, job.attempt) for job in jobs] == [(State.SUCCEEDED, 2)] * 2
    assert (len(counts[1]), counts[2]) == (2, [1, 2])
    assert (await client.stats("default")).succeeded == 2


@pytest.mark.usefixtures("transactional")
async def test_an_attempt_that_lost_its_job_begins_no_transaction(app: App, client: Client) -> None:
    refused: list[type[Exception]] = []

    @app.job
    async def work(ctx: Context) -> str:
        if ctx.delivery == 1:
            await client.rescue(force=True)
            try:
                async with ctx.transaction() as connection:
                    await _effects(connection)
            except ClaimLost as error:
                refused.append(type(error))
                raise
        return "from the winner"

    async with serving(app):
        assert await soon((await work.enqueue()).result()) == "from the winner"
        await until(lambda: refused == [ClaimLost])


@pytest.mark.usefixtures("transactional")
async def test_a_transaction_that_is_open_for_long_is_warned_about(
    app: App, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    inside, go = asyncio.Event(), asyncio.Event()

    @app.job
    async def work(ctx: Context) -> None:
        async with ctx.transaction():
            inside.set()
            await go.wait()

    async with serving(app, services=False):
        handle = await work.enqueue()
        await soon(inside.wait())
        clock.advance(9)
        assert "is open since" not in caplog.text
        clock.advance(1.5)
        assert "is open since" in caplog.text
        go.set()
        await ended(handle)


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
