import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

import windlass
from windlass import (
    PRIORITY_HIGH,
    App,
    Client,
    ClientClosed,
    InvalidName,
    InvalidValue,
    Job,
    JobFilter,
    NewJob,
    PayloadTooLarge,
    QueueSettings,
    Schedule,
    ScheduleNotFound,
    State,
    StoreUnavailable,
    Unique,
)
from windlass.client.schedules import TRIES, put_schedule
from windlass.client.wanted import checked_terms, wanted
from windlass.core.looks import ServerRecord
from windlass.core.schedule import DUE_AT, Fired, Firing, prepared
from windlass.core.store import Store
from windlass.testing import FakeClock

NOW = datetime(2026, 3, 2, 10, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOURLY = "0 * * * *"
NO_MAPPING: Any = 5


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW)


@pytest.fixture
async def client(new_store: Callable[[], Store], clock: FakeClock) -> AsyncIterator[Client]:
    queues = {"reports": QueueSettings(priority=7, max_attempts=9)}
    async with windlass.connect(new_store(), clock=clock, queues=queues, max_payload=1_000) as client:
        yield client


async def the_schedule(client: Client, id: str = "nightly") -> Schedule:
    schedule = await client.schedules.get(id)
    assert schedule is not None
    return schedule


async def jobs_of(client: Client, id: str = "nightly") -> list[Job]:
    return await client.jobs(JobFilter(schedule_id=id))


async def fire_now(client: Client, schedule: Schedule, next_run_at: datetime) -> Fired:
    """Do what a server does at a due time."""
    assert schedule.next_run_at is not None
    job = prepared(schedule, client.preparer.new_id(), schedule.next_run_at)
    return await client.store.fire(
        Firing(schedule.id, schedule.revision, [job], tick=schedule.next_run_at, next_run_at=next_run_at)
    )


class Busy:
    """A store on which somebody else changes every schedule before each write, so many times."""

    def __init__(self, store: Store, times: int) -> None:
        self._store = store
        self.left = times

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the store's own
        return getattr(self._store, name)

    async def write_schedule(self, schedule: Schedule, *, expected: int | None) -> int | None:
        await self._meddle(schedule.id)
        return await self._store.write_schedule(schedule, expected=expected)

    async def fire(self, firing: Firing) -> Fired:
        await self._meddle(firing.schedule_id)
        return await self._store.fire(firing)

    async def _meddle(self, schedule_id: str) -> None:
        if self.left:
            self.left -= 1
            _, [found] = await self._store.schedules([schedule_id])
            changed = replace(found, headers={"turn": str(self.left)})
            assert await self._store.write_schedule(changed, expected=found.revision) is not None


def beset(client: Client, times: int) -> Busy:
    busy = Busy(client.store, times)
    beset: Any = client
    beset.store = beset._ready = busy
    return busy


async def test_a_put_keeps_a_schedule_with_the_first_due_time_from_now(client: Client) -> None:
    job = NewJob("reports", {"day": 1}, kind="report", headers={"a": "b"}, tenant="acme")

    put = await client.schedules.put("nightly", "30 2 * * *", job, timezone="Europe/Berlin", overlap="skip")

    assert put == await the_schedule(client)
    assert put == Schedule(
        id="nightly",
        rule="30 2 * * *",
        timezone="Europe/Berlin",
        queue="reports",
        kind="report",
        payload=b'{"day":1}',
        codec="json",
        headers={"a": "b"},
        tenant="acme",
        priority=7,
        max_attempts=9,
        overlap="skip",
        next_run_at=datetime(2026, 3, 3, 1, 30, tzinfo=UTC),
        revision=put.revision,
    )


@pytest.mark.parametrize("rule", [timedelta(minutes=5), 300, 300.0, "every 300s"])
async def test_an_interval_begins_one_interval_from_now(client: Client, rule: str | timedelta | float) -> None:
    put = await client.schedules.put("poll", rule, NewJob("mail"))

    assert (put.rule, put.next_run_at) == ("every 300s", NOW + timedelta(minutes=5))


async def test_what_the_job_says_goes_over_the_settings_of_its_queue(client: Client) -> None:
    put = await client.schedules.put("nightly", HOURLY, NewJob("reports", priority=PRIORITY_HIGH, max_attempts=2))

    assert (put.priority, put.max_attempts) == (PRIORITY_HIGH, 2)


async def test_a_call_of_a_handler_is_taken_for_its_job(clock: FakeClock) -> None:
    async with App("memory://", clock=clock, tenant=lambda: "acme") as app:

        @app.job(queue="email", max_attempts=5)
        async def send(user_id: int) -> None: ...

        put = await app.client.schedules.put("daily", "@daily", send.call(42))

        assert (put.queue, put.kind, put.payload, put.codec) == ("email", "send", b'{"user_id":42}', "json")
        assert (put.max_attempts, put.tenant) == (5, "acme")


async def test_the_same_rule_keeps_the_next_run_also_an_overdue_one(client: Client, clock: FakeClock) -> None:
    # where each queue is for itself it stays in its own
    queue = "other" if client.store.features.atomic_across_queues else "reports"
    first = await client.schedules.put("nightly", "@hourly", NewJob("reports"))
    clock.advance(3 * 60 * MINUTE)

    again = await client.schedules.put("nightly", HOURLY, NewJob(queue, b"new"), catch_up="all", overlap="skip")

    assert again.next_run_at == first.next_run_at == datetime(2026, 3, 2, 11, tzinfo=UTC)
    assert (again.rule, again.queue, again.payload) == (HOURLY, queue, b"new")
    assert (again.catch_up, again.overlap) == ("all", "skip")


@pytest.mark.parametrize(
    "rule, timezone, next_run_at",
    [
        ("15 * * * *", "UTC", datetime(2026, 3, 2, 13, 15, tzinfo=UTC)),
        (HOURLY, "Asia/Kolkata", datetime(2026, 3, 2, 13, 30, tzinfo=UTC)),
        (90, "UTC", datetime(2026, 3, 2, 13, 1, 30, tzinfo=UTC)),
    ],
)
async def test_another_rule_or_time_zone_begins_from_now(
    client: Client, clock: FakeClock, rule: str | float, timezone: str, next_run_at: datetime
) -> None:
    await client.schedules.put("nightly", HOURLY, NewJob("reports"))
    clock.advance(150 * MINUTE)

    again = await client.schedules.put("nightly", rule, NewJob("reports"), timezone=timezone)

    assert again.next_run_at == next_run_at


async def test_a_put_over_a_rule_that_cannot_be_read_begins_from_now(client: Client) -> None:
    put = await client.schedules.put("nightly", HOURLY, NewJob("reports"))
    unknown = replace(put, rule="at the full moon", next_run_at=NOW)
    await client.store.write_schedule(unknown, expected=put.revision)

    again = await client.schedules.put("nightly", HOURLY, NewJob("reports"))

    assert again.next_run_at == datetime(2026, 3, 2, 11, tzinfo=UTC)


async def test_a_put_keeps_the_pause_and_what_was_done_last(client: Client, clock: FakeClock) -> None:
    put = await client.schedules.put("nightly", HOURLY, NewJob("reports"))
    clock.advance(30 * MINUTE)
    fired = await fire_now(client, put, NOW + 90 * MINUTE)
    await client.schedules.pause("nightly")

    again = await client.schedules.put("nightly", "15 * * * *", NewJob("reports"))

    assert again.paused
    assert (again.last_run_at, again.last_job_id) == (put.next_run_at, fired.job_id)
    assert again == await the_schedule(client)


async def test_a_put_that_changes_nothing_writes_nothing(client: Client) -> None:
    first = await client.schedules.put("nightly", HOURLY, NewJob("reports", {"day": 1}, headers={"a": "b"}))

    again = await client.schedules.put("nightly", HOURLY, NewJob("reports", {"day": 1}, headers={"a": "b"}))

    assert again == first


async def test_ten_servers_that_declare_the_same_at_once_write_it_once(client: Client) -> None:
    terms = checked_terms(HOURLY, timezone="UTC", catch_up="one", overlap="allow")
    asked_for = wanted("nightly", terms, NewJob("reports"), client.preparer)

    puts = await asyncio.gather(*[put_schedule(client.store, asked_for, declared=True) for _ in range(10)])

    assert puts == [puts[0]] * 10
    assert puts[0].declared


async def test_a_put_at_run_time_takes_a_declared_schedule_over(client: Client) -> None:
    terms = checked_terms(HOURLY, timezone="UTC", catch_up="one", overlap="allow")
    asked_for = wanted("nightly", terms, NewJob("reports"), client.preparer)
    declared = await put_schedule(client.store, asked_for, declared=True)

    put = await client.schedules.put("nightly", HOURLY, NewJob("reports"))

    assert put == replace(declared, declared=False, revision=put.revision)


async def test_many_who_put_at_once_all_get_through(client: Client) -> None:
    rules = [f"{minute} * * * *" for minute in range(30)]

    await asyncio.gather(*[client.schedules.put("nightly", rule, NewJob("reports")) for rule in rules])

    assert (await the_schedule(client)).rule in rules


async def test_whoever_is_overtaken_looks_again_and_loses_nothing(client: Client) -> None:
    await client.schedules.put("nightly", HOURLY, NewJob("reports"))
    busy = beset(client, 3)

    await client.schedules.pause("nightly")

    schedule = await the_schedule(client)
    assert (busy.left, schedule.paused, schedule.headers) == (0, True, {"turn": "0"})


@pytest.mark.parametrize("call", ["put", "pause", "run_now"])
async def test_whoever_is_always_overtaken_says_so_in_the_end(client: Client, call: str) -> None:
    await client.schedules.put("nightly", HOURLY, NewJob("reports"))
    beset(client, 1_000_000)
    arguments: list[Any] = ["nightly", "5 * * * *", NewJob("reports")] if call == "put" else ["nightly"]

    with pytest.raises(StoreUnavailable, match=f"'nightly' was changed by others {TRIES} times") as raised:
        await getattr(client.schedules, call)(*arguments)

    assert raised.value.retryable
    assert await jobs_of(client) == []


async def test_what_is_removed_is_gone_and_its_jobs_stay(client: Client) -> None:
    await client.schedules.put("nightly", HOURLY, NewJob("reports"))
    await client.schedules.run_now("nightly")

    removed = await client.schedules.remove("nightly")

    assert removed
    assert await client.schedules.get("nightly") is None
    assert not await client.schedules.remove("nightly")
    assert len(await jobs_of(client)) == 1


async def test_a_pause_keeps_the_next_run_and_is_harmless_twice(client: Client) -> None:
    put = await client.schedules.put("nightly", HOURLY, NewJob("reports"))

    await client.schedules.pause("nightly")
    once = await the_schedule(client)
    await client.schedules.pause("nightly")

    assert once == replace(put, paused=True, revision=once.revision)
    assert await the_schedule(client) == once


async def test_a_resume_goes_on_with_the_first_due_time_from_now(client: Client, clock: FakeClock) -> None:
    put = await client.schedules.put("nightly", HOURLY, NewJob("reports"))
    await client.schedules.pause("nightly")
    clock.advance(24 * 60 * MINUTE)

    await client.schedules.resume("nightly")

    schedule = await the_schedule(client)
    assert schedule == replace(put, next_run_at=datetime(2026, 3, 3, 11, tzinfo=UTC), revision=schedule.revision)


async def test_a_resume_of_what_is_not_paused_moves_nothing(client: Client, clock: FakeClock) -> None:
    put = await client.schedules.put("nightly", HOURLY, NewJob("reports"))
    clock.advance(24 * 60 * MINUTE)

    await client.schedules.resume("nightly")

    assert await the_schedule(client) == put


async def test_a_put_during_a_pause_is_not_caught_up_either(client: Client, clock: FakeClock) -> None:
    await client.schedules.put("nightly", HOURLY, NewJob("reports"))
    await client.schedules.pause("nightly")
    clock.advance(24 * 60 * MINUTE)
    await client.schedules.put("nightly", HOURLY, NewJob("reports"))

    await client.schedules.resume("nightly")

    assert (await the_schedule(client)).next_run_at == datetime(2026, 3, 3, 11, tzinfo=UTC)


@pytest.mark.parametrize("paused", [False, True])
async def test_run_now_makes_one_job_and_moves_nothing(client: Client, clock: FakeClock, *, paused: bool) -> None:
    job = NewJob("reports", {"day": 1}, kind="report", headers={"a": "b"}, tenant="acme", priority=3, max_attempts=2)
    await client.schedules.put("nightly", HOURLY, job)
    if paused:
        await client.schedules.pause("nightly")
    before = await the_schedule(client)
    clock.advance(MINUTE)

    done = await client.schedules.run_now("nightly")

    [made] = await jobs_of(client)
    after = await the_schedule(client)
    assert (done.id, done.created) == (made.id, True)
    assert (made.queue, made.kind, made.payload, made.codec) == ("reports", "report", b'{"day":1}', "json")
    assert (made.headers, made.tenant, made.priority, made.max_attempts) == ({"a": "b"}, "acme", 3, 2)
    assert (made.state, made.run_at) == (State.PENDING, NOW + MINUTE)
    assert after == replace(before, last_job_id=made.id, revision=after.revision)


async def test_run_now_twice_makes_two_jobs(client: Client) -> None:
    await client.schedules.put("nightly", HOURLY, NewJob("reports"))

    both = [await client.schedules.run_now("nightly") for _ in range(2)]

    assert [done.created for done in both] == [True, True]
    assert len(await jobs_of(client)) == 2


async def test_run_now_is_one_job_however_often_it_is_overtaken(client: Client) -> None:
    await client.schedules.put("nightly", HOURLY, NewJob("reports"))
    beset(client, 3)

    done = await client.schedules.run_now("nightly")

    assert [job.id for job in await jobs_of(client)] == [done.id]


async def test_run_now_gives_the_unfinished_job_where_it_is_not_to_overlap(client: Client) -> None:
    await client.schedules.put("nightly", HOURLY, NewJob("reports"), overlap="skip")
    first = await client.schedules.run_now("nightly")

    second = await client.schedules.run_now("nightly")
    claim = await client.claim("reports")
    assert claim is not None
    await client.ack(claim)
    third = await client.schedules.run_now("nightly")

    assert (second.id, second.created) == (first.id, False)
    assert third.created
    assert third.id != first.id


async def test_a_job_for_a_due_time_says_which(client: Client, clock: FakeClock) -> None:
    put = await client.schedules.put("nightly", HOURLY, NewJob("reports", headers={"a": "b"}))
    clock.advance(30 * MINUTE)

    await fire_now(client, put, NOW + 90 * MINUTE)

    [job] = await jobs_of(client)
    assert job.headers == {"a": "b", DUE_AT: "2026-03-02T11:00:00+00:00"}


@pytest.mark.parametrize("call", ["pause", "resume", "run_now"])
async def test_an_unknown_schedule_is_said_with_a_close_name(client: Client, call: str) -> None:
    await client.schedules.put("nightly", HOURLY, NewJob("reports"))

    with pytest.raises(ScheduleNotFound, match="no schedule 'nihgtly' here: did you mean 'nightly'") as raised:
        await getattr(client.schedules, call)("nihgtly")

    assert raised.value.schedule_id == "nihgtly"


async def test_schedules_are_listed_in_order_of_their_ids(client: Client) -> None:
    for name in ("b", "a", "B", "a/1"):
        await client.schedules.put(name, HOURLY, NewJob("reports"))

    listed = await client.schedules.list()

    assert [schedule.id for schedule in listed] == sorted(["b", "a", "B", "a/1"])
    assert listed[0] == await client.schedules.get(listed[0].id)


async def test_nothing_is_listed_where_there_is_none(client: Client) -> None:
    assert await client.schedules.list() == []
    assert await client.schedules.get("nightly") is None


def a_server(client: Client, *schedules: str) -> ServerRecord:
    now = client.clock.now()
    return ServerRecord(f"a#{uuid4()}", "a", "host", 1, "1", started_at=now, seen_at=now, schedules=schedules)


async def test_what_no_live_server_declares_is_orphaned(client: Client, clock: FakeClock) -> None:
    terms = checked_terms(HOURLY, timezone="UTC", catch_up="one", overlap="allow")
    for name in ("known", "unknown"):
        await put_schedule(client.store, wanted(name, terms, NewJob("reports"), client.preparer), declared=True)
    await client.schedules.put("mine", HOURLY, NewJob("reports"))
    await client.store.beat(a_server(client, "known"))

    with_a_server = {each.id: each.orphaned for each in await client.schedules.list()}
    clock.advance(61)
    without = {each.id: each.orphaned for each in await client.schedules.list()}

    assert with_a_server == {"known": False, "unknown": True, "mine": False}
    assert without == {"known": True, "unknown": True, "mine": False}
    assert (await the_schedule(client, "known")).orphaned


async def test_an_orphan_is_not_written_as_one(client: Client) -> None:
    terms = checked_terms(HOURLY, timezone="UTC", catch_up="one", overlap="allow")
    asked_for = wanted("known", terms, NewJob("reports"), client.preparer)
    declared = await put_schedule(client.store, asked_for, declared=True)
    await client.schedules.pause("known")
    await client.schedules.resume("known")
    await client.store.beat(a_server(client, "known"))

    again = await put_schedule(client.store, asked_for, declared=True)

    assert replace(again, revision=declared.revision) == declared
    assert not (await the_schedule(client, "known")).orphaned


REFUSED_JOBS = [
    (NewJob("reports", id=uuid4()), "has no id: each of its jobs"),
    (NewJob("reports", run_at=NOW), "has no run_at: its rule says when"),
    (NewJob("reports", delay=0), "has no delay: its rule says when"),
    (NewJob("reports", unique="key"), "has no unique: with overlap='skip'"),
    (NewJob("reports", unique=Unique("key")), "has no unique: with overlap='skip'"),
    (NewJob("reports", kv={b"key": b"value"}), "has no kv: let the job write it"),
    (NewJob("reports", headers={DUE_AT: "now"}), "'windlass-due-at' is written by schedules"),
    (NewJob("reports", headers=NO_MAPPING), "headers are a mapping"),
    (NewJob(""), "queue '' is empty"),
    (NewJob("reports", kind="a b"), "kind 'a b' has the character ' '"),
    (NewJob("reports", priority=-1), "priority must be from 0"),
    (None, "is a NewJob, or a call of a handler, handler.call(...), not NoneType"),
    ("reports", "not str"),
    (lambda: None, "not function"),
    (NewJob, "not type"),
]


@pytest.mark.parametrize("job, message", REFUSED_JOBS, ids=[message for _, message in REFUSED_JOBS])
async def test_a_job_that_no_schedule_can_make_is_refused(client: Client, job: Any, message: str) -> None:  # noqa: ANN401
    with pytest.raises(InvalidValue) as raised:
        await client.schedules.put("nightly", HOURLY, job)

    assert message in str(raised.value)
    assert await client.schedules.list() == []


async def test_a_payload_over_the_limit_is_refused(client: Client) -> None:
    with pytest.raises(PayloadTooLarge):
        await client.schedules.put("nightly", HOURLY, NewJob("reports", b"x" * 1_001))

    assert await client.schedules.list() == []


@pytest.mark.parametrize(
    "rule", ["", "0 0 30 2 *", "* * *", "@dayly", "every 0s", 0, -1, True, float("nan"), None, b"@daily"]
)
async def test_a_rule_that_says_nothing_is_refused(client: Client, rule: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidValue):
        await client.schedules.put("nightly", rule, NewJob("reports"))

    assert await client.schedules.list() == []


@pytest.mark.parametrize("timezone", ["", "Europe/Berln", "../../etc/passwd", "/etc/localtime", None, 1, UTC])
async def test_a_time_zone_that_nobody_knows_is_refused(client: Client, timezone: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidValue):
        await client.schedules.put("nightly", HOURLY, NewJob("reports"), timezone=timezone)

    assert await client.schedules.list() == []


@pytest.mark.parametrize(
    "given, message",
    [
        ({"catch_up": "non"}, "catch_up is one of one, none, all, not 'non': did you mean 'none'?"),
        ({"catch_up": True}, "catch_up is one of one, none, all, not True"),
        ({"catch_up": ["one"]}, "catch_up is one of one, none, all, not ['one']"),
        ({"overlap": "skipp"}, "overlap is one of allow, skip, not 'skipp': did you mean 'skip'?"),
        ({"overlap": None}, "overlap is one of allow, skip, not None"),
    ],
)
async def test_a_choice_that_there_is_not_is_refused(client: Client, given: Any, message: str) -> None:  # noqa: ANN401
    with pytest.raises(InvalidValue) as raised:
        await client.schedules.put("nightly", HOURLY, NewJob("reports"), **given)

    assert str(raised.value) == message
    assert await client.schedules.list() == []


@pytest.mark.parametrize("id", ["", "a b", "ä", "x" * 201, None, 5, b"nightly"])
async def test_an_id_that_is_no_name_is_refused_everywhere(client: Client, id: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidName, match="schedule id"):
        await client.schedules.put(id, HOURLY, NewJob("reports"))
    for call in (client.schedules.remove, client.schedules.pause, client.schedules.resume, client.schedules.run_now):
        with pytest.raises(InvalidName, match="schedule id"):
            await call(id)
    with pytest.raises(InvalidName, match="schedule id"):
        await client.schedules.get(id)


async def test_the_longest_id_is_taken(client: Client) -> None:
    await client.schedules.put("x" * 200, HOURLY, NewJob("reports"))

    assert (await client.schedules.run_now("x" * 200)).created


async def test_a_resume_says_that_a_rule_cannot_be_read_and_changes_nothing(client: Client) -> None:
    put = await client.schedules.put("nightly", HOURLY, NewJob("reports"))
    unknown = replace(put, rule="at the full moon", paused=True)
    await client.store.write_schedule(unknown, expected=put.revision)
    before = await the_schedule(client)

    with pytest.raises(InvalidValue):
        await client.schedules.resume("nightly")

    assert await the_schedule(client) == before


async def test_a_closed_client_refuses_schedules() -> None:
    client = windlass.connect("memory://")
    await client.close()

    with pytest.raises(ClientClosed):
        await client.schedules.list()
