import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import windlass
from proofs.children import eventually
from tests.each_store import STORES, new_url
from windlass.core.requests import ClaimRequest
from windlass.core.states import State
from windlass.engine.attempt import Attempt
from windlass.testing.conformance.failing import cancelled_at
from windlass.testing.conformance.served import busy


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with new_url(request.param) as url:
        yield url


def ours() -> set[str]:
    names = {thread.name for thread in threading.enumerate()}
    return {name for name in names if not name.startswith(("asyncio_", "pytest", "MainThread"))}


async def test_a_start_that_is_cancelled_at_any_step_leaves_no_thread_and_no_record_behind(url: str) -> None:
    """In real time, where leases are renewed by a thread."""
    before = ours()
    app = windlass.App(url)
    async with app:
        opened = ours()
        server, step = windlass.Server(app), 1
        while await cancelled_at(step, server.start()):
            assert not server.running
            assert await app.client.store.servers() == []
            assert eventually(lambda: ours() <= opened, 5)
            step += 1
        assert 3 < step < 200
        await server.stop()
    assert eventually(lambda: ours() <= before, 5)


async def test_a_stop_that_is_cancelled_at_any_step_leaves_nothing_behind(url: str) -> None:
    before = ours()
    app = windlass.App(url)

    @app.job(max_attempts=1)
    async def waits() -> None:
        await asyncio.Event().wait()

    async with app:
        opened = ours()
        hit, step = True, 0
        while hit:
            step += 1
            server = windlass.Server(app)
            await server.start()
            handle = await waits.enqueue()
            await busy(server)
            hit = await cancelled_at(step, server.stop(grace=0))
            assert not server.running
            assert await app.client.store.servers() == []
            assert eventually(lambda: ours() <= opened, 5)
            job = await handle.job()
            assert (job.state, job.attempt) == (State.PENDING, 0)
            await handle.cancel()
        assert 3 < step < 200
    assert eventually(lambda: ours() <= before, 5)


def test_a_program_without_an_event_loop_runs_a_server_until_it_is_stopped(url: str) -> None:
    before = ours()
    app = windlass.App(url)
    server = windlass.Server(app)
    stops: list[asyncio.Task[None]] = []

    @app.lifespan
    async def enqueue_one():  # type: ignore[no-untyped-def]  # noqa: ANN202 - what it yields does not matter
        await stop.enqueue()
        yield None

    @app.job
    async def stop() -> None:
        stops.append(asyncio.get_running_loop().create_task(server.stop()))

    server.run()

    assert (server.running, len(stops)) == (False, 1)
    assert eventually(lambda: ours() <= before, 5)


async def test_a_slow_job_costs_no_attempt_when_its_server_is_restarted_again_and_again(url: str) -> None:
    app = windlass.App(url)

    in_time = asyncio.Event()

    @app.job(max_attempts=1)
    async def slow(ctx: windlass.Context) -> int:
        await in_time.wait()
        return ctx.attempt

    async with app:
        handle = await slow.enqueue()
        for _ in range(4):
            async with windlass.Server(app) as server:
                await busy(server)
                await server.stop(grace=0)
        in_time.set()
        async with windlass.Server(app):
            assert await handle.result(timeout=10) == 1


async def test_a_server_stops_at_an_error_of_the_store_if_it_should(tmp_path: Path) -> None:
    app = windlass.App(f"sqlite:///{tmp_path}/jobs.db")
    server = windlass.Server(app, windlass.ServerConfig(stop_on_error=True, poll_interval=0.05))
    app.job(kind="nothing")(_nothing)
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(10):
        while not server.running:  # noqa: ASYNC110 - a start says so to nobody else
            await asyncio.sleep(0.01)
        (tmp_path / "jobs.db").unlink()

        with pytest.raises(windlass.StoreUnavailable, match="deleted or replaced"):
            await serving

    assert (server.running, server.stopping) == (False, True)
    await app.close()


def test_a_program_that_runs_a_server_leaves_the_app_closed(url: str) -> None:
    app = windlass.App(url)
    server = windlass.Server(app)

    @app.lifespan
    async def stop_soon() -> AsyncIterator[None]:
        asyncio.get_running_loop().call_later(0.05, lambda: asyncio.ensure_future(server.stop()))
        yield

    server.run()

    assert not server.running
    asyncio.run(_reopened(app))


async def test_a_server_whose_process_ends_with_it_gives_back_threads_that_do_not_end(url: str) -> None:
    app = windlass.App(url)
    begun, release = threading.Event(), threading.Event()

    @app.job(max_attempts=1)
    def hangs() -> None:
        begun.set()
        release.wait(30)

    async with app:
        server = windlass.Server(app, ends_process=True)
        await server.start()
        handle = await hangs.enqueue()
        assert await asyncio.to_thread(begun.wait, 20)
        assert server.busy == 1

        await server.stop(grace=0)

        job = await handle.job()
        assert (job.state, job.attempt, job.delivery) == (State.PENDING, 0, 1)
        assert server.busy == 0
        release.set()


async def test_a_job_that_was_asked_to_end_is_not_given_back_by_a_server_whose_process_ends(url: str) -> None:
    app = windlass.App(url)
    told, release = threading.Event(), threading.Event()

    @app.job
    def hangs(ctx: windlass.Context) -> None:
        if ctx.cancelled.wait_sync(10):
            told.set()
        release.wait(30)

    async with app:
        server = windlass.Server(app, windlass.ServerConfig(poll_interval=0.02), ends_process=True)
        await server.start()
        handle = await hangs.enqueue()
        await busy(server)
        await handle.cancel()
        await asyncio.to_thread(told.wait, 10)

        await server.stop(grace=0)

        assert (await handle.job()).state is State.CANCELLED
        release.set()


async def test_a_server_gives_back_what_another_held_that_has_ended_for_sure(url: str) -> None:
    app = windlass.App(url)
    changes: list[tuple[State, State]] = []

    @app.on_state_change
    def keep(_: windlass.Job, old: State, new: State) -> None:
        changes.append((old, new))

    @app.job
    async def work() -> str:
        return "done"

    async with app, windlass.Server(app, windlass.ServerConfig(concurrency=0)) as services:
        handle = await work.enqueue()
        hour = timedelta(hours=1)
        for server in ("gone#1", "lives#1"):
            await work.enqueue()
            assert (await app.client.store.claim(ClaimRequest(("default",), 1, hour, worker=server))).jobs

        await services.rescue(["gone#1"])

        assert (await handle.job()).state is State.PENDING
        assert (await app.client.stats()).running == 1
        assert await asyncio.to_thread(eventually, lambda: changes == [(State.RUNNING, State.PENDING)], 5)


async def test_a_server_that_does_not_run_gives_nothing_back(url: str) -> None:
    app = windlass.App(url)
    async with app:
        await app.client.enqueue("default", b"")
        hour = timedelta(hours=1)
        assert (await app.client.store.claim(ClaimRequest(("default",), 1, hour, worker="gone#1"))).jobs

        await windlass.Server(app).rescue(["gone#1"])

        assert (await app.client.stats()).running == 1


async def test_a_server_knows_its_id_before_its_first_start_and_has_a_new_one_at_the_next(url: str) -> None:
    app = windlass.App(url)
    async with app:
        server = windlass.Server(app)
        before = server.id

        async with server:
            first = server.id
            listed = [each.id for each in await app.client.store.servers()]
        async with server:
            second = server.id

    assert first == before
    assert listed == [first]
    assert second != first


async def test_whoever_waits_for_a_server_hears_of_its_stop(url: str) -> None:
    app = windlass.App(url)
    async with app:
        server = windlass.Server(app)
        await server.start()
        waiting = asyncio.create_task(server.stopped())

        await server.stop()

        await asyncio.wait_for(waiting, 5)


async def _reopened(app: windlass.App) -> None:
    async with app:
        await app.client.enqueue("default", b"")


async def _nothing() -> None:
    """Do nothing."""


def attempts() -> int:
    # not isinstance: some objects of other libraries do something when they are asked what they are
    return sum(type(found) is Attempt for found in gc.get_objects())


async def test_what_has_ended_is_freed_without_the_garbage_collector() -> None:
    """Thousands of attempts would wait for it, with their jobs: twenty megabytes during a rush."""
    app = windlass.App("memory://")

    @app.job
    async def waits() -> None:
        await asyncio.sleep(0)

    gc.collect()
    before = attempts()
    gc.disable()
    try:
        async with app, windlass.Server(app):
            handles = await app.enqueue_many(waits.call() for _ in range(20))
            for handle in handles:
                await handle.result()
        after = attempts()
    finally:
        gc.enable()

    assert after == before


def test_a_server_of_something_else_than_an_app_is_refused_at_once() -> None:
    with pytest.raises(windlass.InvalidValue, match=r"^a server works an App, not str: Server[(]app[)]"):
        windlass.Server("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_the_settings_of_a_server_may_be_keywords() -> None:
    assert windlass.Server(windlass.App("memory://"), concurrency=3).slots == 3


def test_keywords_beside_a_config_are_refused() -> None:
    with pytest.raises(windlass.InvalidValue, match=r"not both: put concurrency, queues into the ServerConfig"):
        windlass.Server(windlass.App("memory://"), windlass.ServerConfig(), concurrency=3, queues=["email"])


def test_a_keyword_that_is_no_setting_is_refused() -> None:
    with pytest.raises(TypeError, match="concurency"):
        windlass.Server(windlass.App("memory://"), concurency=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def test_settings_of_a_server_that_are_none_are_refused_at_once() -> None:
    app = windlass.App("memory://")

    with pytest.raises(windlass.InvalidValue, match="takes a ServerConfig, not dict"):
        windlass.Server(app, {"concurrency": 5})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
