import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.schedule.given import (
    JOB,
    SECOND,
    Noting,
    Without,
    a_client,
    a_declared,
    a_scheduler,
    comes_true,
    due_times,
)
from windlass import App, Server, ServerConfig
from windlass.client.client import Client
from windlass.core.looks import ServerRecord
from windlass.core.schedule import DueSchedules, Fired, FireOutcome, Firing
from windlass.schedule.declared import Declared
from windlass.schedule.scheduler import MOST_FIRING
from windlass.testing import FakeClock
from windlass.testing.clock import turns
from windlass.testing.conformance.given import a_schedule, written

HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(clock: FakeClock) -> AsyncIterator[Client]:
    async with a_client(clock) as client:
        yield client


@pytest.fixture
async def noting(client: Client) -> Noting:
    return Noting(client.store)


@pytest.fixture
async def noted(clock: FakeClock, noting: Noting) -> AsyncIterator[Client]:
    """A client on the store that keeps note."""
    async with a_client(clock, noting, seed=1) as client:
        yield client


async def test_it_sleeps_until_the_next_due_time_and_looks_no_more_than_it_must(
    client: Client, clock: FakeClock, noted: Client, noting: Noting
) -> None:
    await client.schedules.put("soon", 4, JOB)
    scheduler = a_scheduler(noted)
    await scheduler.start()
    await turns()
    looks = len(noting.looks)

    await clock.let_pass(3.999)
    assert len(noting.looks) == looks
    await clock.let_pass(0.001)

    # once for what is due, once for what comes next
    assert len(noting.looks) == looks + 2
    assert await due_times(client.store, "soon") == [clock.now()]
    await scheduler.stop()


@pytest.mark.parametrize(
    "config, wakes, seconds",
    [
        (ServerConfig(), True, 10.0),
        (ServerConfig(), False, 1.0),
        (ServerConfig(dead_after=12, heartbeat_interval=3), True, 4.0),
    ],
    ids=["woken by news", "without news", "soon taken for dead"],
)
async def test_it_looks_once_in_a_while_so_that_its_watch_has_no_break(
    *,
    clock: FakeClock,
    noted: Client,
    noting: Noting,
    config: ServerConfig,
    wakes: bool,
    seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    features = replace(noting.store.features, wakes_waiters=wakes)
    monkeypatch.setattr(noting, "features", features, raising=False)
    scheduler = a_scheduler(noted, config=config)
    await scheduler.start()
    await turns()
    looks = len(noting.looks)

    await clock.let_pass(5 * seconds)

    assert len(noting.looks) == looks + 5
    await scheduler.stop()


async def test_due_times_before_the_start_are_caught_up_and_those_after_it_made(
    client: Client, clock: FakeClock
) -> None:
    """A schedule is watched from the moment that `start` returns."""
    begun = clock.now()
    await client.schedules.put("beat", 1, JOB, catch_up="none")
    clock.advance(10)
    scheduler = a_scheduler(client)
    await scheduler.start()

    clock.advance(2)
    await turns()

    assert await due_times(client.store, "beat") == [begun + n * SECOND for n in (10, 11, 12)]
    await scheduler.stop()


async def test_what_passed_between_a_stop_and_the_next_start_is_down_time(client: Client, clock: FakeClock) -> None:
    begun = clock.now()
    await client.schedules.put("beat", 1, JOB, catch_up="none")
    scheduler = a_scheduler(client)
    await scheduler.start()
    await clock.let_pass(2)
    await scheduler.stop()

    clock.advance(5.5)
    await scheduler.start()
    await clock.let_pass(1)

    assert await due_times(client.store, "beat") == [begun + n * SECOND for n in (1, 2, 8)]
    await scheduler.stop()


def a_server(
    clock: FakeClock,
    name: str = "other#1",
    *,
    started: timedelta = HOUR,
    schedules: tuple[str, ...] = (),
    details: dict[str, str] | None = None,
) -> ServerRecord:
    at = clock.now() - started
    return ServerRecord(
        name, name, "host", 1, "0", started_at=at, seen_at=at, schedules=schedules, details=details or {}
    )


@pytest.mark.parametrize("declared", [[], [a_declared("beat", 1, catch_up="none")]], ids=["stored", "declared"])
async def test_a_newcomer_drops_nothing_that_another_server_may_be_about_to_fire(
    client: Client, clock: FakeClock, declared: list[Declared]
) -> None:
    """That one lives and looks a little late: these due times are not of down time."""
    begun = clock.now()
    await client.schedules.put("beat", 1, JOB, catch_up="none")
    clock.advance(3)
    await client.store.beat(a_server(clock, schedules=("beat",)))
    scheduler = a_scheduler(client, declared=declared)

    await scheduler.start()
    await turns()

    assert await due_times(client.store, "beat") == [begun + n * SECOND for n in (1, 2, 3)]
    await scheduler.stop()


async def test_a_newcomer_counts_on_a_server_whose_clock_is_an_hour_ahead(client: Client, clock: FakeClock) -> None:
    begun = clock.now()
    await client.schedules.put("beat", 1, JOB, catch_up="none")
    clock.advance(3)
    await client.store.beat(a_server(clock, started=-HOUR))
    scheduler = a_scheduler(client)

    await scheduler.start()
    await turns()

    assert await due_times(client.store, "beat") == [begun + n * SECOND for n in (1, 2, 3)]
    await scheduler.stop()


async def test_what_is_longer_due_than_a_server_can_be_late_was_missed_by_all(client: Client, clock: FakeClock) -> None:
    """A server is listed, and does not do its work."""
    begun = clock.now()
    await client.schedules.put("beat", 1, JOB, catch_up="none")
    clock.advance(59.5)
    await client.store.beat(a_server(clock))
    scheduler = a_scheduler(client)

    await scheduler.start()
    await turns()

    assert await due_times(client.store, "beat") == [begun + n * SECOND for n in range(50, 60)]
    await scheduler.stop()


async def test_a_newcomer_counts_on_nobody_who_could_not_have_fired(client: Client, clock: FakeClock) -> None:
    begun = clock.now()
    await client.store.beat(a_server(clock, "seen-too-long-ago#1"))
    clock.advance(20)
    for name in ("stored", "declared"):
        await client.schedules.put(name, 1, JOB)
    clock.advance(5.5)
    for record in (
        a_server(clock, "came-too-late#1", started=timedelta(seconds=0.2), schedules=("declared",)),
        a_server(clock, "fires-nothing#1", schedules=("declared",), details={"scheduling": "off"}),
        a_server(clock, "me#1", schedules=("declared",)),
    ):
        await client.store.beat(record)
    scheduler = a_scheduler(client, declared=[a_declared("declared", 1)])

    await scheduler.start()
    await turns()

    assert await due_times(client.store, "stored") == [begun + 25 * SECOND]
    assert await due_times(client.store, "declared") == [begun + 25 * SECOND]
    await scheduler.stop()


async def test_a_newcomer_counts_on_nobody_who_does_not_declare_the_schedule(client: Client, clock: FakeClock) -> None:
    begun = clock.now()
    await client.schedules.put("beat", 1, JOB)
    clock.advance(5.5)
    await client.store.beat(a_server(clock, schedules=("another",)))
    scheduler = a_scheduler(client, declared=[a_declared("beat", 1)])

    await scheduler.start()
    await turns()

    assert await due_times(client.store, "beat") == [begun + 5 * SECOND]
    await scheduler.stop()


async def test_a_newcomer_fires_what_a_server_that_lives_is_late_with(
    client: Client, clock: FakeClock, noted: Client, noting: Noting
) -> None:
    begun = clock.now()
    await client.schedules.put("beat", 1, JOB, catch_up="none")
    late, newcomer = a_scheduler(noted, server_id="late#1"), a_scheduler(client)
    await client.store.beat(a_server(clock, "late#1", started=HOUR))
    await late.start()
    noting.go_on.clear()
    await clock.let_pass(3)

    await newcomer.start()
    await clock.let_pass(2)
    noting.go_on.set()
    await clock.let_pass(1)

    assert FireOutcome.LOST in noting.fired
    assert await due_times(client.store, "beat") == [begun + n * SECOND for n in range(1, 7)]
    await newcomer.stop()
    await late.stop()


async def test_rivals_that_lose_do_not_try_again(
    client: Client, clock: FakeClock, noted: Client, noting: Noting
) -> None:
    await client.schedules.put("beat", 1, JOB)
    rivals = [a_scheduler(noted, server_id=f"s{n}#1") for n in range(5)]
    for rival in rivals:
        await rival.start()

    await clock.let_pass(3)

    assert noting.fired.count(FireOutcome.DONE) == 3
    assert noting.fired.count(FireOutcome.LOST) == 12
    for rival in rivals:
        await rival.stop()


class Stubborn(Noting):
    """A store that lets nobody fire, and does not say why."""

    async def fire(self, firing: Firing) -> Fired:
        assert firing.jobs
        self.fired.append(FireOutcome.LOST)
        return Fired(FireOutcome.LOST)


async def test_a_refusal_that_nobody_else_explains_does_not_keep_the_store_busy(
    client: Client, clock: FakeClock
) -> None:
    stubborn = Stubborn(client.store)
    await client.schedules.put("beat", 1, JOB)
    async with a_client(clock, stubborn, seed=1) as refused:
        scheduler = a_scheduler(refused)
        await scheduler.start()

        await clock.let_pass(10)

        assert 8 <= len(stubborn.fired) <= 11
        assert len(stubborn.looks) <= 35
        await scheduler.stop()


class Deaf(Without):
    """A store that does not answer which schedules are due, so often."""

    times = 0

    async def due_schedules(self, declared: list[str], *, limit: int) -> DueSchedules:
        if self.times:
            self.times -= 1
            await asyncio.Event().wait()
        return await self.store.due_schedules(declared, limit=limit)


async def test_a_look_that_hangs_is_given_up_and_made_again(
    client: Client, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    begun = clock.now()
    await client.schedules.put("beat", 1, JOB)
    deaf = Deaf(client.store)
    async with a_client(clock, deaf, seed=1) as other:
        scheduler = a_scheduler(other)
        await scheduler.start()
        await clock.let_pass(2)
        deaf.times = 1

        await clock.let_pass(15)

        assert "scheduler failed 1 times in a row; it goes on" in caplog.text
        assert await due_times(client.store, "beat") == [begun + n * SECOND for n in range(1, 18)]
        await scheduler.stop()


async def test_more_than_can_fire_at_once_and_than_can_be_read_are_all_seen(
    client: Client, clock: FakeClock, noted: Client, noting: Noting, caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot fire is the longest due, and hides nobody behind it."""
    strange, good = 3 * MOST_FIRING, 2 * MOST_FIRING + 1
    for number in range(strange):
        await written(client.store, replace(a_schedule(f"odd-{number}", clock.now() - HOUR), rule="each blue moon"))
    for number in range(good):
        await written(client.store, a_schedule(f"good-{number}", clock.now()))
    scheduler = a_scheduler(noted)

    await scheduler.start()
    await turns()
    await turns()

    assert noting.fired.count(FireOutcome.DONE) == good
    told = [record for record in caplog.records if record.name == "windlass"]
    assert len(told) == strange
    assert {record.levelno for record in told} == {logging.ERROR}
    looks = len(noting.looks)
    await clock.let_pass(9)
    assert len(noting.looks) == looks
    await scheduler.stop()


async def test_a_stop_lets_what_is_on_its_way_arrive(
    client: Client, clock: FakeClock, noted: Client, noting: Noting
) -> None:
    await client.schedules.put("beat", 1, JOB, catch_up="none")
    scheduler = a_scheduler(noted)
    await scheduler.start()
    noting.go_on.clear()
    await clock.let_pass(1)
    await noting.held_up.wait()

    stopping = asyncio.ensure_future(scheduler.stop())
    await turns()
    noting.go_on.set()
    await stopping

    assert noting.fired == [FireOutcome.DONE]


async def test_a_stop_does_not_wait_long_for_what_hangs(
    clock: FakeClock, client: Client, noted: Client, noting: Noting
) -> None:
    await client.schedules.put("beat", 1, JOB)
    scheduler = a_scheduler(noted)
    await scheduler.start()
    noting.go_on.clear()
    await clock.let_pass(1)
    await noting.held_up.wait()

    stopping = asyncio.ensure_future(scheduler.stop())
    await clock.let_pass(0.5)
    await stopping

    assert noting.fired == []
    assert clock.waiting == 0


async def test_it_can_be_started_and_stopped_by_many_at_once(client: Client, clock: FakeClock) -> None:
    begun = clock.now()
    await client.schedules.put("beat", 1, JOB)
    scheduler = a_scheduler(client)

    await asyncio.gather(*[scheduler.start() for _ in range(5)])
    await clock.let_pass(2)
    await asyncio.gather(*[scheduler.stop() for _ in range(5)])

    assert not scheduler.running
    assert clock.waiting == 0
    assert await due_times(client.store, "beat") == [begun + SECOND, begun + 2 * SECOND]


@pytest.mark.slow
@pytest.mark.parametrize("url", ["memory://", "sqlite:///{}/jobs.db"])
async def test_a_job_comes_at_its_due_time_by_the_real_clock(url: str, tmp_path: Path) -> None:
    """The bound is a wide one: how late it is on an idle machine is a matter of the benchmarks."""
    app = App(url.format(tmp_path))
    async with app, Server(app, ServerConfig(concurrency=0)):
        await app.client.schedules.put("beat", 1, JOB)

        async def three_are_there() -> bool:
            return len(await due_times(app.client.store, "beat")) >= 3

        await comes_true(three_are_there)
        due = await due_times(app.client.store, "beat")
        jobs = await app.client.jobs()

    late = [job.created_at - at for job, at in zip(jobs, due, strict=False)]
    assert timedelta(0) <= min(late)
    assert sorted(late)[1] < timedelta(seconds=0.5)


async def test_a_damaged_schedule_makes_no_job_and_is_logged_once_while_others_fire(
    client: Client, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    due = a_schedule("damaged", next_run_at=clock.now())
    await client.store.write_schedule(replace(due, damage="headers is not JSON"), expected=None)
    await client.schedules.put("sound", 4, JOB)
    scheduler = a_scheduler(client)
    await scheduler.start()

    await clock.let_pass(12)

    assert len(await due_times(client.store, "sound")) == 3
    assert await due_times(client.store, "damaged") == []
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    why = "its stored record is damaged: headers is not JSON. Put it again, or update this server"
    assert told == [f"schedule 'damaged' cannot be read here and is left alone: {why}"]
    await scheduler.stop()
