import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import windlass
from tests.each_store import new_url
from windlass import AlreadyRunning, App, Context, InvalidName, InvalidURL, InvalidValue, Job, QueueSettings, State
from windlass.connect import open_store
from windlass.engine.served import Next, Served
from windlass.handlers.registered import RunsIn
from windlass.testing import FakeClock

FORKED = """
import asyncio, os, sys
import windlass

app = windlass.App(sys.argv[1])

@app.job
def send(number: int) -> None: ...

send.enqueue_sync(1)
async def once() -> None:
    async with app:
        await send.enqueue(2)
asyncio.run(once())
child = os.fork()
if child == 0:
    send.enqueue_sync(3)
    asyncio.run(once())
    app.close_sync()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(app.blocking_client.stats().pending)
"""


@pytest.fixture(params=["memory://", "sqlite:///{}/jobs.db"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.param).format(tmp_path)


def with_a_job(url: str) -> App:
    app = App(url)

    @app.job
    def send(number: int) -> None:
        pass

    return app


def take(job: Job) -> Job:
    return job


async def enqueue(app: App, number: int) -> None:
    await app.client.enqueue("default", {"number": number}, kind="send")


async def pending(app: App) -> int:
    async with app:
        return (await app.client.stats()).pending


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_an_app_is_what_a_server_serves() -> None:
    served: Served = App("memory://")

    assert served.tenant_scope is None
    assert served.name == "windlass"


def test_nothing_is_opened_before_its_first_use(tmp_path: Path) -> None:
    app = with_a_job(f"sqlite:///{tmp_path}/jobs.db")

    _ = app.client

    assert list(tmp_path.iterdir()) == []


async def test_it_opens_at_its_first_use(url: str) -> None:
    app = with_a_job(url)

    await enqueue(app, 1)

    assert (await app.client.stats()).pending == 1
    await app.close()


async def test_it_may_be_opened_again_after_its_close(url: str) -> None:
    app = with_a_job(url)

    async with app:
        await enqueue(app, 1)
        first = app.client
    async with app:
        await enqueue(app, 2)

        assert app.client is not first
        assert (await app.client.stats()).pending == 2


async def test_closing_what_is_not_open_is_harmless(url: str) -> None:
    app = with_a_job(url)

    await app.close()
    app.close_sync()
    await app.open()
    await app.close()
    await app.close()


def test_blocking_calls_and_the_event_loop_see_the_same_jobs(url: str) -> None:
    app = App(url)

    @app.job
    def double(number: int) -> int:
        return 2 * number

    async def work() -> None:
        async with app:
            claim = await app.client.claim("default")
            assert claim is not None
            await app.client.ack(claim, 4)

    handle = double.enqueue_sync(2)
    asyncio.run(work())
    again = double.enqueue_sync(3)

    assert handle.created
    assert handle.result(0) == 4
    assert again.cancel() is windlass.CancelOutcome.REMOVED
    with pytest.raises(windlass.JobCancelled):
        again.result(1)
    assert again.wait(0) == windlass.Completed(again.job())
    app.close_sync()


def test_a_blocking_handle_gives_the_result() -> None:
    app = App("memory://")

    @app.job
    def double(number: int) -> int:
        return 2 * number

    [handle] = app.enqueue_many_sync([double.call(2)])
    claim = app.blocking_client.claim("default")
    assert claim is not None
    app.blocking_client.ack(claim, 4)

    assert handle.result(10) == 4
    assert repr(handle) == f"<BlockingHandle of job {handle.id}>"
    app.close_sync()


def test_an_app_that_was_left_open_is_opened_anew_in_the_next_event_loop(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = with_a_job(url)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(enqueue(app, 1))
    # unlike asyncio.run this ends no asynchronous generators
    loop.close()

    asyncio.run(enqueue(app, 2))

    assert asyncio.run(pending(app)) == 2
    assert "was not closed before its event loop" in caplog.text


@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
def test_an_app_closes_with_the_event_loop_that_it_was_opened_in(store: str, caplog: pytest.LogCaptureFixture) -> None:
    with new_url(store) as url:
        app = with_a_job(url)
        asyncio.run(enqueue(app, 0))
        files, threads = open_files(), threading.active_count()

        for number in range(5):
            asyncio.run(enqueue(app, number))

        assert (open_files(), threading.active_count()) == (files, threads)
        assert asyncio.run(pending(app)) == 6
    assert "event loop" not in caplog.text


async def test_an_app_is_open_in_one_event_loop_at_a_time(url: str) -> None:
    async with with_a_job(url) as app:
        with pytest.raises(AlreadyRunning, match="open in another event loop"):
            await asyncio.to_thread(asyncio.run, enqueue(app, 1))
        with pytest.raises(AlreadyRunning, match="open in another event loop"):
            await asyncio.to_thread(asyncio.run, app.close())

        await enqueue(app, 2)


async def test_blocking_calls_work_beside_an_event_loop(url: str) -> None:
    async with App(url) as app:

        @app.job
        def send(number: int) -> None:
            pass

        await asyncio.to_thread(lambda: [send.enqueue_sync(number) for number in range(3)])

        assert (await app.client.stats()).pending == 3


def test_many_threads_share_one_blocking_client(url: str) -> None:
    app = App(url)

    @app.job
    def send(number: int) -> None:
        pass

    threads = [threading.Thread(target=send.enqueue_sync, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert app.blocking_client.stats().pending == 8
    app.close_sync()


def test_a_forked_process_has_clients_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKED, f"sqlite:///{tmp_path}/jobs.db"]

    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr


def test_a_job_exists_if_and_only_if_the_transaction_of_its_caller_commits(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/jobs.db")

    @app.job
    def send(number: int) -> None:
        pass

    app.blocking_client.open()
    connection = sqlite3.connect(tmp_path / "jobs.db")
    connection.execute("BEGIN IMMEDIATE")
    send.options(connection=connection).enqueue_sync(1)
    connection.rollback()
    connection.execute("BEGIN IMMEDIATE")
    app.enqueue_many_sync([send.call(2), send.call(3)], connection=connection)
    connection.commit()
    connection.close()

    assert [job.payload for job in app.blocking_client.jobs()] == [b'{"number":2}', b'{"number":3}']
    app.close_sync()


async def test_a_store_of_your_own_may_take_the_place_of_a_url() -> None:
    store = open_store("memory://")

    async with App(store) as app:
        assert app.client.store is store


async def test_the_clock_is_that_of_the_app() -> None:
    clock = FakeClock()

    async with App("memory://", clock=clock) as app:
        done = await app.client.enqueue("default")
        job = await app.client.get(done.id)

    assert job is not None
    assert job.created_at == clock.now()


def test_an_app_without_a_store_says_what_to_do() -> None:
    with pytest.raises(InvalidValue, match="WINDLASS_URL"):
        _ = App().client
    with pytest.raises(InvalidURL):
        _ = App("no url").client


def test_wrong_settings_are_refused_at_once() -> None:
    with pytest.raises(InvalidValue, match="max_attempts"):
        App("memory://", max_attempts=0)
    with pytest.raises(InvalidName, match="queue"):
        App("memory://", queue="a b")
    with pytest.raises(InvalidName, match="name"):
        App("memory://", name="")
    with pytest.raises(InvalidValue, match="lease"):
        App("memory://", queues={"email": QueueSettings(lease=-1)})
    with pytest.raises(InvalidValue, match="priority"):
        App("memory://").queue("email", priority=-1)


def test_it_knows_its_queues() -> None:
    app = App("memory://", queues={"slow": QueueSettings()})
    app.queue("fast")
    app.job(queue="email", kind="send")(lambda: None)
    app.consumer("raw")(take)

    assert list(app.queues) == ["default", "email", "raw", "slow", "fast"]


def test_it_shows_no_url() -> None:
    assert "secret" not in repr(App("postgres://me:secret@host/db"))


async def test_a_consumer_gets_the_job() -> None:
    app = App("memory://")

    @app.consumer("raw", timeout=5)
    async def consume(ctx: Context, job: Job) -> tuple[Context, Job]:
        return ctx, job

    await app.client.enqueue("raw", b"\xff")
    [job] = await app.client.jobs()

    registered = app.consumers["raw"]
    assert registered is consume.registered
    assert (registered.kind, registered.runs_in, consume.queue) == (None, RunsIn.LOOP, "raw")
    assert registered.arguments.wants == {"ctx": Context}
    assert registered.arguments.decode(job) == {"job": job}
    assert consume.__name__ == "consume"


def test_a_consumer_needs_no_annotation_and_takes_one_job() -> None:
    app = App("memory://")

    def take_any(item: int) -> int:
        return item

    del take_any.__annotations__["item"]
    consume = app.consumer("raw")(take_any)

    @app.consumer("other")
    def two(job: Job, other: int) -> None:
        pass

    assert list(consume.registered.arguments.decode(None)) == ["item"]  # type: ignore[arg-type]
    assert consume(7) == 7
    with pytest.raises(InvalidValue, match=r"two\(\) wants other too"):
        _ = two.registered.arguments.wants


def test_a_queue_has_one_consumer() -> None:
    app = App("memory://")
    app.consumer("raw")(take)

    with pytest.raises(InvalidValue, match="a queue has one consumer"):
        app.consumer("raw")(lambda: None)
    with pytest.raises(InvalidName):
        app.consumer("")


async def test_middleware_and_hooks_are_kept_in_their_order() -> None:
    app = App("memory://")

    @app.middleware
    async def outer(context: Context, call_next: Next) -> object:
        return context, await call_next()

    @app.middleware
    async def inner(context: Context, call_next: Next) -> object:
        return context, await call_next()

    @app.on_state_change
    def moved(job: Job, old: State, new: State) -> None:
        pass

    @app.on_dead
    async def died(job: Job) -> None:
        pass

    assert app.middlewares == (outer, inner)
    assert app.state_change_hooks == (moved,)
    assert app.dead_hooks == (died,)


@asynccontextmanager
async def scope(tenant: str) -> AsyncGenerator[str, None]:
    yield tenant


def test_the_scope_of_tenants_is_none_until_it_is_set() -> None:
    app = App("memory://")
    assert app.tenant_scope is None

    app.tenant_scope = scope

    assert app.tenant_scope is scope
    assert App("memory://", tenant_scope=scope).tenant_scope is scope


async def test_a_job_belongs_to_the_tenant_of_here_and_now_unless_it_is_told() -> None:
    async with App("memory://", tenant=lambda: "acme") as app:

        @app.job
        async def send() -> None:
            pass

        captured = await send.enqueue()
        told = await send.options(tenant="other").enqueue()
        app.tenant = lambda: None
        nobody = await send.enqueue()

        assert (await captured.job()).tenant == "acme"
        assert (await told.job()).tenant == "other"
        assert (await nobody.job()).tenant is None


async def test_an_eager_app_runs_a_job_in_place() -> None:
    async with App("memory://", eager=True) as app:

        @app.job
        async def add(left: int, right: int) -> int:
            return left + right

        handle = await add.enqueue(1, 2)

        assert (await handle.job()).state is State.SUCCEEDED
        assert await handle.result(0) == 3


def test_an_eager_app_runs_a_job_in_place_for_blocking_calls_too() -> None:
    app = App("memory://", eager=True)

    @app.job
    def add(left: int, right: int) -> int:
        return left + right

    handle = add.enqueue_sync(1, 2)

    assert handle.result(0) == 3
    app.close_sync()
