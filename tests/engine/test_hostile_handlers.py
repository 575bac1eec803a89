"""Nothing that a handler does can stop the server: real time, real threads, real processes, short leases."""

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest

import windlass
from proofs.children import eventually
from tests.each_store import STORES, new_url
from tests.engine import hostile
from windlass.app.handle import Handle
from windlass.client.results import Completed
from windlass.core.job import Job
from windlass.core.requests import RescueRequest
from windlass.core.retry import NoRetry
from windlass.core.states import State
from windlass.core.store import Store
from windlass.engine import attempt_stopper
from windlass.engine.context import Context
from windlass.testing.conformance.served import busy, stands, until

HERE = ("memory", "sqlite", "postgres")
"""Handlers that do harm, harm the server, and the store hardly matters."""
ON_TIME = 2.0
"""Seconds within which a neighbour is done, on a machine that does other things too."""


@pytest.fixture(params=[store for store in HERE if store in STORES])
def app(request: pytest.FixtureRequest) -> Iterator[windlass.App]:
    before = threads_of_windlass()
    with new_url(request.param) as url:
        yield windlass.App(url, lease=0.3, retry=NoRetry())
    assert eventually(lambda: threads_of_windlass() <= before, 5), threads_of_windlass() - before


def threads_of_windlass() -> set[str]:
    """Return the names of all threads but those that asyncio keeps until its loop is closed."""
    return {thread.name for thread in threading.enumerate() if not thread.name.startswith("asyncio_")}


async def ended(handle: Handle[Any], seconds: float = 20) -> Job:
    found = await handle.wait(seconds)
    assert isinstance(found, Completed), found
    assert found.job is not None
    return found.job


async def neighbour_is_on_time(app: windlass.App) -> None:
    done = await app.client.enqueue("default", {}, kind="neighbour")
    found = await app.client.wait(done.id, ON_TIME)
    assert isinstance(found, Completed), found
    assert found.job is not None
    assert found.job.state is State.SUCCEEDED


def serving(app: windlass.App, **config: Any) -> windlass.Server:  # noqa: ANN401 - whatever a server takes
    @app.job
    async def neighbour() -> None: ...

    return windlass.Server(app, windlass.ServerConfig(**config))


@pytest.mark.parametrize("name", hostile.RAISED)
async def test_whatever_is_raised_is_one_failed_attempt_with_a_text(app: windlass.App, name: str) -> None:
    @app.job
    async def here() -> None:
        error = hostile.RAISED[name]()
        raise error

    @app.job
    def thread() -> None:
        error = hostile.RAISED[name]()
        raise error

    async with app, serving(app) as server:
        handles = [await here.enqueue(), await thread.enqueue()]
        await neighbour_is_on_time(app)
        jobs = [await ended(handle) for handle in handles]
        assert server.health().ready

    assert [(job.state, job.attempt) for job in jobs] == [(State.DEAD, 1)] * 2
    for job in jobs:
        assert job.last_error
        assert len(job.last_error) < 10_000


@pytest.mark.parametrize("name", hostile.PUT_OFF)
async def test_a_job_may_be_put_off_until_the_end_of_time(app: windlass.App, name: str) -> None:
    @app.job
    async def work() -> None:
        error = hostile.PUT_OFF[name]()
        raise error

    async with app, serving(app):
        handle = await work.enqueue()
        await neighbour_is_on_time(app)
        await stands(handle, State.SCHEDULED)


@pytest.mark.parametrize("name", hostile.RETURNED)
async def test_a_result_that_cannot_be_kept_makes_the_job_dead_at_once(app: windlass.App, name: str) -> None:
    @app.job(retry=windlass.Fixed(0))
    async def here() -> Any:  # noqa: ANN401 - whatever it is
        return hostile.RETURNED[name]()

    async with app, serving(app):
        handle = await here.enqueue()
        await neighbour_is_on_time(app)
        job = await ended(handle)

    assert (job.state, job.attempt) == (State.DEAD, 1)
    assert "the work was done" in (job.last_error or "") or name == "coroutine"


async def test_what_json_has_no_word_for_is_null(app: windlass.App) -> None:
    @app.job
    async def work() -> Any:  # noqa: ANN401 - a plain value
        return [float("nan"), float("inf")]

    async with app, serving(app):
        assert await (await work.enqueue()).result(timeout=10) == [None, None]


async def test_a_child_process_that_dies_is_one_failed_attempt(app: windlass.App) -> None:
    ends: dict[Callable[[], None], str] = {
        hostile.leave: "ChildDied: the child process ended with exit code 7",
        hostile.crash: "ChildDied: the child process ended by SIGSEGV",
        hostile.abort: "ChildDied: the child process ended by SIGABRT",
        hostile.exit_politely: "SystemExit: 3",
    }
    handlers = [app.job(process=True)(function) for function in ends]
    lives = app.job(process=True)(hostile.pid)
    async with app, serving(app, concurrency=5):
        handles = [await handler.enqueue() for handler in handlers]
        await neighbour_is_on_time(app)
        jobs = [await ended(handle) for handle in handles]
        assert await (await lives.enqueue()).result(timeout=20) != os.getpid()

    assert [(job.state, job.attempt) for job in jobs] == [(State.DEAD, 1)] * 4
    assert [job.last_error for job in jobs] == list(ends.values())


async def test_a_middleware_sees_the_value_of_a_child_process(app: windlass.App) -> None:
    seen: list[object] = []

    @app.middleware
    async def note(_: windlass.Context, call_next: Callable[[], Awaitable[Any]]) -> object:
        seen.append(await call_next())
        return seen[-1]

    lives = app.job(process=True)(hostile.pid)
    async with app, serving(app, concurrency=1):
        assert await (await lives.enqueue()).result(timeout=20) == seen[0]


async def test_a_child_process_that_spins_is_killed_by_its_timeout(app: windlass.App) -> None:
    spin = app.job(process=True, timeout=0.5)(hostile.spin)
    lives = app.job(process=True)(hostile.pid)
    async with app, serving(app, concurrency=1) as server:
        job = await ended(await spin.enqueue())
        assert (job.state, job.last_error) == (State.DEAD, f"Timeout: {_timed_out('0:00:00.500000')}")
        assert await (await lives.enqueue()).result(timeout=20)
        assert server.health().ready


async def test_a_cancelled_child_process_is_told_and_then_made_to_end(
    app: windlass.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_stopper, "PATIENCE", 0.3)
    heed = app.job(process=True)(hostile.heed)
    deaf = app.job(process=True)(hostile.deaf)
    async with app, serving(app):
        listening, ignoring = await heed.enqueue(), await deaf.enqueue()
        await stands(listening, State.RUNNING, progress=windlass.Progress(1))
        await listening.cancel()
        await ignoring.cancel()
        assert await listening.result(timeout=20) == "cancel"
        assert (await ended(ignoring)).state is State.CANCELLED


async def test_a_child_process_that_does_not_end_with_its_server_is_killed_and_its_job_given_back(
    app: windlass.App,
) -> None:
    spin = app.job(process=True, max_attempts=1)(hostile.spin)
    async with app:
        server = serving(app)
        await server.start()
        handle = await spin.enqueue()
        await busy(server)
        since = time.monotonic()
        await server.stop(grace=0.1)
        job = await handle.job()

    assert time.monotonic() - since < 3
    assert (job.state, job.attempt) == (State.PENDING, 0)


class Onlooker(threading.Thread):
    """Another process, for all that the store knows: rescues what it can, and sees each lease that a job has."""

    def __init__(self, store: Store, job_id: windlass.JobId) -> None:
        super().__init__(daemon=True)
        self._store = store
        self._job_id = job_id
        self._over = threading.Event()
        self.leases: set[object] = set()
        self.rescued = 0

    def run(self) -> None:
        asyncio.run(self._look_on())

    def stop(self) -> None:
        self._over.set()
        self.join(10)

    async def _look_on(self) -> None:
        await self._store.open()
        retention = windlass.connect("memory://").settings.retention
        while not self._over.is_set():
            [job] = await self._store.get([self._job_id])
            if job is not None and job.lease_expires_at is not None:
                self.leases.add(job.lease_expires_at)
            self.rescued += len(await self._store.rescue(RescueRequest(), retention))
            await asyncio.sleep(0.02)
        await self._store.close()


async def test_a_coroutine_that_blocks_the_event_loop_for_three_leases_is_not_rescued(app: windlass.App) -> None:
    begun = asyncio.Event()
    ran = 0

    @app.job
    async def work() -> str:
        nonlocal ran
        ran += 1
        begun.set()
        await asyncio.sleep(0.05)
        time.sleep(0.9)  # noqa: ASYNC251 - what the test is about
        return "held"

    async with app, serving(app):
        handle = await work.enqueue()
        await begun.wait()
        onlooker = Onlooker(app.client.store.sibling(), handle.id)
        onlooker.start()
        assert await handle.result(timeout=10) == "held"
        onlooker.stop()
        job = await handle.job()

    assert (ran, job.delivery, onlooker.rescued) == (1, 1, 0)
    assert len(onlooker.leases) >= 3


async def test_a_thread_that_never_ends_is_settled_and_keeps_its_slot_and_is_shown(app: windlass.App) -> None:
    enough = False

    @app.job(timeout=0.2)
    def spin() -> None:
        while not enough:
            pass

    async with app, serving(app, concurrency=2) as server:
        handle = await spin.enqueue()
        job = await ended(handle)
        assert (job.state, job.last_error) == (State.DEAD, f"Timeout: {_timed_out('0:00:00.200000')}")
        assert handle.id in "".join(server.health().reasons)
        await neighbour_is_on_time(app)
        enough = True
        await until(lambda: server.health().ready)


async def test_a_coroutine_that_swallows_every_cancellation_is_settled_and_keeps_its_slot(app: windlass.App) -> None:
    ends = asyncio.Event()

    @app.job(timeout=0.2)
    async def stubborn() -> None:
        while not ends.is_set():
            with suppress(asyncio.CancelledError):
                await ends.wait()

    async with app, serving(app, concurrency=2) as server:
        job = await ended(await stubborn.enqueue())
        assert (job.state, job.attempt) == (State.DEAD, 1)
        await neighbour_is_on_time(app)
        assert not server.health().ready
        ends.set()


async def test_a_coroutine_that_blocks_past_its_timeout_and_a_lease_is_renewed_no_more(
    app: windlass.App, caplog: pytest.LogCaptureFixture
) -> None:
    """The stack is logged, and another server takes the job."""

    known = windlass.JobId(str(uuid4()))

    @app.job(timeout=0.1, max_attempts=1)
    async def work() -> None:
        time.sleep(1.2)  # noqa: ASYNC251 - what the test is about

    async with app, serving(app, services=False):
        onlooker = Onlooker(app.client.store.sibling(), known)
        onlooker.start()
        handle = await work.options(id=known).enqueue()
        job = await ended(handle)
        onlooker.stop()

    assert (job.state, onlooker.rescued) == (State.DEAD, 1)
    assert "the lease expired" in (job.last_error or "")
    assert "is past its timeout of 0:00:00.100000 and its lease" in caplog.text
    assert "in work" in caplog.text


async def test_a_handler_that_leaves_things_behind_leaves_them_to_itself(app: windlass.App) -> None:
    async def leaks() -> None:
        raise LookupError("in a task of the handler")

    kept: list[asyncio.Task[None]] = []

    @app.job
    async def work(ctx: Context) -> str:
        kept.append(asyncio.create_task(leaks()))
        await asyncio.wait(kept)
        return ctx.job.id

    async with app, serving(app):
        handle = await work.enqueue()
        assert await handle.result(timeout=10) == handle.id
        await neighbour_is_on_time(app)
    assert isinstance(kept[0].exception(), LookupError)


def _timed_out(timeout: str) -> str:
    return f"the attempt ran longer than its timeout of {timeout}"
