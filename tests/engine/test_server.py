import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import windlass
from proofs.children import eventually
from windlass.core.states import State
from windlass.testing.conformance.failing import cancelled_at
from windlass.testing.conformance.served import stands


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/jobs.db"


def ours() -> set[str]:
    names = {thread.name for thread in threading.enumerate()}
    return {name for name in names if not name.startswith(("asyncio_", "pytest", "MainThread"))}


async def test_a_start_that_is_cancelled_at_any_step_leaves_no_thread_and_no_record_behind(url: str) -> None:
    """F49, I19: in real time, where leases are renewed by a thread."""
    before = ours()
    app = windlass.App(url)
    async with app:
        opened = ours()
        server, step = windlass.Server(app), 1
        while await cancelled_at(step, server.start()):
            assert not server.running
            assert await app.client.store.servers() == []
            assert ours() == opened
            step += 1
        assert 3 < step < 200
        await server.stop()
    assert eventually(lambda: ours() == before, 5)


async def test_a_stop_that_is_cancelled_at_any_step_leaves_nothing_behind(url: str) -> None:
    """F49, I7, I19."""
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
            await stands(handle, State.RUNNING)
            hit = await cancelled_at(step, server.stop(grace=0))
            assert not server.running
            assert await app.client.store.servers() == []
            assert eventually(lambda: ours() == opened, 5)
            job = await handle.job()
            assert (job.state, job.attempt) == (State.PENDING, 0)
            await handle.cancel()
        assert 3 < step < 200
    assert eventually(lambda: ours() == before, 5)


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
    assert eventually(lambda: ours() == before, 5)


async def test_a_slow_job_costs_no_attempt_when_its_server_is_restarted_again_and_again(url: str) -> None:
    """G10."""
    app = windlass.App(url)

    @app.job(max_attempts=1)
    async def slow(ctx: windlass.Context) -> int:
        if ctx.delivery < 5:
            await asyncio.Event().wait()
        return ctx.attempt

    async with app:
        handle = await slow.enqueue()
        for delivery in range(1, 5):
            async with windlass.Server(app) as server:
                await stands(handle, State.RUNNING, delivery=delivery)
                await server.stop(grace=0)
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


async def _reopened(app: windlass.App) -> None:
    async with app:
        await app.client.enqueue("default", b"")


async def _nothing() -> None:
    """Do nothing."""
