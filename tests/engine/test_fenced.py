"""What a server does when another process has taken its store over: it stops at once, and settles nothing."""

import asyncio
import logging
import threading
import time
from collections.abc import Collection
from datetime import timedelta
from typing import Any

import pytest

import windlass
from tests.engine.fenceable_store import FenceableStore
from windlass import Context, Fenced, ServerConfig, State
from windlass.core.ids import JobId
from windlass.core.topics import FLAGS, OWNER, SCHEDULES, Topic
from windlass.testing import FakeClock, SeededRng
from windlass.testing.conformance.served import busy

PATIENCE = 20.0
SELDOM: Any = dict.fromkeys(("poll_interval", "heartbeat_interval", "rescue_interval", "prune_interval"), 3600)
"""Nothing is called by the clock: what is seen at once was rung."""
SELDOM["dead_after"] = 7200


@pytest.fixture
def store() -> FenceableStore:
    return FenceableStore()


async def fenced(server: windlass.Server) -> None:
    """Wait until the server has stopped, and see that it says why."""
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(Fenced, match="this one must stop"):
            await server.stopped()
    assert not server.running
    assert isinstance(server.fenced, Fenced)


def loud(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said at a level that somebody looks at."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("concurrency, services", [(20, True), (0, True), (0, False)])
async def test_an_idle_server_stops_when_its_store_is_taken_over(
    store: FenceableStore, caplog: pytest.LogCaptureFixture, concurrency: int, *, services: bool
) -> None:
    app = windlass.App(store.here)

    @app.job
    async def work() -> None: ...

    async with app:
        server = windlass.Server(
            app, ServerConfig(concurrency=concurrency, services=services, schedules=services, **SELDOM)
        )
        await server.start()

        store.take_over(ring=(OWNER,))

        await fenced(server)
    [said] = loud(caplog)
    assert said == f"server {server.id} stops at once: {server.fenced}"


async def test_a_server_by_a_clock_that_stands_still_stops_too() -> None:
    clock = FakeClock()
    store = FenceableStore(clock=clock)
    app = windlass.App(store.here, clock=clock, rng=SeededRng())
    async with app:
        server = windlass.Server(app, ServerConfig(concurrency=0))
        await server.start()

        store.take_over()

        await fenced(server)


async def test_jobs_are_told_that_their_claim_is_lost_and_nothing_of_them_is_settled(
    store: FenceableStore, caplog: pytest.LogCaptureFixture
) -> None:
    app = windlass.App(store.here)
    reasons: list[str | None] = []

    @app.job
    async def listens(ctx: Context) -> str:
        await ctx.cancelled.wait()
        reasons.append(ctx.cancelled.reason)
        return "done"

    @app.job
    async def is_deaf(ctx: Context) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            reasons.append(ctx.cancelled.reason)

    async with app:
        server = windlass.Server(app)
        await server.start()
        ids = [(await listens.enqueue()).id, (await is_deaf.enqueue()).id]
        await busy(server, 2)
        before = await store.behind.get(ids)

        store.take_over()

        await fenced(server)
        assert reasons == ["claim_lost", "claim_lost"]
        assert await store.behind.get(ids) == before
        assert [job and job.state for job in before] == [State.RUNNING, State.RUNNING]
    assert len(loud(caplog)) == 1


@pytest.mark.parametrize("ends_process", [False, True])
async def test_a_thread_that_does_not_end_is_not_given_back(store: FenceableStore, *, ends_process: bool) -> None:
    app = windlass.App(store.here)
    go = threading.Event()

    @app.job
    def hangs() -> None:
        go.wait(PATIENCE)

    async with app:
        server = windlass.Server(app, ends_process=ends_process)
        await server.start()
        job_id = (await hangs.enqueue()).id
        await busy(server)

        store.take_over()

        await fenced(server)
        go.set()
        assert await state(store, job_id) is State.RUNNING
        assert server.tally.lost == 1


async def test_a_settlement_that_is_refused_stops_the_server(store: FenceableStore) -> None:
    app = windlass.App(store.here)
    go = asyncio.Event()

    @app.job
    async def waits() -> None:
        await go.wait()

    async with app:
        server = windlass.Server(app)
        await server.start()
        job_id = (await waits.enqueue()).id
        await busy(server)

        store.take_over(ring=())
        go.set()

        await fenced(server)
        assert await state(store, job_id) is State.RUNNING


async def state(store: FenceableStore, job_id: JobId) -> State | None:
    [job] = await store.behind.get([job_id])
    return None if job is None else job.state


@pytest.mark.parametrize("topics", [(Topic("queue:default"),), (SCHEDULES,), (FLAGS,)], ids=["claim", "look", "flags"])
async def test_any_call_that_is_refused_stops_the_server(
    store: FenceableStore, topics: Collection[Topic], caplog: pytest.LogCaptureFixture
) -> None:
    app = windlass.App(store.here)

    @app.every(timedelta(hours=1))
    @app.job
    async def waits() -> None:
        await asyncio.Event().wait()

    async with app:
        server = windlass.Server(app)
        await server.start()
        await waits.enqueue()
        await busy(server)

        store.take_over(ring=topics)

        await fenced(server)
    assert len(loud(caplog)) == 1


async def test_a_schedule_that_is_due_does_not_fire_and_stops_the_server(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    store = FenceableStore(clock=clock)
    app = windlass.App(store.here, clock=clock, rng=SeededRng())

    @app.every(timedelta(seconds=1))
    @app.job
    async def ticks() -> None: ...

    async with app:
        server = windlass.Server(app, ServerConfig(concurrency=0, services=False, heartbeat_interval=30))
        await server.start()

        store.take_over(ring=())
        await clock.let_pass(2)

        await fenced(server)
        assert [each.pending for each in await store.behind.stats()] == []
    assert len(loud(caplog)) == 1


async def test_a_stop_that_gives_jobs_time_is_cut_short(store: FenceableStore) -> None:
    app = windlass.App(store.here)

    @app.job
    async def waits() -> None:
        await asyncio.Event().wait()

    async with app:
        server = windlass.Server(app)
        await server.start()
        job_id = (await waits.enqueue()).id
        await busy(server)
        stopping = asyncio.create_task(server.stop(grace=3600))
        await asyncio.sleep(0)

        store.take_over()

        await fenced(server)
        await stopping
        assert await state(store, job_id) is State.RUNNING


async def test_notes_and_waiting_ends_are_left_where_they_are(
    store: FenceableStore, caplog: pytest.LogCaptureFixture
) -> None:
    app = windlass.App(store.here)
    go = asyncio.Event()

    @app.job
    async def notes(ctx: Context) -> None:
        await go.wait()
        ctx.log.info("too late")
        ctx.progress(1, 2)

    async with app:
        server = windlass.Server(app)
        await server.start()
        ids = [(await notes.enqueue()).id for _ in range(20)]
        await busy(server, 20)
        before = await store.behind.get(ids)

        store.take_over(ring=())
        go.set()

        await fenced(server)
        assert await store.behind.get(ids) == before
    assert len(loud(caplog)) == 1


async def test_a_server_does_not_start_on_a_store_that_is_taken_over(store: FenceableStore) -> None:
    app = windlass.App(store.here)
    async with app:
        store.take_over()
        server = windlass.Server(app)

        with pytest.raises(Fenced):
            await server.start()

        assert not server.running


def test_a_program_that_runs_a_server_ends_by_the_error(store: FenceableStore) -> None:
    app = windlass.App(store.here)

    @app.lifespan
    async def lose_it():  # type: ignore[no-untyped-def]  # noqa: ANN202 - what it yields does not matter
        asyncio.get_running_loop().call_later(0.01, store.take_over)
        yield None

    with pytest.raises(Fenced):
        windlass.Server(app).run()


async def test_the_thread_that_renews_sees_it_while_a_job_blocks_the_event_loop(store: FenceableStore) -> None:
    app = windlass.App(store.here, lease=3600)
    seen: list[Fenced | None] = []

    @app.job
    async def blocks() -> None:
        store.take_over()
        until = time.monotonic() + PATIENCE
        while server.fenced is None and time.monotonic() < until:
            time.sleep(0.001)  # noqa: ASYNC251 - that is the point
        seen.append(server.fenced)

    async with app:
        server = windlass.Server(app)
        await server.start()
        await blocks.enqueue()

        await fenced(server)

    assert isinstance(seen[0], Fenced)


async def test_services_without_a_server_end_and_say_so_once(
    store: FenceableStore, caplog: pytest.LogCaptureFixture
) -> None:
    async with windlass.connect(store.here, services=True) as client:
        await client.open()
        store.take_over()
        async with asyncio.timeout(PATIENCE):
            while not loud(caplog):  # noqa: ASYNC110 - a log tells nobody
                await asyncio.sleep(0)

    [said] = loud(caplog)
    assert said.startswith("rescue, promotion and pruning end here: another process has taken")
