from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta

import pytest

import windlass
from windlass import (
    Claim,
    ClaimLost,
    Client,
    ClientClosed,
    EncodeError,
    Exponential,
    InvalidValue,
    Job,
    NewJob,
    NoRetry,
    PayloadTooLarge,
    QueueSettings,
    State,
    Unique,
    UniqueConflict,
)
from windlass.core.retention import KEEP_ALL
from windlass.testing import FakeClock

NOW = Exponential(base=0)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with windlass.connect("memory://", retry=NOW, max_attempts=2, max_payload=100) as client:
        yield client


async def a_claim(client: Client, queue: str = "email") -> Claim:
    await client.enqueue(queue, b"hello")
    claim = await client.claim(queue)
    assert claim is not None
    return claim


async def job_of(client: Client, claim: Claim) -> Job:
    job = await client.get(claim.job.id)
    assert job is not None
    return job


async def test_an_ack_keeps_its_result(client: Client) -> None:
    claim = await a_claim(client)

    await client.ack(claim, {"sent": 3})

    job = await job_of(client, claim)
    assert (job.state, job.result, job.result_codec) == (State.SUCCEEDED, b'{"sent":3}', "json")
    assert claim.settled


async def test_an_ack_without_a_result_keeps_none(client: Client) -> None:
    claim = await a_claim(client)

    await client.ack(claim)

    assert (await job_of(client, claim)).result is None


async def test_settling_again_is_a_success_and_changes_nothing(client: Client) -> None:
    claim = await a_claim(client)
    await client.ack(claim)

    await client.nack(claim, "too late")
    await client.ack(claim, 5)

    job = await job_of(client, claim)
    assert (job.state, job.result) == (State.SUCCEEDED, None)


async def test_a_repeat_by_another_client_is_a_success() -> None:
    async with windlass.connect("memory://repeat") as one, windlass.connect("memory://repeat") as other:
        claim = await a_claim(one)
        copy = Claim(claim.job, claim.token)

        await one.ack(claim)
        await other.ack(copy)

        assert copy.settled


async def test_a_stale_claim_is_lost_and_nothing_is_written(client: Client) -> None:
    claim = await a_claim(client)
    await client.rescue(force=True)

    with pytest.raises(ClaimLost) as lost:
        await client.ack(claim, then=[NewJob("after")], kv={"done": b"1"})

    assert lost.value.job_id == claim.job.id
    assert not claim.settled
    assert await client.queues() == ["email"]
    assert await client.kv.get("done") is None


@pytest.mark.parametrize("result, error", [(object(), EncodeError), (b"x" * 101, PayloadTooLarge)])
async def test_a_result_that_cannot_be_kept_makes_the_job_dead(
    client: Client, result: object, error: type[Exception]
) -> None:
    claim = await a_claim(client)

    with pytest.raises(error):
        await client.ack(claim, result, then=[NewJob("after")], kv={"done": b"1"})

    job = await job_of(client, claim)
    assert job.state is State.DEAD
    assert "the work was done" in (job.last_error or "")
    assert await client.queues() == ["email"]
    assert await client.kv.get("done") is None


async def test_then_and_kv_commit_with_an_ack(client: Client) -> None:
    claim = await a_claim(client)

    await client.ack(claim, then=[NewJob("after", b"1"), NewJob("after", b"2")], kv={"done": b"1"})

    claims = await client.claim_many("after", limit=5)
    assert [(after.job.payload, after.job.parent_id) for after in claims] == [
        (b"1", claim.job.id),
        (b"2", claim.job.id),
    ]
    assert await client.kv.get("done") == b"1"


async def test_then_and_kv_of_a_nack_are_written_only_when_the_job_is_dead(client: Client) -> None:
    first = await a_claim(client)
    await client.nack(first, "no", then=[NewJob("after")], kv={"dead": b"1"})
    queues_after_retry = await client.queues()
    second = await client.claim("email")
    assert second is not None

    await client.nack(second, "no", then=[NewJob("after")], kv={"dead": b"1"})

    assert queues_after_retry == ["email"]
    assert await client.queues() == ["after", "email"]
    assert await client.kv.get("dead") == b"1"


async def test_a_bad_then_job_refuses_the_settlement_also_when_it_would_be_dropped(client: Client) -> None:
    claim = await a_claim(client)

    with pytest.raises(InvalidValue):
        await client.nack(claim, "no", then=[NewJob("")])

    assert (await job_of(client, claim)).state is State.RUNNING


async def test_a_then_job_whose_key_is_held_refuses_the_settlement(client: Client) -> None:
    await client.enqueue("after", unique="key")
    claim = await a_claim(client)

    with pytest.raises(UniqueConflict):
        await client.ack(claim, then=[NewJob("after", unique=Unique("key", on_conflict="raise"))])

    assert (await job_of(client, claim)).state is State.RUNNING
    await client.ack(claim)


async def test_a_nack_keeps_type_and_text_of_an_exception(client: Client) -> None:
    claim = await a_claim(client)
    try:
        _ = 1 / 0
    except ZeroDivisionError as error:
        await client.nack(claim, error)

    job = await job_of(client, claim)
    [delivery] = job.history
    assert job.last_error == "ZeroDivisionError: division by zero"
    assert delivery.failure is not None
    assert "in test_a_nack_keeps_type" in (delivery.failure.traceback or "")


async def test_a_nack_with_a_delay_does_not_ask_the_policy() -> None:
    clock = FakeClock()
    async with windlass.connect("memory://", retry=NoRetry(), clock=clock) as client:
        claim = await a_claim(client)

        await client.nack(claim, "busy", delay=60)

        job = await job_of(client, claim)
        assert (job.state, job.run_at - clock.now()) == (State.SCHEDULED, timedelta(seconds=60))


async def test_a_nack_of_something_else_is_refused(client: Client) -> None:
    claim = await a_claim(client)

    with pytest.raises(InvalidValue, match="a string or an exception"):
        await client.nack(claim, 5)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue):
        await client.nack(claim, "no", delay=-1)
    with pytest.raises(InvalidValue):
        await client.cancel_claim(claim, None)  # type: ignore[arg-type]

    assert (await job_of(client, claim)).state is State.RUNNING


async def test_dead_letter_snooze_release_and_cancel_end_as_they_say(client: Client) -> None:
    dead, snoozed, released, cancelled = [await a_claim(client, queue) for queue in "abcd"]

    await client.dead_letter(dead, "no such address")
    await client.snooze(snoozed, 60)
    await client.release(released)
    await client.cancel_claim(cancelled, "not wanted")

    jobs = [await job_of(client, claim) for claim in (dead, snoozed, released, cancelled)]
    assert [(job.state, job.attempt, job.last_error) for job in jobs] == [
        (State.DEAD, 1, "no such address"),
        (State.SCHEDULED, 0, None),
        (State.PENDING, 0, None),
        (State.CANCELLED, 1, "not wanted"),
    ]


async def test_policy_and_retention_are_those_of_the_queue_in_the_settling_process() -> None:
    single = QueueSettings(retry=NoRetry(), keep_dead=0)
    async with windlass.connect("memory://", queues={"email": single}) as client:
        claim = await a_claim(client)

        await client.nack(claim, "no")

        assert await client.get(claim.job.id) is None
        assert (await client.stats("email")).totals.dead == 1


async def test_renewal_of_a_lost_claim_is_refused(client: Client) -> None:
    claim = await a_claim(client)
    await client.rescue(force=True)

    with pytest.raises(ClaimLost):
        await client.renew(claim)

    assert claim.cancelled.reason == "claim_lost"


async def test_a_renewal_holds_for_the_queues_lease_or_the_given_one() -> None:
    clock = FakeClock()
    async with windlass.connect("memory://", lease=20, clock=clock) as client:
        claim = await a_claim(client)

        assert await client.renew(claim) - clock.now() == timedelta(seconds=20)
        assert await client.renew(claim, 5) - clock.now() == timedelta(seconds=5)


async def test_a_renewal_tells_of_a_cancel_request(client: Client) -> None:
    claim = await a_claim(client)
    await client.store.cancel([claim.job.id], KEEP_ALL)

    await client.renew(claim)

    assert claim.cancelled.is_set()


async def test_a_closed_client_refuses_every_call(client: Client) -> None:
    claim = await a_claim(client)
    await client.close()
    await client.close()

    calls: list[Awaitable[object]] = [
        client.open(),
        client.enqueue("email"),
        client.enqueue_many([]),
        client.claim("email"),
        client.ack(claim),
        client.get(claim.job.id),
        client.kv.get("key"),
    ]
    for call in calls:
        with pytest.raises(ClientClosed):
            await call


async def test_a_client_opens_at_its_first_use() -> None:
    client = windlass.connect("memory://")

    await client.enqueue("email")

    await client.close()


async def test_a_result_reads_back_as_the_value_that_was_acked() -> None:
    async with windlass.connect("memory://") as client:
        done = await client.enqueue("sums", [1, 2])
        claim = await client.claim("sums")
        assert claim is not None
        await client.ack(claim, {"sum": 3})

        job = await client.get(done.id)

        assert job is not None
        assert client.decode_result(job) == {"sum": 3}
        assert client.decode_result(claim.job) is None
