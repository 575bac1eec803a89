"""A server makes the jobs of schedules: each due time once while it is there, and by `catch_up` when it was not."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from windlass.app.app import App
from windlass.client.client import Client
from windlass.core.job import NewJob
from windlass.core.schedule import DUE_AT
from windlass.core.store import Store
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenApp, soon
from windlass.testing.conformance.given import DAY, HOUR, MINUTE, SECOND, a_schedule, claimed, written
from windlass.testing.conformance.schedule_driving import (
    CAUGHT_UP,
    JOB,
    HangingStore,
    LookedAt,
    answered,
    by_the_second,
    due_times,
    fires_by_itself,
    jobs_of,
    moved_on,
    nothing_due,
    stored,
)
from windlass.testing.conformance.served import FailingStore, quiet, serving, until, working


async def test_a_server_makes_a_job_at_each_due_time(app: App, client: Client, store: Store, clock: FakeClock) -> None:
    begun = clock.now()
    async with serving(app, concurrency=0):
        await client.schedules.put("each-minute", "* * * * *", JOB)
        await client.schedules.put("beat", 7, NewJob("other"))

        await by_the_second(store, clock, 181)

    assert await due_times(store, "each-minute") == [begun + n * MINUTE for n in (1, 2, 3)]
    assert await due_times(store, "beat") == [begun + 7 * n * SECOND for n in range(1, 26)]


async def test_a_job_of_a_schedule_is_run_and_knows_where_it_comes_from(
    app: App, client: Client, store: Store, clock: FakeClock
) -> None:
    begun, told = clock.now(), asyncio.Event()

    @app.job
    async def greet(name: str) -> None:
        assert name == "ada"
        told.set()

    async with serving(app):
        await client.schedules.put("greeting", "* * * * *", greet.call("ada"))
        await quiet(app)
        clock.advance(MINUTE)
        await soon(told.wait())

    [job] = await jobs_of(store, "greeting")
    assert (job.schedule_id, job.kind, job.run_at) == ("greeting", "greet", begun + MINUTE)
    assert job.headers == {DUE_AT: "2026-01-01T12:01:00+00:00"}
    schedule = await stored(client, "greeting")
    assert (schedule.last_run_at, schedule.last_job_id) == (begun + MINUTE, job.id)
    assert schedule.next_run_at == begun + 2 * MINUTE


async def test_a_schedule_that_is_put_while_the_server_sleeps_comes_at_its_time(
    app: App, client: Client, store: Store, clock: FakeClock
) -> None:
    if not store.features.wakes_waiters:
        return
    async with serving(app, concurrency=0):
        await client.schedules.put("daily", "0 12 * * *", JOB)
        await quiet(app)
        await client.schedules.put("beat", 2, JOB)
        begun = clock.now()

        await by_the_second(store, clock, 5)

    assert await due_times(store, "beat") == [begun + 2 * SECOND, begun + 4 * SECOND]


@pytest.mark.parametrize("down_for", [MINUTE, DAY, 7 * DAY], ids=["a minute", "a day", "a week"])
@pytest.mark.parametrize(
    "rule, every",
    [("* * * * * *", SECOND), ("* * * * *", MINUTE), ("0 12 * * *", DAY), (5 * MINUTE, 5 * MINUTE)],
    ids=["each second", "each minute", "daily", "interval"],
)
async def test_what_is_made_after_down_time_is_as_catch_up_says(
    *,
    app: App,
    client: Client,
    store: Store,
    clock: FakeClock,
    rule: str | timedelta,
    every: timedelta,
    down_for: timedelta,
) -> None:
    """From a minute to a week."""
    begun = clock.now()
    for catch_up in CAUGHT_UP:
        await client.schedules.put(catch_up, rule, JOB, catch_up=catch_up)

    clock.advance(down_for + SECOND / 2)
    async with serving(app, concurrency=0):
        await nothing_due(store)

    passed = [begun + n * every for n in range(1, (down_for + SECOND / 2) // every + 1)]
    assert await due_times(store, "none") == []
    assert await due_times(store, "one") == passed[-1:]
    assert await due_times(store, "all") == passed[-100:]
    for catch_up in CAUGHT_UP:
        assert (await stored(client, catch_up)).next_run_at == begun + (len(passed) + 1) * every


async def test_catching_up_is_told_in_one_line(
    app: App, client: Client, store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "windlass")
    await client.schedules.put("beat", 1, JOB)

    clock.advance(HOUR)
    async with serving(app, concurrency=0):
        await nothing_due(store)
        await until(lambda: any("'beat'" in record.getMessage() for record in caplog.records))
        await by_the_second(store, clock, 3)

    [line] = [record.getMessage() for record in caplog.records if "'beat'" in record.getMessage()]
    assert line == (
        "schedule 'beat' was due since 2026-01-01 12:00:01+00:00 and no server was there: jobs made for that time: "
        "1, as catch_up='one' says, and the due times before are dropped"
    )


async def test_a_server_that_did_not_look_for_an_hour_was_down(
    open_app: OpenApp, new_store: Callable[[], Store], client: Client, store: Store, clock: FakeClock
) -> None:
    """A machine that sleeps, or a loop that stands still for longer than `dead_after`."""
    fires_by_itself(store)
    begun = clock.now()
    looked_at = LookedAt(new_store())
    for catch_up in CAUGHT_UP:
        await client.schedules.put(catch_up, "* * * * *", JOB, catch_up=catch_up)
    async with serving(open_app(url=looked_at), concurrency=0):
        await looked_at.left_alone(after=2)
        await answered()

        # in one leap: nothing runs meanwhile
        clock.advance(HOUR + SECOND)
        await nothing_due(store)
        assert await due_times(store, "one") == [begun + HOUR]
        assert await due_times(store, "none") == []
        assert await due_times(store, "all") == [begun + n * MINUTE for n in range(1, 61)]

        await by_the_second(store, clock, 60)
        assert await due_times(store, "none") == [begun + HOUR + MINUTE]


async def test_a_look_that_comes_late_makes_a_job_for_each_due_time(
    open_app: OpenApp, new_store: Callable[[], Store], client: Client, store: Store, clock: FakeClock
) -> None:
    """The server was there all the time: none of them is down time."""
    fires_by_itself(store)
    begun = clock.now()
    looked_at = LookedAt(new_store())
    await client.schedules.put("beat", 1, JOB, catch_up="none")
    async with serving(open_app(url=looked_at), concurrency=0):
        await looked_at.left_alone(after=2)
        await answered()

        clock.advance(50)
        await nothing_due(store)

    assert await due_times(store, "beat") == [begun + n * SECOND for n in range(1, 51)]


async def test_what_was_due_during_a_pause_is_never_caught_up(
    app: App, client: Client, store: Store, clock: FakeClock
) -> None:
    begun = clock.now()
    async with serving(app, concurrency=0):
        await client.schedules.put("beat", 10, JOB, catch_up="all")
        await by_the_second(store, clock, 10)
        await client.schedules.pause("beat")
        await by_the_second(store, clock, 30)
        await client.schedules.resume("beat")

        await by_the_second(store, clock, 15)

    assert await due_times(store, "beat") == [begun + 10 * SECOND, begun + 50 * SECOND]


async def test_a_run_that_is_asked_for_moves_nothing(app: App, client: Client, store: Store, clock: FakeClock) -> None:
    begun = clock.now()
    async with serving(app, concurrency=0):
        await client.schedules.put("beat", 10, JOB)
        await by_the_second(store, clock, 5)
        asked_for = await client.schedules.run_now("beat")
        await by_the_second(store, clock, 15)

    jobs = await jobs_of(store, "beat")
    assert [job.headers.get(DUE_AT) for job in jobs] == [
        None,
        *((begun + n * SECOND).isoformat() for n in (10, 20)),
    ]
    assert jobs[0].id == asked_for.id


async def test_no_job_is_made_while_the_last_one_is_unfinished_if_they_may_not_overlap(
    app: App, client: Client, store: Store, clock: FakeClock
) -> None:
    begun = clock.now()
    async with serving(app, concurrency=0):
        await client.schedules.put("beat", 10, JOB, overlap="skip")
        await by_the_second(store, clock, 35)
        assert await due_times(store, "beat") == [begun + 10 * SECOND]

        claim = await claimed(client, "default", lease=300)
        await by_the_second(store, clock, 10)
        assert await due_times(store, "beat") == [begun + 10 * SECOND]

        await client.ack(claim)
        await by_the_second(store, clock, 10)
        assert await due_times(store, "beat") == [begun + 10 * SECOND, begun + 50 * SECOND]


async def test_a_declared_schedule_fires_only_while_a_server_declares_it(
    app: App, open_app: OpenApp, client: Client, store: Store, clock: FakeClock
) -> None:
    begun = clock.now()
    other = open_app()

    @app.every(10, id="tidy")
    @app.job
    async def tidy() -> None: ...

    async with serving(other, concurrency=0):
        async with serving(app, concurrency=0):
            assert not (await stored(client, "tidy")).orphaned
            await by_the_second(store, clock, 10, "tidy")
        left_alone = (await stored(client, "tidy")).orphaned
        for _ in range(35):
            clock.advance(1)
            await quiet(other)
        assert await due_times(store, "tidy") == [begun + 10 * SECOND]

        async with serving(app, concurrency=0):
            await nothing_due(store, "tidy")
            assert not (await stored(client, "tidy")).orphaned

    assert left_alone
    assert await due_times(store, "tidy") == [begun + 10 * SECOND, begun + 40 * SECOND]


async def test_the_schedules_of_an_app_are_there_when_its_server_has_started(
    app: App, client: Client, store: Store
) -> None:
    @app.every("0 3 * * *", timezone="Europe/Berlin", args={"days": 7}, overlap="skip", catch_up="none")
    @app.job(queue="night", max_attempts=5, priority=7)
    async def tidy(days: int) -> None: ...

    async with serving(app, concurrency=0):
        first = await stored(client, "tidy")
        [record] = await working(store)
    async with serving(app, concurrency=0):
        again = await stored(client, "tidy")

    assert (first.rule, first.timezone, first.overlap, first.catch_up) == ("0 3 * * *", "Europe/Berlin", "skip", "none")
    assert (first.queue, first.kind, first.payload) == ("night", "tidy", b'{"days":7}')
    assert (first.max_attempts, first.priority, first.declared) == (5, 7, True)
    assert record.schedules == ("tidy",)
    assert again == first


async def test_a_server_without_schedules_declares_and_fires_none(
    app: App, client: Client, store: Store, clock: FakeClock
) -> None:
    @app.every(1)
    @app.job
    async def tidy() -> None: ...

    async with serving(app, concurrency=0, schedules=False):
        await client.schedules.put("beat", 1, JOB)
        clock.advance(30)
        await quiet(app)
        [record] = await working(store)

    assert record.schedules == ()
    assert [schedule.id for schedule in await client.schedules.list()] == ["beat"]
    assert await due_times(store, "beat") == []


async def test_a_schedule_whose_firing_hangs_stops_no_other(
    *,
    open_app: OpenApp,
    new_store: Callable[[], Store],
    client: Client,
    store: Store,
    clock: FakeClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fires_by_itself(store)
    begun = clock.now()
    hanging = HangingStore(new_store())
    hanging.hangs.add("stuck")
    await client.schedules.put("stuck", 1, JOB)
    await client.schedules.put("beat", 1, JOB)

    async with serving(open_app(url=hanging), concurrency=0):
        for _ in range(25):
            clock.advance(1)
            await moved_on(store, "beat")
        assert await due_times(store, "beat") == [begun + n * SECOND for n in range(1, 26)]
        assert await due_times(store, "stuck") == []

        hanging.hangs.clear()
        for _ in range(12):
            clock.advance(1)
            await moved_on(store, "beat")
        await nothing_due(store)

    assert 1 < len(hanging.hung) <= 3
    assert (
        "schedule 'stuck' failed to fire 1 times in a row; it is tried again: the store has not answered" in caplog.text
    )
    assert await due_times(store, "beat") == [begun + n * SECOND for n in range(1, 38)]
    assert await due_times(store, "stuck") == [begun + n * SECOND for n in range(1, 38)]


@pytest.mark.parametrize("call", ["due_schedules", "fire"])
async def test_schedules_go_on_by_themselves_when_the_store_is_back(
    *,
    open_app: OpenApp,
    new_store: Callable[[], Store],
    client: Client,
    store: Store,
    clock: FakeClock,
    call: str,
) -> None:
    fires_by_itself(store)
    begun = clock.now()
    failing = FailingStore(new_store())
    app = open_app(url=failing)
    await client.schedules.put("beat", 1, JOB)
    async with serving(app, concurrency=0):
        await by_the_second(store, clock, 3)
        failing.failing[call] = 4
        while failing.failed.get(call, 0) < 4 or (await store.due_schedules((), limit=1)).due:
            clock.advance(1)
            await quiet(app)
            # looks go by a door of their own, which has its own pace
            await asyncio.sleep(0.01)
        await by_the_second(store, clock, 5)

    seconds = round((clock.now() - begun).total_seconds())
    assert failing.failed[call] == 4
    assert 10 < seconds < 60
    assert await due_times(store, "beat") == [begun + n * SECOND for n in range(1, seconds + 1)]


async def test_a_schedule_that_cannot_be_read_stops_no_other_and_is_told_of_each_minute(
    app: App, client: Client, store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    begun = clock.now()
    await client.schedules.put("beat", 1, JOB)
    strange: dict[str, Any] = {"rule": "each blue moon", "timezone": "Mars/Olympus"}
    for field, value in strange.items():
        await written(store, replace(a_schedule(f"odd-{field}", begun), **{field: value}))

    async with serving(app, concurrency=0):
        for _ in range(130):
            clock.advance(1)
            await moved_on(store, "beat")

    assert await due_times(store, "beat") == [begun + n * SECOND for n in range(1, 131)]
    told = [record.getMessage() for record in caplog.records if "cannot be read here" in record.getMessage()]
    assert {line.split(" ")[1]: told.count(line) for line in told} == {"'odd-rule'": 3, "'odd-timezone'": 3}


async def test_more_schedules_than_fire_at_once_all_fire(
    app: App, client: Client, store: Store, clock: FakeClock
) -> None:
    for number in range(350):
        await written(store, a_schedule(f"s{number}", clock.now() + 5 * SECOND))

    async with serving(app, concurrency=0):
        clock.advance(5)
        await nothing_due(store)

    assert (await client.stats("default")).pending == 350


async def test_a_killed_server_is_followed_by_one_that_catches_up(
    open_app: OpenApp, client: Client, store: Store, clock: FakeClock
) -> None:
    begun = clock.now()
    async with serving(open_app(), concurrency=0) as killed:
        await client.schedules.put("beat", 10, JOB)
        await by_the_second(store, clock, 25)
        await soon(killed.crash())

    clock.advance(10)
    async with serving(open_app(), concurrency=0):
        await nothing_due(store)
        await by_the_second(store, clock, 10)

    assert await due_times(store, "beat") == [begun + n * 10 * SECOND for n in (1, 2, 3, 4)]
