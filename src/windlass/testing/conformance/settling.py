"""How a claim ends: what each end writes, and what commits with it."""

import asyncio
from datetime import timedelta
from typing import Protocol

import pytest

from windlass.client.client import Client
from windlass.core.errors import InvalidName, PayloadTooLarge, UniqueConflict, ValueTooLarge
from windlass.core.job import Claim, NewJob
from windlass.core.names import MAX_PAYLOAD, MAX_VALUE
from windlass.core.requests import Settled, Settlement
from windlass.core.retry import Fixed
from windlass.core.settings import QueueSettings
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToSucceeded
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient, Woken, asleep
from windlass.testing.conformance.given import (
    AT_ONCE,
    MINUTE,
    SECOND,
    a_job,
    claimed,
    found,
    settlement,
    wanting,
)
from windlass.testing.conformance.reach import Reach, at_once


async def test_an_ack_is_written_with_its_result(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    began = clock.now()
    clock.advance(SECOND)

    await client.ack(claim, result={"sent": True})

    job = await found(client, done.id)
    assert (job.state, job.attempt, job.finished_at) == (State.SUCCEEDED, 1, clock.now())
    assert (job.result, job.result_codec) == (b'{"sent":true}', "json")
    assert (job.claimed_at, job.lease_expires_at, job.worker) == (began, None, "tester")
    assert (job.run_at, job.last_error) == (began, None)


async def test_an_ack_without_a_result_stores_none(client: Client) -> None:
    done = await client.enqueue("email", b"")

    await client.ack(await claimed(client, "email"))

    assert (await found(client, done.id)).result is None


async def test_a_result_that_is_too_large_makes_the_job_dead(client: Client) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")

    with pytest.raises(PayloadTooLarge):
        await client.ack(claim, result=b"x" * (MAX_PAYLOAD + 1))

    job = await found(client, done.id)
    assert job.state is State.DEAD
    assert "the work was done" in (job.last_error or "")


async def test_a_nack_makes_the_job_wait_for_its_next_attempt(open_client: OpenClient) -> None:
    client = await open_client(AT_ONCE)
    await client.enqueue("email", b"")
    claim = await claimed(client, "email")

    await client.nack(claim, "boom")

    again = (await claimed(client, "email")).job
    assert (again.attempt, again.last_error, again.state) == (2, "boom", State.RUNNING)


async def test_a_nack_of_the_last_attempt_makes_the_job_dead(open_client: OpenClient, clock: FakeClock) -> None:
    client = await open_client(QueueSettings(max_attempts=2, retry=Fixed(0)))
    done = await client.enqueue("email", b"")
    for _ in range(2):
        await client.nack(await claimed(client, "email"), "boom")

    assert await client.claim("email") is None
    job = await found(client, done.id)
    assert (job.state, job.attempt, job.last_error, job.finished_at) == (State.DEAD, 2, "boom", clock.now())


async def test_a_nack_tells_the_type_of_an_exception(client: Client) -> None:
    done = await client.enqueue("email", b"")

    await client.nack(await claimed(client, "email"), ValueError("no such user"))

    job = await found(client, done.id)
    assert job.last_error == "ValueError: no such user"


async def test_a_nack_may_say_when(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")
    clock.advance(SECOND)

    await client.nack(await claimed(client, "email"), "boom", delay=MINUTE)

    job = await found(client, done.id)
    assert (job.state, job.run_at, job.attempt) == (State.SCHEDULED, clock.now() + MINUTE, 1)
    assert (job.claimed_at, job.lease_expires_at, job.worker, job.finished_at) == (None, None, None, None)
    assert job.retrying


async def test_a_dead_letter_needs_no_attempts_to_be_used_up(open_client: OpenClient, clock: FakeClock) -> None:
    client = await open_client(QueueSettings(max_attempts=5))
    done = await client.enqueue("email", b"")

    await client.dead_letter(await claimed(client, "email"), "no such user")

    job = await found(client, done.id)
    assert (job.state, job.attempt, job.last_error) == (State.DEAD, 1, "no such user")
    assert job.finished_at == clock.now()
    stats = await client.stats("email")
    assert (stats.dead, stats.running) == (1, 0)


async def test_a_snooze_gives_the_attempt_back(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")

    await client.snooze(await claimed(client, "email"), MINUTE)

    job = await found(client, done.id)
    assert (job.state, job.attempt, job.delivery) == (State.SCHEDULED, 0, 1)
    assert (job.run_at, job.last_error) == (clock.now() + MINUTE, None)
    assert not job.retrying


async def test_a_snooze_of_zero_is_pending_at_once(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    clock.advance(SECOND)

    await client.snooze(claim, 0)

    job = await found(client, done.id)
    assert (job.state, job.run_at) == (State.PENDING, clock.now())


async def test_a_release_gives_attempt_and_place_back(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")
    began = clock.now()
    clock.advance(SECOND)
    claim = await claimed(client, "email")
    clock.advance(SECOND)

    await client.release(claim)

    job = await found(client, done.id)
    assert (job.state, job.attempt, job.delivery, job.run_at) == (State.PENDING, 0, 1, began)
    assert (job.claimed_at, job.lease_expires_at, job.worker) == (None, None, None)


async def test_a_job_can_be_snoozed_and_released_beyond_its_attempts(client: Client) -> None:
    done = await client.enqueue("email", b"", max_attempts=1)
    for _ in range(5):
        await client.snooze(await claimed(client, "email"), 0)
        await client.release(await claimed(client, "email"))

    job = await found(client, done.id)
    assert (job.attempt, job.delivery) == (0, 10)


async def test_a_claim_can_be_cancelled_by_its_holder(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")

    await client.cancel_claim(await claimed(client, "email"), "not wanted any more")

    job = await found(client, done.id)
    assert (job.state, job.attempt, job.last_error) == (State.CANCELLED, 1, "not wanted any more")
    assert job.finished_at == clock.now()
    assert (await client.stats("email")).totals.cancelled == 1


async def test_an_error_of_an_earlier_attempt_stays_after_success(open_client: OpenClient) -> None:
    client = await open_client(AT_ONCE)
    done = await client.enqueue("email", b"")
    await client.nack(await claimed(client, "email"), "boom")

    await client.ack(await claimed(client, "email"))

    assert (await found(client, done.id)).last_error == "boom"


class Settle(Protocol):
    """One of the ends that bring follow-up jobs and kv with them."""

    async def __call__(
        self, client: Client, claim: Claim, then: list[NewJob], kv: dict[str | bytes, bytes | None]
    ) -> None:
        """Settle `claim`."""
        ...


async def _ack(client: Client, claim: Claim, then: list[NewJob], kv: dict[str | bytes, bytes | None]) -> None:
    await client.ack(claim, then=then, kv=kv)


async def _dead_letter(client: Client, claim: Claim, then: list[NewJob], kv: dict[str | bytes, bytes | None]) -> None:
    await client.dead_letter(claim, "no", then=then, kv=kv)


async def _snooze(client: Client, claim: Claim, then: list[NewJob], kv: dict[str | bytes, bytes | None]) -> None:
    await client.snooze(claim, 1, then=then, kv=kv)


async def _release(client: Client, claim: Claim, then: list[NewJob], kv: dict[str | bytes, bytes | None]) -> None:
    await client.release(claim, then=then, kv=kv)


async def _cancel(client: Client, claim: Claim, then: list[NewJob], kv: dict[str | bytes, bytes | None]) -> None:
    await client.cancel_claim(claim, "no", then=then, kv=kv)


async def _last_nack(client: Client, claim: Claim, then: list[NewJob], kv: dict[str | bytes, bytes | None]) -> None:
    await client.nack(claim, "boom", then=then, kv=kv)


EVERY_END = pytest.mark.parametrize("settle", [_ack, _dead_letter, _snooze, _release, _cancel, _last_nack])


@EVERY_END
async def test_follow_up_jobs_and_kv_commit_with_the_settlement(client: Client, store: Store, settle: Settle) -> None:
    parent = await client.enqueue("email", b"", max_attempts=1)
    await client.kv.put("old", b"1")
    claim = await claimed(client, "email")

    async with at_once(store):
        await settle(client, claim, [NewJob("next", b"1"), NewJob("next", b"2", delay=5)], {"new": b"2", "old": None})

        jobs = await client.jobs()
        assert [(job.queue, job.payload, job.parent_id) for job in jobs[1:]] == [
            ("next", b"1", parent.id),
            ("next", b"2", parent.id),
        ]
        assert await client.kv.get("new") == b"2"
        assert await client.kv.get("old") is None


@EVERY_END
async def test_kv_of_a_settlement_is_written_after_its_then_jobs(client: Client, store: Store, settle: Settle) -> None:
    await client.enqueue("email", b"", max_attempts=1)
    claim = await claimed(client, "email")

    async with at_once(store):
        then = [NewJob("next", b"", kv={"a": b"of the job", "b": b"of the job", "c": b"of the job"})]
        await settle(client, claim, then, {"a": b"of the settlement", "b": None})

        assert await client.kv.scan() == [(b"a", b"of the settlement"), (b"c", b"of the job")]


@EVERY_END
async def test_nothing_of_a_stale_settlement_is_written(
    client: Client, store: Store, reach: Reach, settle: Settle
) -> None:
    await client.enqueue("email", b"", max_attempts=1)
    claim = await claimed(client, "email")
    await client.rescue(force=True, to="dead")
    before = await store.stats()

    with pytest.raises(Exception, match="is lost"):
        await settle(client, claim, [NewJob(reach.queue("next", "email"), b"1")], reach.kv({"new": b"2"}))

    assert await store.stats() == before
    assert await client.kv.get("new") is None


@EVERY_END
async def test_a_follow_up_that_meets_a_held_key_refuses_the_settlement(
    client: Client, reach: Reach, settle: Settle
) -> None:
    done = await client.enqueue("email", b"", max_attempts=1)
    second, third = (reach.queue(name, "email") for name in ("next", "third"))
    await client.enqueue(second, b"", unique="k")
    claim = await claimed(client, "email")
    follow_up = NewJob(second, b"", unique=Unique("k", on_conflict="raise"))

    with pytest.raises(UniqueConflict):
        await settle(client, claim, [NewJob(third, b""), follow_up], reach.kv({"new": b"2"}))

    assert (await found(client, done.id)).state is State.RUNNING
    assert await client.queues() == sorted({"email", second})
    assert (await client.stats()).totals.enqueued == 2
    assert await client.kv.get("new") is None
    await client.ack(claim)


async def test_a_nack_that_retries_leaves_follow_ups_out(open_client: OpenClient) -> None:
    client = await open_client(AT_ONCE)
    await client.enqueue("email", b"")

    await client.nack(await claimed(client, "email"), "boom", then=[NewJob("next", b"")], kv={"new": b"2"})

    assert await client.queues() == ["email"]
    assert await client.kv.get("new") is None


async def test_a_follow_up_may_take_the_key_that_the_settlement_frees(client: Client) -> None:
    key = Unique("k", until="finished", on_conflict="raise")
    await client.enqueue("email", b"1", unique=key)

    await client.ack(await claimed(client, "email"), then=[NewJob("email", b"2", unique=key)])

    assert (await claimed(client, "email")).job.payload == b"2"


async def test_a_refused_settlement_leaves_the_others_of_its_batch(store: Store, reach: Reach) -> None:
    await store.enqueue([a_job() for _ in range(3)])
    await store.enqueue([a_job(reach.queue("next"), unique=Unique("k"))])
    first, second, third = (await store.claim(wanting(limit=3))).jobs
    conflict = a_job(reach.queue("next"), unique=Unique("k", on_conflict="raise"))
    refused = Settlement(second.job.id, second.token, ToSucceeded(), then=[conflict], kv=reach.kv({b"k": b"v"}))

    answers = await store.settle([settlement(first), refused, settlement(third)])

    assert answers[0] is answers[2] is Settled.DONE
    assert isinstance(answers[1], UniqueConflict)
    [row] = await store.stats("default")
    assert (row.succeeded, row.running) == (2, 1)
    assert await store.kv_get([b"k"]) == [None]


async def test_a_refused_settlement_fails_no_other_caller(store: Store, reach: Reach) -> None:
    """Calls that come at once may share a commit; each hears of its own."""
    await store.enqueue([a_job() for _ in range(6)])
    await store.enqueue([a_job(reach.queue("next"), unique=Unique("k"))])
    claims = (await store.claim(wanting(limit=6))).jobs
    conflict = a_job(reach.queue("next"), unique=Unique("k", on_conflict="raise"))
    refused = settlement(claims[3])._replace(then=[conflict])
    stale = Settlement(claims[1].job.id, claims[0].token, ToSucceeded())
    settlements = [settlement(claims[0]), stale, settlement(claims[2]), refused, settlement(claims[4])]

    answers = [answer for [answer] in await asyncio.gather(*(store.settle([each]) for each in settlements))]

    assert isinstance(answers.pop(3), UniqueConflict)
    assert answers == [Settled.DONE, Settled.LOST, Settled.DONE, Settled.DONE]
    [row] = await store.stats("default")
    assert (row.succeeded, row.running) == (3, 3)


async def test_settlements_of_one_call_are_done_in_their_order(store: Store) -> None:
    """The follow-up job meets the key of a job that is settled after it."""
    key = Unique("k", until="finished")
    await store.enqueue([a_job(), a_job(unique=key)])
    first, second = (await store.claim(wanting(limit=2))).jobs
    follow_up = a_job(unique=key)

    answers = await store.settle(
        [Settlement(first.job.id, first.token, ToSucceeded(), then=[follow_up]), settlement(second)]
    )

    assert answers == [Settled.DONE, Settled.DONE]
    assert await store.get([follow_up.id]) == [None]


async def test_what_is_wrong_with_a_follow_up_is_said_before_anything_is_written(client: Client) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")

    with pytest.raises(InvalidName):
        await client.ack(claim, then=[NewJob("no spaces", b"")])
    with pytest.raises(ValueTooLarge):
        await client.ack(claim, kv={"k": b"x" * (MAX_VALUE + 1)})

    assert (await found(client, done.id)).state is State.RUNNING


async def test_waiters_on_a_follow_ups_queue_are_woken(
    client: Client, clock: FakeClock, woken: Woken, reach: Reach
) -> None:
    await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    following = reach.queue("next", "email")
    waiting = await asleep(clock, client.claim(following, wait=10))

    await client.ack(claim, then=[NewJob(following, b"")])

    assert await woken(waiting) is not None


async def test_an_empty_batch_of_settlements_changes_nothing(store: Store) -> None:
    assert await store.settle([]) == []
    assert await store.renew([], MINUTE) == []
    assert await store.note([]) == []
    assert await store.retry([]) == []
    assert await store.delete([]) == []
    assert await store.get([]) == []
    assert await store.glance([]) == {}
    assert await store.kv_get([]) == []


async def test_a_lease_is_extended_by_a_renewal(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email", lease=timedelta(milliseconds=1).total_seconds())

    until = await client.renew(claim, 30)

    assert until == clock.now() + timedelta(seconds=30)
    clock.advance(MINUTE / 3)
    assert await client.rescue() == 0
    assert await client.claim("email") is None
    job = await found(client, done.id)
    assert (job.state, job.lease_expires_at) == (State.RUNNING, until)


async def test_a_renewal_after_the_lease_and_before_rescue_holds(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email", b"")
    claim = await claimed(client, "email", lease=1)
    clock.advance(MINUTE)

    await client.renew(claim, 30)

    assert await client.rescue() == 0


async def test_a_renewal_may_shorten_a_lease(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email", b"")
    claim = await claimed(client, "email", lease=300)

    await client.renew(claim, 1)

    clock.advance(SECOND)
    assert await client.rescue() == 1
