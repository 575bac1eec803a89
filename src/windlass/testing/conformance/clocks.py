"""Clocks that are wrong: the store's own decides, and where that is set, no job is settled by two."""

import asyncio
from datetime import timedelta

import pytest

from windlass.app.app import App
from windlass.client.client import Client
from windlass.core.errors import LockLost
from windlass.core.job import NewJob
from windlass.core.retry import Fixed
from windlass.core.states import State
from windlass.core.store import Store
from windlass.engine.context import Context
from windlass.testing.conformance.fixtures import OpenApp, Woken, soon
from windlass.testing.conformance.given import HOUR, MINUTE, SECOND, claimed, found
from windlass.testing.conformance.schedule_driving import CAUGHT_UP, JOB, due_times, nothing_due
from windlass.testing.conformance.served import busy, ended, goes_by, quiet, serving, stands, until
from windlass.testing.conformance.stepped_clock import SteppedClock, WrongClock

LEASE = 30 * SECOND
"""How long a server holds a job, by default."""
STEADY = timedelta(0)


async def pass_by(app: App, clock: SteppedClock, seconds: float, *, step: float = 1.0) -> None:
    """Let time go by; no look or firing is left behind by a clock that is faster than the store."""
    for _ in range(round(seconds / step)):
        clock.advance(step)
        for _ in range(2):
            await quiet(app)


@pytest.mark.parametrize(
    "by, step",
    [(STEADY, STEADY), (HOUR, STEADY), (-HOUR, STEADY), (STEADY, -10 * MINUTE), (-HOUR, 2 * HOUR), (STEADY, None)],
    ids=["right", "ahead", "behind", "set back", "behind and set forward", "frozen"],
)
async def test_a_server_that_is_wrong_about_the_time_decides_the_same(
    *,
    open_app: OpenApp,
    client: Client,
    store: Store,
    clock: SteppedClock,
    by: timedelta,
    step: timedelta | None,
) -> None:
    """Its clock is wrong from the start, or is set or stands still in the middle of a lease."""
    wrong = WrongClock(clock, by)
    app = open_app(clock=wrong, retry=Fixed(20))
    begun = clock.now()

    @app.job(max_attempts=2)
    async def work(ctx: Context) -> None:
        await clock.sleep(45)
        if ctx.attempt == 1:
            raise RuntimeError("boom")

    async with serving(app):
        await app.client.schedules.put("beat", 10, NewJob("beats"), catch_up="none")
        handle = await work.options(delay=10).enqueue()
        await pass_by(app, clock, 9)
        assert (await handle.job()).state is State.SCHEDULED
        await pass_by(app, clock, 2)
        await stands(handle, State.RUNNING)

        wrong.freeze() if step is None else wrong.step(step)
        for _ in range(40):
            await pass_by(app, clock, 1)
            assert await client.rescue() == 0
            held_until = (await handle.job()).lease_expires_at
            assert held_until is not None
            assert LEASE / 2 < held_until - clock.now() <= LEASE
        await pass_by(app, clock, 75)
        job = await ended(handle)
        await nothing_due(store)

    first, second = job.history
    assert (first.outcome, second.outcome) == ("failed", "succeeded")
    assert first.ended_at is not None
    assert 10 * SECOND <= first.started_at - begun <= 11 * SECOND
    assert 20 * SECOND <= second.started_at - first.ended_at <= 21 * SECOND
    assert await due_times(store, "beat") == [begun + n * 10 * SECOND for n in range(1, 13)]


async def test_a_job_is_held_for_no_longer_than_its_lease_after_the_time_was_set_back(
    app: App, client: Client, clock: SteppedClock
) -> None:
    """The next renewal counts from the new time."""
    go = asyncio.Event()

    @app.job
    async def work() -> None:
        await go.wait()

    handle = await work.enqueue()
    async with serving(app):
        await stands(handle, State.RUNNING)
        await goes_by(app, clock, 5)

        clock.step(-5 * MINUTE)
        await goes_by(app, clock, 10)

        for _ in range(60):
            held_until = (await handle.job()).lease_expires_at
            assert held_until is not None
            assert STEADY < held_until - clock.now() <= LEASE
            assert await client.rescue() == 0
            await goes_by(app, clock, 1)
        go.set()
        job = await ended(handle)

    assert (job.state, job.delivery) == (State.SUCCEEDED, 1)


@pytest.mark.parametrize("by", [5 * MINUTE, HOUR], ids=["five minutes", "an hour"])
async def test_a_job_that_runs_while_the_time_leaps_is_settled_by_who_holds_it(
    app: App, client: Client, clock: SteppedClock, by: timedelta
) -> None:
    """The server renews, or gives up what it has lost."""
    go = asyncio.Event()
    told: list[tuple[int, str | None]] = []

    @app.job
    async def work(ctx: Context) -> int:
        waits = [asyncio.create_task(event.wait()) for event in (go, ctx.cancelled)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()
        told.append((ctx.delivery, ctx.cancelled.reason))
        return ctx.delivery

    handle = await work.enqueue()
    async with serving(app):
        await stands(handle, State.RUNNING)
        await goes_by(app, clock, 5)

        clock.step(by)
        await goes_by(app, clock, 15)
        running = await stands(handle, State.RUNNING)
        assert told == [(delivery, "claim_lost") for delivery in range(1, running.delivery)]
        go.set()

        assert await soon(handle.result()) == running.delivery

    assert running.delivery <= 2
    assert (await client.stats("default")).totals.succeeded == 1


async def test_a_server_that_slept_settles_nothing_that_another_one_took(
    app: App, client: Client, clock: SteppedClock
) -> None:
    """Its machine was suspended for an hour, and it ends its job as soon as it wakes."""
    go = asyncio.Event()
    over: list[int] = []

    @app.job
    async def work(ctx: Context) -> str:
        await go.wait()
        over.append(ctx.delivery)
        return "from the sleeper"

    handle = await work.enqueue()
    async with serving(app, concurrency=1) as server:
        await busy(server)
        # its only slot is taken: what is rescued goes to the other one
        clock.step(HOUR)
        assert await client.rescue() == 1
        taken = await claimed(client, "default")

        go.set()
        await until(lambda: over == [1])
        await quiet(app)
        assert (await found(client, handle.id)).state is State.RUNNING
        await client.ack(taken, "from the other one")

        assert await soon(handle.result()) == "from the other one"
        await goes_by(app, clock, 15)

    job = await found(client, handle.id)
    assert (over, [each.outcome for each in job.history]) == ([1], ["rescued", "succeeded"])


async def test_whoever_slept_with_a_lock_is_told_that_it_is_lost(
    client: Client, store: Store, clock: SteppedClock, woken: Woken
) -> None:
    with pytest.raises(LockLost):
        async with client.lock("l", 30) as held:
            await soon(clock.timers(1))
            clock.step(HOUR)
            assert await store.lock("l", "other", HOUR)

            clock.advance(10)
            await woken(held.lost.wait())


async def test_a_schedule_makes_no_due_time_twice_when_the_time_is_set_back(
    open_app: OpenApp, client: Client, store: Store, clock: SteppedClock
) -> None:
    """It waits until the clock shows its next time again, and drops none."""
    begun = clock.now()
    app = open_app()
    for catch_up in CAUGHT_UP:
        await client.schedules.put(catch_up, "* * * * *", JOB, catch_up=catch_up)
    async with serving(app, concurrency=0):
        await pass_by(app, clock, 180, step=5)

        clock.step(-5 * MINUTE)
        await pass_by(app, clock, 480, step=5)
        await nothing_due(store)

    for catch_up in CAUGHT_UP:
        assert await due_times(store, catch_up) == [begun + n * MINUTE for n in range(1, 7)]


@pytest.mark.parametrize("minutes", [5, 60])
async def test_a_leap_of_the_time_is_down_time_to_a_schedule(
    *,
    open_app: OpenApp,
    client: Client,
    store: Store,
    clock: SteppedClock,
    minutes: int,
) -> None:
    """A machine that was suspended could not have looked."""
    begun = clock.now()
    app = open_app()
    for catch_up in CAUGHT_UP:
        await client.schedules.put(catch_up, "* * * * *", JOB, catch_up=catch_up)
    async with serving(app, concurrency=0):
        await pass_by(app, clock, 60, step=5)

        clock.step(minutes * MINUTE)
        await pass_by(app, clock, 60, step=5)
        await nothing_due(store)

    last = minutes + 2
    assert await due_times(store, "none") == [begun + n * MINUTE for n in (1, last)]
    assert await due_times(store, "one") == [begun + n * MINUTE for n in (1, last - 1, last)]
    assert await due_times(store, "all") == [begun + n * MINUTE for n in range(1, last + 1)]
