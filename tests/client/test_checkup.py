from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

import windlass
from windlass import Client, NewJob
from windlass.client.checkup import checkup, worst
from windlass.core.looks import Finding, ServerRecord
from windlass.testing import FakeClock

HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(clock: FakeClock) -> AsyncIterator[Client]:
    async with windlass.connect("memory://", clock=clock, lease=30) as client:
        yield client


async def server(client: Client, name: str = "one", **more: tuple[str, ...]) -> None:
    record = ServerRecord(
        id=f"{name}#1",
        name=name,
        host="here",
        pid=1,
        version=windlass.__version__,
        started_at=client.clock.now(),
        seen_at=client.clock.now(),
        queues=more.get("queues", ("email",)),
        kinds=more.get("kinds", ("send",)),
        schedules=more.get("schedules", ()),
    )
    await client.store.beat(record)


async def found(client: Client, name: str) -> Finding:
    findings = {finding.name: finding for finding in await checkup(client.store)}
    return findings[name]


async def test_an_empty_store_is_well(client: Client) -> None:
    findings = await checkup(client.store)

    assert worst(findings) == "ok"
    assert len({finding.name for finding in findings}) == len(findings)


async def test_a_server_that_works_all_that_waits_is_well(client: Client) -> None:
    await server(client)
    await client.enqueue("email", kind="send")

    assert worst(await checkup(client.store)) == "ok"


async def test_everything_that_is_not_well_says_what_to_do(client: Client, clock: FakeClock) -> None:
    await server(client, "gone")
    await client.enqueue("email")
    await client.claim("email")
    clock.advance(HOUR)

    findings = await checkup(client.store)

    assert worst(findings) == "error"
    assert all(finding.advice for finding in findings if finding.level != "ok")


@pytest.mark.parametrize("waited,level", [(1, "warning"), (3600, "error")])
async def test_jobs_that_wait_without_any_server_are_told(
    client: Client, clock: FakeClock, waited: int, level: str
) -> None:
    await client.enqueue("email")
    clock.advance(waited)

    finding = await found(client, "servers")

    assert finding.level == level
    assert finding.message == "no live server, and 1 job waiting"


async def test_jobs_that_are_not_due_need_no_server_yet(client: Client) -> None:
    await client.enqueue("email", delay=HOUR)

    assert (await found(client, "servers")).level == "ok"


async def test_a_silent_server_is_told_and_is_worse_when_it_was_the_only_one(client: Client, clock: FakeClock) -> None:
    await server(client, "gone")
    await client.enqueue("email", kind="send")
    clock.advance(HOUR)

    alone = await found(client, "servers")
    await server(client, "other")
    beside = await found(client, "servers")

    assert (alone.level, beside.level) == ("error", "warning")
    assert "1 server not heard of since 2026-01-01 12:00:00 UTC: gone (here, pid 1)" in alone.message


async def test_leases_that_nobody_rescues_are_an_error(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email")
    await client.claim("email")
    clock.advance(HOUR)

    assert (await found(client, "leases")).level == "error"
    assert (await found(client, "leases")).message.startswith("1 lease ran out")
    await server(client)
    assert (await found(client, "leases")).level == "ok"


async def test_queues_that_nobody_works_are_told(client: Client) -> None:
    await server(client, queues=("email",))
    await client.enqueue_many([NewJob("emial", kind="send") for _ in range(3)])

    finding = await found(client, "queues")

    assert finding.level == "warning"
    assert "emial (3)" in finding.message


async def test_for_raw_jobs_that_nobody_works_a_consumer_is_advised(client: Client) -> None:
    await server(client, queues=("email",))
    await client.enqueue_many(
        [NewJob("raw", b"1"), NewJob("emial", kind="send"), NewJob("both"), NewJob("both", kind="a")]
    )

    finding = await found(client, "queues")

    assert finding.advice == (
        "let a server work them (windlass worker --queues both,emial); for jobs without a kind register a consumer "
        "(@app.consumer('both'), @app.consumer('raw')), or claim them by a loop of your own; "
        "or look whether the names are right (windlass queues)"
    )


async def test_kinds_that_nobody_knows_are_told(client: Client) -> None:
    await server(client, kinds=("send",))
    await client.enqueue("email", kind="sned")

    finding = await found(client, "kinds")

    assert (finding.level, "sned in email" in finding.message) == ("warning", True)


async def test_a_kind_that_another_live_server_knows_is_well(client: Client) -> None:
    await server(client, "one", kinds=("send",))
    await server(client, "two", kinds=("other",))
    await client.enqueue("email", kind="other")

    assert (await found(client, "kinds")).level == "ok"


async def test_paused_queues_with_jobs_are_told_and_empty_ones_are_not(client: Client) -> None:
    await client.pause("email")
    before = await found(client, "pauses")
    await client.enqueue("email")

    assert before.level == "ok"
    assert (await found(client, "pauses")).level == "warning"


async def test_jobs_that_died_in_the_last_day_are_counted_by_kind(client: Client, clock: FakeClock) -> None:
    for kind, count in (("send", 2), ("report", 1)):
        for _ in range(count):
            await client.enqueue("email", kind=kind)
            claim = await client.claim("email")
            assert claim is not None
            await client.dead_letter(claim, "no")

    finding = await found(client, "dead")
    clock.advance(timedelta(days=2))

    assert finding.level == "warning"
    assert finding.message == "3 jobs died in the last day: 2 of send in email, 1 of report in email"
    assert (await found(client, "dead")).level == "ok"


async def test_a_declared_schedule_that_no_live_server_declares_is_orphaned(client: Client) -> None:
    schedule = await client.schedules.put("nightly", "@daily", NewJob("email"))
    await client.store.write_schedule(replace(schedule, declared=True), expected=schedule.revision)

    before = await found(client, "schedules")
    await server(client, schedules=("nightly",))

    assert (before.level, "nightly" in before.message) == ("warning", True)
    assert (await found(client, "schedules")).level == "ok"


async def test_a_schedule_that_nobody_fires_is_an_error_unless_it_is_paused(client: Client, clock: FakeClock) -> None:
    await client.schedules.put("hourly", "@hourly", NewJob("email"))
    clock.advance(2 * HOUR)

    finding = await found(client, "due")
    await client.schedules.pause("hourly")

    assert (finding.level, "hourly" in finding.message) == ("error", True)
    assert (await found(client, "due")).level == "ok"


async def test_servers_of_another_release_are_told(client: Client) -> None:
    now = client.clock.now()
    await client.store.beat(
        ServerRecord(id="old#1", name="old", host="here", pid=1, version="0.0.1", started_at=now, seen_at=now)
    )

    finding = await found(client, "versions")

    assert (finding.level, "0.0.1" in finding.message) == ("warning", True)


async def test_of_many_names_the_first_are_told_and_the_rest_counted(client: Client) -> None:
    await server(client)
    await client.enqueue_many([NewJob(f"queue-{number}") for number in range(8)])

    assert "and 3 more" in (await found(client, "queues")).message


@pytest.mark.parametrize("strange", [{"rule": "every full moon"}, {"timezone": "Mars/Base"}])
async def test_a_rule_that_cannot_be_read_here_is_told(client: Client, strange: dict[str, str]) -> None:
    schedule = await client.schedules.put("nightly", "@daily", NewJob("email"))
    changed = replace(schedule, rule=strange.get("rule", "@daily"), timezone=strange.get("timezone", "UTC"))
    await client.store.write_schedule(changed, expected=schedule.revision)

    finding = await found(client, "rules")

    assert (finding.level, "nightly" in finding.message) == ("warning", True)


async def test_a_backlog_that_grows_is_told_and_a_burst_is_none(client: Client, clock: FakeClock) -> None:
    await server(client, queues=("email", "burst"))
    await client.enqueue_many([NewJob("burst", kind="send") for _ in range(300)])
    for _ in range(5):
        await client.enqueue_many([NewJob("email", kind="send") for _ in range(50)])
        for claim in await client.claim_many("email", limit=10):
            await client.ack(claim)
        clock.advance(150)
    await server(client, queues=("email", "burst"))

    finding = await found(client, "backlog")

    assert (finding.level, "email (+200, 200 wait)" in finding.message) == ("warning", True)
    assert "burst" not in finding.message


async def test_a_job_that_waits_long_in_a_worked_queue_is_told(client: Client, clock: FakeClock) -> None:
    await client.enqueue_many([NewJob(queue, kind="send") for queue in ("email", "other", "held")])
    await client.pause("held")
    clock.advance(HOUR)
    await server(client, queues=("email", "held"))

    finding = await found(client, "waits")

    assert (finding.level, finding.message) == ("warning", "the oldest job has waited long in email (1 h)")


async def test_jobs_past_their_timeout_are_told(client: Client) -> None:
    now = client.clock.now()
    record = ServerRecord("one#1", "one", "here", 1, windlass.__version__, now, now, details={"stuck": "a, b"})
    await client.store.beat(record)

    finding = await found(client, "stuck")

    assert (finding.level, "a on one (here, pid 1), b on" in finding.message) == ("warning", True)


@pytest.mark.parametrize("ahead,level", [(0, "ok"), (3, "ok"), (60, "warning"), (-60, "warning")])
async def test_clocks_that_disagree_are_told(client: Client, clock: FakeClock, ahead: int, level: str) -> None:
    here = clock.now() - timedelta(seconds=ahead)

    findings = {finding.name: finding for finding in await checkup(client.store, clock=lambda: here)}

    assert findings["clock"].level == level
    assert ("1 min" in findings["clock"].message) == (level == "warning")
