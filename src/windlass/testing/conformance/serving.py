"""A server works the queues of its app, from its start to its stop."""

import asyncio
from datetime import timedelta

import pytest

from windlass.app.app import App
from windlass.client.client import Client
from windlass.core.job import NewJob
from windlass.core.retry import Exponential
from windlass.core.states import State
from windlass.core.store import Store
from windlass.engine.context import Context
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenApp, soon
from windlass.testing.conformance.given import HOUR, MINUTE, a_job, claim_one, found
from windlass.testing.conformance.served import ended, goes_by, quiet, serving, stands


async def test_a_server_runs_a_job(app: App) -> None:
    called = asyncio.Event()

    @app.job
    async def work() -> None:
        called.set()

    async with serving(app, concurrency=1):
        await work.enqueue()

        await soon(called.wait())


async def test_jobs_that_waited_are_worked_until_none_is_left(app: App, client: Client) -> None:
    @app.job
    async def work() -> None: ...

    handle = await work.enqueue()
    async with serving(app):
        assert (await ended(handle)).state is State.SUCCEEDED

    assert await client.claim("default") is None


async def test_as_many_jobs_run_at_once_as_there_are_slots(app: App, client: Client) -> None:
    inside, most = 0, 0

    @app.job
    async def work() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1

    handles = await app.enqueue_many([work.call() for _ in range(5)])
    async with serving(app, concurrency=3):
        for handle in handles:
            await ended(handle)

    assert most == 3
    assert (await client.stats("default")).succeeded == 5


async def test_a_stranded_job_waits_again_when_a_server_has_started(app: App, store: Store, clock: FakeClock) -> None:
    [stranded] = await store.enqueue([a_job()])
    await claim_one(store, lease=MINUTE, worker="gone")
    clock.advance(HOUR)

    async with serving(app, concurrency=0):
        [job] = await store.get([stranded.id])

    assert job is not None
    assert (job.state, job.attempt) == (State.PENDING, 1)


async def test_a_job_is_held_for_thirty_seconds_unless_somebody_says_otherwise(app: App, open_app: OpenApp) -> None:
    other = open_app(lease=5)
    held: list[timedelta | None] = []

    async def look(ctx: Context) -> None:
        job = ctx.job
        held.append(
            None if job.lease_expires_at is None or job.claimed_at is None else job.lease_expires_at - job.claimed_at
        )

    for each in (app, other):
        handle = await each.job(look).enqueue()
        async with serving(each):
            await ended(handle)
    handle = await other.job(kind="again")(look).enqueue()
    async with serving(other, lease=7):
        await ended(handle)

    assert held == [timedelta(seconds=30), timedelta(seconds=5), timedelta(seconds=7)]


def test_a_fully_jittered_delay_stays_below_what_it_grows_to() -> None:
    policy = Exponential(base=5, cap=900, jitter="full")
    most = {1: 5, 4: 40, 30: 900}

    for attempt, seconds in most.items():
        delays = [policy.delay(attempt, None, draw / 50) for draw in range(50)]
        assert all(delay is not None and delay <= timedelta(seconds=seconds) for delay in delays)
        assert max(delay for delay in delays if delay is not None) > timedelta(seconds=seconds * 0.9)


async def test_an_idle_server_is_woken_by_a_new_job(app: App, client: Client) -> None:
    if not client.store.features.wakes_waiters:
        return
    seen: list[int] = []

    @app.job
    async def work(number: int) -> None:
        seen.append(number)

    async with serving(app):
        for number in range(3):
            await quiet(app)
            done = await client.enqueue("default", {"number": number}, kind="work")
            await ended(work.handle(done.id))

    assert seen == [0, 1, 2]


async def test_a_delayed_job_begins_at_its_time(app: App, clock: FakeClock) -> None:
    begun: list[float] = []

    @app.job
    async def work() -> None:
        begun.append(clock.monotonic())

    handle = await work.options(delay=10).enqueue()
    async with serving(app):
        await goes_by(app, clock, 9.5, step=0.5)
        assert begun == []
        await goes_by(app, clock, 0.5, step=0.05)
        await ended(handle)

    assert begun == [pytest.approx(10, abs=0.051)]


async def test_an_unknown_kind_is_left_alone_with_many_ahead(app: App, client: Client) -> None:
    @app.job
    async def known() -> None: ...

    ahead = await client.enqueue_many([NewJob("default", {}, kind="new", priority=1) for _ in range(300)])
    handle = await known.enqueue()
    async with serving(app):
        await ended(handle)

    job = await found(client, ahead[0].id)
    assert (job.state, job.attempt, job.delivery) == (State.PENDING, 0, 0)
    assert (await client.stats("default")).pending == 300


async def test_a_raw_job_is_left_alone_where_nobody_consumes_the_queue(app: App, client: Client) -> None:
    @app.job
    async def known() -> None: ...

    raw = await client.enqueue("default", b"raw")
    async with serving(app):
        await ended(await known.enqueue())

    assert (await found(client, raw.id)).delivery == 0


async def test_another_server_takes_what_one_does_not_know(open_app: OpenApp) -> None:
    old, new = open_app(name="old"), open_app(name="new")

    @new.job
    async def fresh() -> str:
        return "from the new one"

    @old.job
    async def stale() -> None: ...

    async with serving(old):
        handle = await fresh.enqueue()
        await quiet(old)
        assert (await handle.job()).delivery == 0
        async with serving(new):
            assert await soon(handle.result()) == "from the new one"


async def test_a_renamed_kind_works_on(app: App, client: Client) -> None:
    @app.job(aliases=["send_mail"])
    async def send_letter(to: str) -> str:
        return f"sent to {to}"

    old = await client.enqueue("default", {"to": "Ada"}, kind="send_mail")
    async with serving(app):
        assert await soon(send_letter.handle(old.id).result()) == "sent to Ada"


async def test_only_queues_that_are_named_are_worked(app: App) -> None:
    @app.job
    async def here() -> None: ...

    @app.job(queue="other")
    async def there() -> None: ...

    left, done = await there.enqueue(), await here.enqueue()
    async with serving(app, queues=["default"]):
        await ended(done)
        await quiet(app)

    assert (await left.job()).delivery == 0


async def test_a_paused_queue_is_not_worked_until_it_is_resumed(app: App, client: Client) -> None:
    @app.job
    async def here() -> None: ...

    @app.job(queue="paused")
    async def there() -> None: ...

    await client.pause("paused")
    async with serving(app):
        waiting, done = await there.enqueue(), await here.enqueue()
        await ended(done)
        await quiet(app)
        assert (await waiting.job()).delivery == 0

        await client.resume("paused")
        if client.store.features.wakes_waiters:
            await ended(waiting)


async def test_services_alone_work_no_job(app: App) -> None:
    @app.job
    async def work() -> None: ...

    handle = await work.enqueue()
    async with serving(app, concurrency=0):
        await quiet(app)

        assert (await handle.job()).state is State.PENDING


async def test_a_server_of_an_app_without_handlers_idles(app: App) -> None:
    async with serving(app) as server:
        await quiet(app)

        assert server.health().ready


async def test_a_job_whose_lease_runs_out_is_rescued_by_the_server(app: App, store: Store, clock: FakeClock) -> None:
    [lost] = await store.enqueue([a_job(kind="work")])
    await claim_one(store, lease=MINUTE)

    @app.job
    async def work() -> str:
        return "rescued"

    async with serving(app):
        await goes_by(app, clock, 66)
        handle = work.handle(lost.id)
        job = await stands(handle, State.SUCCEEDED)

    assert (job.attempt, job.delivery) == (2, 2)
    assert [each.outcome for each in job.history] == ["rescued", "succeeded"]
