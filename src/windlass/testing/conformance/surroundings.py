"""What stands around the handlers of an app: consumers, middleware, hooks and lifespans."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from windlass.app.app import App
from windlass.client.client import Client
from windlass.core.job import Job
from windlass.core.retry import Fixed
from windlass.core.signals import PermanentFailure, Snooze
from windlass.core.states import State
from windlass.core.store import Store
from windlass.engine.context import Context
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenApp, soon
from windlass.testing.conformance.given import found
from windlass.testing.conformance.served import ended, goes_by, quiet, serving, stands, until


class Oops(Exception):
    """What the handlers of these tests fail by."""


async def test_a_consumer_takes_raw_jobs_with_their_bytes(app: App, client: Client) -> None:
    taken: list[bytes] = []

    @app.consumer("raw", retry=Fixed(0))
    async def consume(job: Job) -> int:
        taken.append(job.payload)
        if job.attempt == 1:
            raise Oops
        return len(job.payload)

    @app.consumer("more")
    def consume_in_a_thread(job: Job) -> None:
        taken.append(job.payload)

    one = await client.enqueue("raw", b"\xff\x00")
    other = await client.enqueue("more", b"more")
    async with serving(app):
        await soon(client.wait(one.id, None))
        await soon(client.wait(other.id, None))

    assert sorted(taken) == [b"more", b"\xff\x00", b"\xff\x00"]
    assert client.decode_result(await found(client, one.id)) == 2


async def test_a_kind_goes_to_its_handler_also_in_a_queue_with_a_consumer(app: App, client: Client) -> None:
    @app.job(queue="mixed")
    async def work() -> str:
        return "by the handler"

    @app.consumer("mixed")
    async def consume(job: Job) -> str:  # noqa: ARG001 - what a consumer takes
        return "by the consumer"

    raw = await client.enqueue("mixed", b"")
    async with serving(app):
        assert await soon((await work.enqueue()).result()) == "by the handler"
        await soon(client.wait(raw.id, None))

    assert client.decode_result(await found(client, raw.id)) == "by the consumer"


async def test_a_strange_kind_is_left_alone_also_in_a_queue_with_a_consumer(app: App, client: Client) -> None:
    @app.consumer("mixed")
    async def consume(job: Job) -> str:
        return job.kind or "raw"

    strange = await client.enqueue("mixed", b"", kind="stranger", priority=1)
    raw = await client.enqueue("mixed", b"")
    async with serving(app):
        await soon(client.wait(raw.id, None))
        await quiet(app)

    assert (await found(client, strange.id)).state is State.PENDING
    assert client.decode_result(await found(client, raw.id)) == "raw"


async def test_hooks_are_told_of_each_move_in_its_order(app: App, client: Client) -> None:
    told: list[tuple[str, str]] = []

    @app.on_state_change
    async def note(job: Job, old: State, new: State) -> None:
        await asyncio.sleep(0)
        told.append((old.value, new.value))
        assert job.state is new

    @app.job(max_attempts=2, retry=Fixed(0))
    async def fails() -> None:
        raise ValueError

    async with serving(app):
        await ended(await fails.enqueue())
        await until(lambda: len(told) == 4)

    assert told == [("pending", "running"), ("running", "pending"), ("pending", "running"), ("running", "dead")]
    assert (await client.stats("default")).dead == 1


async def test_middleware_wraps_every_attempt_the_first_outermost(app: App) -> None:
    steps: list[str] = []

    @app.middleware
    async def outer(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> object:
        steps.append(f"outer {ctx.job.kind}")
        try:
            return await call_next()
        finally:
            steps.append("outer ends")

    @app.middleware
    async def inner(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> object:
        steps.append(f"inner {ctx.attempt}")
        result = await call_next()
        return f"{result}, seen"

    @app.job
    async def here() -> str:
        steps.append("here")
        return "result"

    @app.job
    def thread() -> str:
        steps.append("thread")
        return "result"

    async with serving(app):
        for work in (here, thread):
            assert await soon((await work.enqueue()).result()) == "result, seen"

    assert steps == [
        *("outer here", "inner 1", "here", "outer ends"),
        *("outer thread", "inner 1", "thread", "outer ends"),
    ]


async def test_an_error_of_a_middleware_is_one_of_the_attempt(app: App) -> None:
    @app.middleware
    async def refuse(_ctx: Context, _call_next: Callable[[], Awaitable[Any]]) -> object:
        raise PermanentFailure("not today")

    @app.job
    async def work() -> None: ...

    async with serving(app):
        job = await ended(await work.enqueue())

    assert (job.state, job.last_error) == (State.DEAD, "PermanentFailure: not today")


async def test_hooks_run_after_the_commit_and_one_that_raises_changes_nothing(
    open_app: OpenApp, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    app = open_app(retry=Fixed(0))
    told: list[tuple[str, State, State, State | None]] = []
    dead: list[tuple[str, str | None]] = []

    @app.on_state_change
    def falls(_job: Job, _old: State, _new: State) -> None:
        raise SystemExit(3)

    @app.on_state_change
    async def look(job: Job, old: State, new: State) -> None:
        [stored] = await store.get([job.id])
        if new is not State.RUNNING:
            told.append((job.kind or "", old, new, None if stored is None else stored.state))

    @app.on_dead
    async def mourn(job: Job) -> None:
        dead.append((job.kind or "", job.last_error))

    @app.job
    async def good() -> None: ...

    @app.job(max_attempts=1)
    async def bad() -> None:
        raise Oops("it")

    @app.job
    async def later() -> None:
        raise Snooze(60)

    async with serving(app):
        await ended(await good.enqueue())
        await ended(await bad.enqueue())
        await stands(await later.enqueue(), State.SCHEDULED)
        await quiet(app)

    assert sorted(told) == [
        ("bad", State.RUNNING, State.DEAD, State.DEAD),
        ("good", State.RUNNING, State.SUCCEEDED, State.SUCCEEDED),
        ("later", State.RUNNING, State.SCHEDULED, State.SCHEDULED),
    ]
    assert dead == [("bad", "Oops: it")]
    assert "a hook failed" in caplog.text


async def test_hooks_are_told_of_a_job_that_a_rescue_made_dead(app: App, client: Client, clock: FakeClock) -> None:
    if client.store.features.served:
        pytest.skip("a server on this store does not rescue")
    dead: list[str | None] = []

    @app.on_dead
    def mourn(job: Job) -> None:
        dead.append(job.last_error)

    await client.enqueue("default", b"", max_attempts=1)
    assert await client.claim("default", lease=1) is not None
    async with serving(app):
        await goes_by(app, clock, 6)

    assert [error for error in dead if "lease expired" in (error or "")] == dead != []


async def test_hooks_of_what_ends_last_are_called_before_the_server_has_stopped(app: App) -> None:
    told: list[str] = []

    @app.on_state_change
    async def slow(_job: Job, _old: State, new: State) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        told.append(new.value)

    begun = asyncio.Event()

    @app.job
    async def work(ctx: Context) -> None:
        begun.set()
        await ctx.cancelled.wait()

    async with serving(app) as server:
        await work.enqueue()
        # one that is running in the store may not have come to the server yet, and would go back
        await soon(begun.wait())
        await soon(server.stop())

    assert told[-1:] == ["succeeded"]


class Pool:
    """What a lifespan gives."""


class Model:
    """What another lifespan gives."""


async def test_what_a_lifespan_opens_is_handed_over_by_type_and_closed_at_the_stop(app: App) -> None:
    steps: list[str] = []
    seen: list[object] = []

    @app.lifespan
    async def pool() -> AsyncIterator[Pool]:
        steps.append("open pool")
        yield Pool()
        steps.append("close pool")

    @app.lifespan
    async def model() -> AsyncIterator[Model]:
        steps.append("open model")
        yield Model()
        steps.append("close model")

    @app.job
    async def here(number: int, pool: Pool, *, model: Model) -> int:
        seen.extend([pool, model])
        return number

    @app.job
    def thread(model: Model, number: int) -> int:
        seen.append(model)
        return number

    enqueue_here: Any = here.enqueue
    enqueue_thread: Any = thread.enqueue
    async with serving(app):
        assert await soon((await enqueue_here(1)).result()) == 1
        assert await soon((await enqueue_thread(number=2)).result()) == 2
        assert steps == ["open pool", "open model"]

    assert [type(each) for each in seen] == [Pool, Model, Model]
    assert seen[1] is seen[2]
    assert steps[2:] == ["close model", "close pool"]
