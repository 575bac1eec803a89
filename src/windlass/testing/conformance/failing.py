"""A server goes on by itself when the store is away for a while, and leaves nothing behind wherever it is cut off."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, Final

import pytest

from windlass.app.app import App
from windlass.core.errors import StoreUnavailable
from windlass.core.states import State
from windlass.core.store import Store
from windlass.engine.config import ServerConfig
from windlass.engine.context import Context
from windlass.engine.server import Server
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenApp, soon
from windlass.testing.conformance.served import FailingStore, busy, ended, goes_by, quiet, serving, until

MOST_STEPS: Final = 500


async def test_the_end_of_a_job_is_written_when_the_store_takes_it_again(
    open_app: OpenApp, new_store: Callable[[], Store], clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    failing = FailingStore(new_store())
    app = open_app(url=failing)
    ran = 0

    @app.job
    async def work() -> str:
        nonlocal ran
        ran += 1
        return "kept"

    async with serving(app) as server:
        failing.failing["settle"] = 3
        handle = await work.enqueue()
        await until(lambda: failing.failed.get("settle") == 1)
        assert "the store has not taken a settlement" in "".join(server.health().reasons)
        await goes_by(app, clock, 60)
        job = await ended(handle)
        assert server.health().ready

    assert (ran, job.state, job.delivery, failing.failed["settle"]) == (1, State.SUCCEEDED, 1, 3)
    assert "settlements could not be written (1 times in a row)" in caplog.text


async def test_a_server_whose_claims_fail_is_not_ready_until_one_is_answered(
    open_app: OpenApp, new_store: Callable[[], Store], clock: FakeClock
) -> None:
    failing = FailingStore(new_store())
    app = open_app(url=failing)

    @app.job
    async def work() -> None: ...

    async with serving(app) as server:
        failing.failing["claim"] = 3
        handle = await work.enqueue()
        await until(lambda: "the store has not answered a claim" in "".join(server.health().reasons))
        await goes_by(app, clock, 60)
        await ended(handle)
        assert server.health().ready


async def test_a_claim_is_held_until_its_end_is_written(
    open_app: OpenApp, new_store: Callable[[], Store], clock: FakeClock
) -> None:
    failing = FailingStore(new_store())
    app = open_app(url=failing, lease=3)

    @app.job
    async def work() -> None: ...

    async with serving(app):
        failing.failing["settle"] = 5
        handle = await work.enqueue()
        await goes_by(app, clock, 40, step=0.5)
        job = await ended(handle)

    assert (job.state, job.delivery) == (State.SUCCEEDED, 1)


@pytest.mark.parametrize("call", ["claim", "due_in", "renew", "beat", "rescue", "promote", "prune", "glance", "note"])
async def test_a_server_survives_the_failure_of_any_call(
    open_app: OpenApp, new_store: Callable[[], Store], clock: FakeClock, call: str
) -> None:
    failing = FailingStore(new_store())
    app = open_app(url=failing)
    go = asyncio.Event()

    @app.job
    async def waits(ctx: Context) -> None:
        ctx.log.info("waits")
        await go.wait()

    @app.job
    async def work() -> str:
        return "done"

    async with serving(app) as server:
        running = await waits.enqueue()
        await busy(server)
        failing.failing[call] = 2
        await app.client.cancel("01938c6e-1111-7000-8000-000000000001")
        await goes_by(app, clock, 70, step=5)
        failing.failing = {}
        handle = await work.enqueue()
        await goes_by(app, clock, 30, step=5)
        assert await soon(handle.result()) == "done"
        go.set()
        assert (await ended(running)).delivery == 1


async def test_a_server_that_stops_on_error_ends_with_it(open_app: OpenApp, new_store: Callable[[], Store]) -> None:
    failing = FailingStore(new_store())
    app = open_app(url=failing)

    @app.job
    async def work() -> None: ...

    server = Server(app, ServerConfig(stop_on_error=True))
    serve = asyncio.create_task(server.serve())
    await until(lambda: server.running)
    failing.failing["claim"] = 1
    await work.enqueue()

    with pytest.raises(StoreUnavailable, match="no claim today"):
        await soon(serve)

    assert not server.running


async def test_a_server_serves_until_it_is_cancelled(app: App) -> None:
    @app.job
    async def work(ctx: Context) -> None:
        await ctx.cancelled.wait()

    server = Server(app)
    serve = asyncio.create_task(server.serve())
    await until(lambda: server.running)
    handle = await work.enqueue()
    await busy(server)

    serve.cancel()
    await soon(asyncio.wait((serve,)))

    assert not server.running
    assert (await handle.job()).state is State.SUCCEEDED


async def test_a_start_that_is_cancelled_at_any_step_leaves_nothing_behind(app: App, store: Store) -> None:
    before = _others()

    @app.job
    async def work() -> str:
        return "done"

    for step in range(1, MOST_STEPS):
        server = Server(app)
        if not await cancelled_at(step, server.start()):
            break
        assert not server.running
        assert await store.servers() == []
        assert _others() <= before
    else:
        pytest.fail("a start has no end")

    assert step > 3
    assert await soon((await work.enqueue()).result()) == "done"
    await server.stop()


async def test_a_stop_that_is_cancelled_at_any_step_is_done_at_once(app: App, store: Store) -> None:
    before = _others()

    @app.job(max_attempts=1)
    async def waits() -> None:
        await asyncio.Event().wait()

    @app.job(max_attempts=1)
    async def ends(ctx: Context) -> None:
        await ctx.cancelled.wait()

    for step in range(1, MOST_STEPS):
        server = Server(app)
        await server.start()
        handles = [await waits.enqueue(), await ends.enqueue()]
        await busy(server, 2)
        hit = await soon(cancelled_at(step, server.stop(grace=0)))
        assert not server.running
        assert await store.servers() == []
        assert _others() <= before
        stopped, ended_by_itself = [await handle.job() for handle in handles]
        assert (stopped.state, stopped.attempt) == (State.PENDING, 0)
        assert (ended_by_itself.state, ended_by_itself.attempt) in [(State.PENDING, 0), (State.SUCCEEDED, 1)]
        for handle in handles:
            await handle.cancel()
        if not hit:
            break
    else:
        pytest.fail("a stop has no end")

    assert step > 3


async def test_a_job_may_be_cancelled_at_any_step_of_its_own_calls(app: App) -> None:
    before = _others()
    step = 0

    async def calls(ctx: Context) -> None:
        await ctx.kv.put("step", b"%d" % step)
        await ctx.kv.get("step")
        handle = await other.enqueue()
        await handle.wait()

    @app.job
    async def other() -> None: ...

    @app.job
    async def work(ctx: Context) -> bool:
        return await cancelled_at(step, calls(ctx))

    async with serving(app):
        hit = True
        while hit:
            step += 1
            hit = await soon((await work.enqueue()).result())
        assert 1 < step < MOST_STEPS
        await quiet(app)

    assert _others() <= before


async def cancelled_at(step: int, work: Coroutine[Any, Any, Any]) -> bool:
    """Run `work` and cancel it when it waits for the `step`th time; return whether it came so far."""
    hits: list[int] = []
    task = asyncio.create_task(_counted(step, work, hits))
    await asyncio.wait((task,))
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
    return bool(hits)


def _counted(step: int, work: Coroutine[Any, Any, Any], hits: list[int]) -> Coroutine[Any, Any, Any]:
    async def run() -> None:
        await _stepwise(step, work, hits)

    return run()


@coroutine
def _stepwise(step: int, work: Coroutine[Any, Any, Any], hits: list[int]) -> Generator[Any, Any, None]:
    task = asyncio.current_task()
    assert task is not None
    steps, raised = 0, None
    while True:
        try:
            waited = work.send(None) if raised is None else work.throw(raised)
        except StopIteration:
            return
        steps += 1
        if steps == step:
            hits.append(step)
            asyncio.get_running_loop().call_soon(task.cancel)
        try:
            raised = None
            yield waited
        except BaseException as error:  # noqa: BLE001 - it is for the work
            raised = error


def _others() -> set[str]:
    # what looks after waits stays for a moment after the last of them, and a store's own come and go
    names = {task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()}
    of_the_store = {"adder", "gather", "listener", "look at version", "notifier", "survey"}
    return names - {"windlass watcher"} - {f"windlass {name}" for name in of_the_store}
