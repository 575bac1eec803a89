"""Jobs come in: one, many, all or none, and never twice under one id."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from uuid import uuid4

import pytest

from windlass.client.client import Client
from windlass.core.errors import InvalidName, InvalidValue, PayloadTooLarge, UniqueConflict
from windlass.core.job import NewJob
from windlass.core.names import MAX_PAYLOAD
from windlass.core.settings import QueueSettings
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient
from windlass.testing.conformance.given import HOUR, SECOND, a_job, claimed, enqueue_each, found
from windlass.testing.conformance.reach import Reach, at_once


async def test_a_batch_is_enqueued_in_its_order(client: Client) -> None:
    done = await client.enqueue_many([NewJob("email", bytes([n])) for n in range(3)])

    assert all(each.created for each in done)
    assert (await client.stats("email")).pending == 3
    assert [(await claimed(client, "email")).job.id for _ in range(3)] == [each.id for each in done]


async def test_an_empty_batch_changes_nothing(client: Client, store: Store) -> None:
    assert await client.enqueue_many([]) == []
    assert await store.enqueue([]) == []
    assert await client.queues() == []


async def test_ten_thousand_jobs_are_an_ordinary_batch(client: Client) -> None:
    done = await client.enqueue_many([NewJob("email", b"x") for _ in range(10_000)])

    assert len({each.id for each in done}) == 10_000
    stats = await client.stats("email")
    assert (stats.pending, stats.totals.enqueued) == (10_000, 10_000)
    first = await client.claim_many(["email"], limit=100)
    assert [claim.job.id for claim in first] == [each.id for each in done[:100]]


async def test_a_job_keeps_everything_it_was_enqueued_with(client: Client, clock: FakeClock) -> None:
    job_id = uuid4()

    done = await client.enqueue(
        "email",
        {"to": ["a", "ü"]},
        id=job_id,
        kind="send",
        priority=7,
        delay=SECOND,
        max_attempts=9,
        unique="welcome",
        headers={"trace": "ü\n"},
        tenant="acme",
    )

    job = await found(client, done.id)
    assert (job.id, job.queue, job.kind, job.priority) == (str(job_id), "email", "send", 7)
    assert (job.payload, job.codec) == (b'{"to":["a","\xc3\xbc"]}', "json")
    assert (job.max_attempts, job.unique_key, dict(job.headers)) == (9, "welcome", {"trace": "ü\n"})
    assert (job.tenant, job.state, job.attempt, job.delivery) == ("acme", State.SCHEDULED, 0, 0)
    assert (job.created_at, job.run_at) == (clock.now(), clock.now() + SECOND)
    assert (job.claimed_at, job.lease_expires_at, job.finished_at, job.worker) == (None, None, None, None)
    assert (job.last_error, job.result, job.progress, job.parent_id) == (None, None, None, None)
    assert not job.cancel_requested
    assert (job.history, job.log) == ((), ())


@pytest.mark.parametrize("payload", [b"", b"\x00\xff", bytes(range(256)) * 40, b"x" * MAX_PAYLOAD])
async def test_bytes_pass_through_unchanged(client: Client, payload: bytes) -> None:
    await client.enqueue("email", payload)

    claim = await claimed(client, "email")

    assert (claim.job.payload, claim.job.codec) == (payload, "raw")


async def test_an_id_that_is_here_already_is_one_job(client: Client, reach: Reach) -> None:
    job_id = uuid4()
    first = await client.enqueue("email", b"first", id=job_id)

    second = await client.enqueue("email", b"second", id=job_id, kv=reach.kv({"k": b"v"}))

    assert (first.created, second.created, second.id) == (True, False, first.id)
    assert (await found(client, first.id)).payload == b"first"
    assert (await client.stats()).totals.enqueued == 1
    assert await client.kv.get("k") is None


@pytest.mark.parametrize("state", [State.RUNNING, State.SUCCEEDED, State.DEAD, State.CANCELLED])
async def test_an_id_is_one_job_in_every_state(client: Client, state: State) -> None:
    done = await client.enqueue("email", b"")
    await _bring_to(client, state)

    again = await client.enqueue("email", b"", id=done.id)

    assert again == (done.id, False)
    assert (await found(client, done.id)).state is state


async def _bring_to(client: Client, state: State) -> None:
    claim = await claimed(client, "email")
    match state:
        case State.SUCCEEDED:
            await client.ack(claim)
        case State.DEAD:
            await client.dead_letter(claim, "no")
        case State.CANCELLED:
            await client.cancel_claim(claim, "no")
        case _:
            pass


async def test_a_second_equal_id_in_a_batch_is_the_first(client: Client) -> None:
    job_id = uuid4()

    done = await client.enqueue_many([NewJob("email", b"1", id=job_id), NewJob("email", b"2", id=job_id)])

    assert [each.created for each in done] == [True, False]
    assert (await client.stats("email")).pending == 1
    assert (await found(client, done[0].id)).payload == b"1"


async def test_a_conflict_refuses_the_whole_batch(client: Client, reach: Reach) -> None:
    await client.enqueue("email", b"", unique="k")
    taken = Unique("k", on_conflict="raise")

    new = NewJob(reach.queue("new", "email"), b"", kv=reach.kv({"k": b"v"}))
    with pytest.raises(UniqueConflict):
        await client.enqueue_many([new, NewJob("email", b"", unique=taken)])

    assert await client.queues() == ["email"]
    assert await client.kv.get("k") is None
    assert (await client.stats()).totals.enqueued == 1


async def test_an_error_of_one_caller_fails_no_other_call(client: Client) -> None:
    await client.enqueue("email", b"", unique="k")
    taken = Unique("k", on_conflict="raise")
    good = [client.enqueue("email", b"good") for _ in range(20)]
    bad = [client.enqueue("email", b"bad", unique=taken) for _ in range(5)]
    calls = [call for group in zip(good[:5], bad, strict=True) for call in group] + good[5:]

    answers = await asyncio.gather(*calls, return_exceptions=True)

    refused = [answer for answer in answers if isinstance(answer, UniqueConflict)]
    enqueued = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert (len(refused), len(enqueued), len(answers)) == (5, 20, 25)
    assert all([(await found(client, each.id)).payload == b"good" for each in enqueued])
    assert (await client.stats("email")).pending == 21


async def test_priority_and_attempts_are_those_of_the_producer(open_client: OpenClient) -> None:
    producer = await open_client(QueueSettings(max_attempts=7, priority=5))
    consumer = await open_client(QueueSettings(max_attempts=1))

    await producer.enqueue("email", b"")

    job = (await claimed(consumer, "email")).job
    assert (job.max_attempts, job.priority) == (7, 5)


@pytest.mark.parametrize("name", ["", "a b", "a\x00", "é", "x" * 201, "a'b", "a*", "{a}", "a|b"])
async def test_a_name_that_is_not_allowed_is_refused_and_nothing_is_written(client: Client, name: str) -> None:
    with pytest.raises(InvalidName):
        await client.enqueue(name, b"")
    with pytest.raises(InvalidName):
        await client.enqueue("email", b"", kind=name)
    with pytest.raises(InvalidName):
        await client.enqueue("email", b"", unique=name)
    with pytest.raises(InvalidName):
        await client.enqueue("email", b"", tenant=name)
    with pytest.raises(InvalidName):
        await client.enqueue("email", b"", headers={name: "v"})

    assert await client.queues() == []


async def test_two_long_names_with_one_beginning_are_two_queues(client: Client) -> None:
    one, other = "q" * 199 + "1", "q" * 199 + "2"

    done = await client.enqueue(one, b"")

    assert await client.claim(other) is None
    assert (await claimed(client, one)).job.id == done.id


async def test_every_allowed_character_may_name_a_queue(client: Client) -> None:
    name = "azAZ09_-.:/@#"

    done = await client.enqueue(name, b"", kind=name, tenant=name, unique=name, headers={name: name})

    claim = await claimed(client, name)
    assert claim.job.id == done.id
    assert (claim.job.kind, claim.job.tenant, dict(claim.job.headers)) == (name, name, {name: name})


async def test_a_payload_over_the_limit_is_refused_and_nothing_is_written(client: Client) -> None:
    with pytest.raises(PayloadTooLarge) as refused:
        await client.enqueue_many([NewJob("email", b"ok"), NewJob("email", b"x" * (MAX_PAYLOAD + 1))])

    assert (refused.value.size, refused.value.limit) == (MAX_PAYLOAD + 1, MAX_PAYLOAD)
    assert await client.queues() == []


async def test_what_cannot_mean_anything_is_refused(client: Client, clock: FakeClock) -> None:
    """No time, nor any other wish."""
    wrong = [
        NewJob("email", b"", delay=-1),
        NewJob("email", b"", delay=timedelta(microseconds=-1)),
        NewJob("email", b"", delay=float("nan")),
        NewJob("email", b"", delay=float("inf")),
        NewJob("email", b"", delay=timedelta.max),
        NewJob("email", b"", run_at=datetime.min.replace(tzinfo=timezone(HOUR))),
        NewJob("email", b"", run_at=datetime.max.replace(tzinfo=timezone(-HOUR))),
        NewJob("email", b"", run_at=clock.now().replace(tzinfo=None)),
        NewJob("email", b"", run_at=clock.now(), delay=1),
        NewJob("email", b"", priority=-1),
        NewJob("email", b"", priority=2**31),
        NewJob("email", b"", max_attempts=0),
        NewJob("email", b"", id="not-a-uuid"),
    ]

    for job in wrong:
        with pytest.raises(InvalidValue):
            await client.enqueue_many([job])

    assert await client.queues() == []


async def test_the_highest_priority_and_the_farthest_time_are_kept(client: Client, clock: FakeClock) -> None:
    far = clock.now().replace(year=9999)

    done = await client.enqueue("email", b"", priority=2**31 - 1, run_at=far)

    job = await found(client, done.id)
    assert (job.priority, job.run_at) == (2**31 - 1, far)


async def test_the_first_moment_is_now_and_the_last_one_is_kept(client: Client, clock: FakeClock) -> None:
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

    past = await client.enqueue("email", b"", run_at=first)
    future = await client.enqueue("email", b"", run_at=last)

    claim = await claimed(client, "email")
    assert (claim.job.id, claim.job.run_at) == (past.id, clock.now())
    assert await client.claim("email") is None
    job = await found(client, future.id)
    assert (job.state, job.run_at) == (State.SCHEDULED, last)


async def test_jobs_of_one_call_may_go_to_several_queues(store: Store) -> None:
    jobs = [a_job("a"), a_job("b", delay=HOUR), a_job("a")]

    async with at_once(store):
        assert await store.enqueue(jobs) == [(job.id, True) for job in jobs]

    # what was refused can be done one by one, and what was done is not done again
    await enqueue_each(store, *jobs)
    assert [(row.queue, row.pending, row.scheduled) for row in await store.stats()] == [("a", 2, 0), ("b", 0, 1)]
