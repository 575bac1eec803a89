"""Situations as they come about, on every store: what is told is what a person would find out by hand."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

import windlass
from windlass import Client, InvalidValue, JobId, NewJob, QueueSettings, Unique, UnknownKind
from windlass.client.why import Reason
from windlass.core.job import Claim, Token
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.moving import Moved
from windlass.core.requests import ClaimRequest, RescueRequest
from windlass.core.retry import Fixed
from windlass.core.store import Store
from windlass.testing import FakeClock

HOUR = timedelta(hours=1)
LEASE = timedelta(seconds=30)
QUEUES = {"twice": QueueSettings(max_attempts=2), "thrice": QueueSettings(max_attempts=3)}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(new_store: Callable[[], Store], clock: FakeClock) -> AsyncIterator[Client]:
    async with windlass.connect(
        new_store(), clock=clock, queues=QUEUES, lease=LEASE, retry=Fixed(40), keep_succeeded=HOUR
    ) as client:
        yield client


async def server(client: Client, name: str = "web", *queues: str, details: Mapping[str, str] | None = None) -> None:
    now = client.clock.now()
    record = ServerRecord(
        f"{name}#1", name, "box", 7, windlass.__version__, now, now, queues, ("send",), (), 0, details or {"slots": "2"}
    )
    busy = record.details.get("running")
    await client.store.beat(replace(record, running=int(busy)) if busy else record)


async def waiting(client: Client, queue: str, kind: str | None = "send", **more: Any) -> JobId:  # noqa: ANN401 - any of its fields
    [done] = await client.enqueue_many([NewJob(queue, kind=kind)._replace(**more)])
    return done.id


async def claimed(client: Client, queue: str, worker: str = "web#1") -> Claim:
    [claim] = (await client.store.claim(ClaimRequest([queue], 1, LEASE, None, worker))).jobs
    return claim


async def told(client: Client, job_id: JobId) -> dict[str, Reason]:
    return {reason.name: reason for reason in (await client.why(job_id)).reasons}


async def names(client: Client, job_id: JobId) -> list[str]:
    return list(await told(client, job_id))


async def test_without_a_server_what_waits_says_so(client: Client, clock: FakeClock) -> None:
    now, soon = await waiting(client, "now"), await waiting(client, "soon", delay=20)
    behind = await waiting(client, "now")
    await waiting(client, "left")
    left = await claimed(client, "left", "box:9")
    held = await told(client, left.job.id)
    before = await told(client, soon)
    clock.advance(40)

    _, other = await waiting(client, "other"), await waiting(client, "other")
    await client.ack(await claimed(client, "other"))
    assert (await told(client, other))["no_server"].facts["ended_lately"] == 1
    assert (await told(client, now))["no_server"].facts["ended_lately"] == 0
    assert await names(client, now) == ["no_server"]
    assert (await told(client, behind))["behind"].facts["ahead"] == 1
    assert (list(before), before["run_later"].facts["seconds"]) == (["run_later", "no_server"], 20.0)
    assert await names(client, soon) == ["due", "no_server"]
    assert (list(held), held["running"].facts["worker"]) == (["running"], "box:9")
    assert (await told(client, left.job.id))["lease_expired"].facts["rescuer"] is None


async def test_beside_live_servers_what_waits_says_what_it_waits_for(client: Client) -> None:
    await server(client, "web", "email", "held")
    await server(client, "full", "full", details={"slots": "2", "running": "2"})
    await client.pause("held")

    ready, second = await waiting(client, "email"), await waiting(client, "email")
    assert await names(client, ready) == ["ready"]
    assert list(await told(client, second)) == ["behind"]
    assert await names(client, await waiting(client, "held")) == ["queue_paused"]
    assert (await told(client, await waiting(client, "emial")))["queue_not_worked"].message.endswith("'email'?)")
    assert (await told(client, await waiting(client, "held", "sned")))["kind_unknown"].message.endswith("'send'?)")
    assert "no_consumer" in await names(client, await waiting(client, "email", None))
    assert await names(client, await waiting(client, "full")) == ["all_busy"]


async def test_more_than_a_thousand_ahead_are_not_counted(client: Client) -> None:
    await client.enqueue_many([NewJob("email", kind="send") for _ in range(1_001)])
    first = await waiting(client, "email", priority=1)
    last = await waiting(client, "email")

    assert (await told(client, last))["behind"].facts["ahead"] == 1_000
    assert "behind" not in await names(client, first)


async def test_after_an_attempt_what_waits_says_how_that_ended(client: Client, clock: FakeClock) -> None:
    await server(client, "web", "email", "twice")
    failed, put_off = await waiting(client, "email"), await waiting(client, "email")
    await client.nack(await claimed(client, "email"), ConnectionError("smtp is down"))
    await client.snooze(await claimed(client, "email"), 60)
    poison = await waiting(client, "twice")
    await claimed(client, "twice")
    retry = await told(client, failed)
    clock.advance(LEASE)
    await client.rescue("twice")

    assert (list(retry), retry["retry_later"].facts["error"]) == (["retry_later"], "ConnectionError: smtp is down")
    assert "attempt 1 of" in retry["retry_later"].message
    assert "begins in 40 s" in retry["retry_later"].message
    assert await names(client, put_off) == ["snoozed"]
    assert await names(client, poison) == ["failed_before", "runs_alone", "ready"]


async def test_what_runs_says_who_holds_it_and_what_becomes_of_it(client: Client, clock: FakeClock) -> None:
    for name in ("web", "gone"):
        await server(client, name, "email")
    held, left, asked = [await waiting(client, "email") for _ in range(3)]
    holder = [await claimed(client, "email", worker) for worker in ("web#1", "gone#1", "web#1")]
    await client.cancel(asked)
    await client.store.leave("gone#1")

    running = await told(client, held)
    assert (list(running), running["running"].facts["pid"]) == (["running"], 7)
    assert await names(client, left) == ["running", "holder_gone"]
    assert await names(client, asked) == ["running", "cancel_requested"]
    clock.advance(100)
    await client.store.renew([(held, Token(holder[0].token))], LEASE)
    assert await names(client, held) == ["running", "holder_silent"]
    await server(client, "other", "email")
    assert (await told(client, left))["lease_expired"].facts["rescuer"] == "other#1"


async def test_what_has_ended_says_how(client: Client, clock: FakeClock) -> None:
    done, spent, given_up, strange = [await waiting(client, "thrice") for _ in range(4)]
    await client.ack(await claimed(client, "thrice"))
    [first, second, third] = [await claimed(client, "thrice") for _ in range(3)]
    await client.dead_letter(second, "no such user")
    await client.dead_letter(third, UnknownKind("sned", []))
    for wait in (40, 40, 0):
        await client.nack(first, "smtp is down")
        clock.advance(wait)
        first = await claimed(client, "thrice") if wait else first
    killer = await waiting(client, "twice")
    for _ in range(2):
        await claimed(client, "twice")
        clock.advance(LEASE)
        await client.rescue("twice")
    orphan = await waiting(client, "email")
    await claimed(client, "email")
    await client.store.rescue(RescueRequest(["email"], force=True, to="dead"), client.settings.retention)

    assert await names(client, done) == ["succeeded"]
    assert (await told(client, spent))["dead_out_of_attempts"].facts["attempt"] == 3
    assert await names(client, given_up) == ["dead_given_up"]
    assert await names(client, strange) == ["dead_unknown_kind"]
    assert (await told(client, killer))["dead_rescued"].facts["rescued"] == 2
    assert await names(client, orphan) == ["dead_orphaned"]


async def test_cancelled_jobs_and_unique_keys_are_told_of(client: Client) -> None:
    await server(client, "web", "email")
    key = Unique("key", until="finished")
    cancelled = await waiting(client, "email", unique=key)
    holds = await names(client, cancelled)
    await client.cancel(cancelled)
    await client.store.write_audit([AuditEntry(client.clock.now(), "ann@box", "cancel", cancelled, {})])
    holder = await waiting(client, "email", unique=key)

    found = await told(client, cancelled)

    assert holds == ["ready", "holds_key"]
    assert (list(found), found["cancelled"].facts["by"]) == (["cancelled", "key_held"], "ann@box")
    assert found["key_held"].facts["holder"] == holder


async def test_jobs_of_schedules_are_told_of(client: Client) -> None:
    await server(client, "web", "email")
    put = await client.schedules.put("nightly", "@daily", NewJob("email", kind="send"))
    job_id = (await client.schedules.run_now("nightly")).id

    assert await names(client, job_id) == ["ready", "schedule"]
    await client.schedules.pause("nightly")
    assert await names(client, job_id) == ["ready", "schedule_paused"]
    [now] = await client.schedules.list()
    await client.store.write_schedule(replace(put, declared=True), expected=now.revision)
    assert await names(client, job_id) == ["ready", "schedule_orphaned"]
    await client.schedules.remove("nightly")
    assert await names(client, job_id) == ["ready", "schedule_removed"]


async def test_what_is_not_here_and_what_moved_is_told_of(client: Client) -> None:
    here = await waiting(client, "email")
    slip = JobId(here[:-1] + ("0" if here[-1] != "0" else "1"))
    far = JobId("00000000-0000-7000-8000-000000000000")

    assert await names(client, slip) == ["near_id", "not_found"]
    assert (await told(client, slip))["near_id"].facts["near"] == here
    assert await names(client, far) == ["not_found"]
    await client.store.set_moved(Moved("redis://there", "move"))
    assert (await names(client, far))[0] == "store_moved"
    assert (await told(client, here))["store_moved"].facts["to"] == "redis://there"
    with pytest.raises(InvalidValue):
        await client.why("email")


async def test_for_a_raw_job_in_a_queue_of_nobody_a_consumer_is_advised(client: Client) -> None:
    await server(client, "web", "email")

    reason = (await told(client, await waiting(client, "raw", None)))["queue_not_worked"]

    assert reason.message == "it has no kind, and no live server works queue 'raw'"
    assert reason.advice == "register a consumer (@app.consumer('raw')), or claim it by a loop of your own"
