"""Cancelling: what waits ends, what runs is told."""

import asyncio

import pytest

from windlass.client.client import Client
from windlass.core.requests import CancelOutcome
from windlass.core.retention import KEEP_ALL
from windlass.core.settings import QueueSettings
from windlass.core.states import State
from windlass.core.store import Store
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient, Woken, asleep
from windlass.testing.conformance.given import AT_ONCE, HOUR, UNKNOWN, a_job, claim_one, claimed, found

GONE = QueueSettings(keep_cancelled=0)


async def test_a_pending_job_is_removed(open_client: OpenClient) -> None:
    client = await open_client(GONE)
    done = await client.enqueue("email", b"")

    assert await client.cancel(done.id) is CancelOutcome.REMOVED

    assert await client.claim("email") is None
    assert await client.get(done.id) is None
    assert (await client.stats("email")).pending == 0


async def test_a_scheduled_job_is_removed(open_client: OpenClient, clock: FakeClock) -> None:
    client = await open_client(GONE)
    done = await client.enqueue("email", b"", delay=HOUR)

    assert await client.cancel(done.id) is CancelOutcome.REMOVED

    assert (await client.stats("email")).scheduled == 0
    assert await client.get(done.id) is None
    clock.advance(HOUR)
    assert await client.claim("email") is None


async def test_the_record_of_a_removed_job_is_kept(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")

    await client.cancel(done.id)

    job = await found(client, done.id)
    assert (job.state, job.attempt, job.finished_at) == (State.CANCELLED, 0, clock.now())
    stats = await client.stats("email")
    assert (stats.cancelled, stats.totals.cancelled) == (1, 1)


async def test_the_holder_of_a_running_job_is_told(client: Client) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    assert not claim.cancelled.is_set()

    assert await client.cancel(done.id) is CancelOutcome.REQUESTED

    assert claim.cancelled.is_set()
    assert claim.cancelled.reason == "cancel"
    assert (await found(client, done.id)).cancel_requested
    await client.ack(claim)
    assert (await found(client, done.id)).state is State.SUCCEEDED


async def test_a_finished_job_cannot_be_cancelled(client: Client) -> None:
    done = await client.enqueue("email", b"")
    await client.ack(await claimed(client, "email"))

    assert await client.cancel(done.id) is CancelOutcome.NOT_FOUND

    assert (await found(client, done.id)).state is State.SUCCEEDED


async def test_a_request_survives_rescue(client: Client) -> None:
    done = await client.enqueue("email", b"")
    await claimed(client, "email", lease=0)
    await client.cancel(done.id)
    await client.rescue()
    assert (await found(client, done.id)).cancel_requested

    claim = await claimed(client, "email")

    assert claim.job.cancel_requested
    assert claim.cancelled.is_set()


async def test_the_event_wins_a_race_against_long_work(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    work = await asleep(clock, clock.sleep(3_600))
    told = asyncio.ensure_future(claim.cancelled.wait())

    await client.cancel(done.id)

    finished, _ = await asyncio.wait({work, told}, timeout=10, return_when=asyncio.FIRST_COMPLETED)
    assert finished == {told}
    work.cancel()


async def test_an_unknown_id_is_not_found(client: Client) -> None:
    assert await client.cancel(UNKNOWN) is CancelOutcome.NOT_FOUND


async def test_a_cancelled_job_is_not_cancelled_twice(client: Client) -> None:
    done = await client.enqueue("email", b"")

    outcomes = [await client.cancel(done.id) for _ in range(2)]

    assert outcomes == [CancelOutcome.REMOVED, CancelOutcome.NOT_FOUND]
    assert (await client.stats("email")).totals.cancelled == 1


async def test_a_running_job_may_be_asked_twice(client: Client) -> None:
    done = await client.enqueue("email", b"")
    await claimed(client, "email")

    outcomes = [await client.cancel(done.id) for _ in range(2)]

    assert outcomes == [CancelOutcome.REQUESTED, CancelOutcome.REQUESTED]


async def test_a_request_survives_a_retry_a_snooze_and_a_release(open_client: OpenClient) -> None:
    client = await open_client(AT_ONCE)
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    await client.cancel(done.id)
    await client.nack(claim, "boom")
    await client.snooze(await claimed(client, "email"), 0)
    await client.release(await claimed(client, "email"))

    claim = await claimed(client, "email")

    assert claim.job.cancel_requested
    assert claim.cancelled.is_set()


async def test_a_job_that_waits_again_after_a_request_can_be_removed(open_client: OpenClient) -> None:
    client = await open_client(AT_ONCE)
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    await client.cancel(done.id)
    await client.nack(claim, "boom")

    assert await client.cancel(done.id) is CancelOutcome.REMOVED


async def test_a_renewal_after_a_request_is_allowed_and_tells(open_client: OpenClient) -> None:
    holder, other = await open_client(), await open_client()
    done = await holder.enqueue("email", b"")
    claim = await claimed(holder, "email")
    await other.cancel(done.id)

    await holder.renew(claim, 30)

    assert claim.cancelled.is_set()


async def test_a_request_through_another_client_is_heard(open_client: OpenClient, woken: Woken) -> None:
    holder, other = await open_client(), await open_client()
    done = await holder.enqueue("email", b"")
    claim = await claimed(holder, "email")
    told = asyncio.ensure_future(claim.cancelled.wait())
    assert not claim.cancelled.is_set()

    await other.cancel(done.id)

    await woken(told)
    assert claim.cancelled.reason == "cancel"
    await holder.ack(claim)


async def test_an_event_that_was_first_looked_at_late_is_told_too(open_client: OpenClient, woken: Woken) -> None:
    holder, other = await open_client(), await open_client()
    done = await holder.enqueue("email", b"")
    claim = await claimed(holder, "email")

    await other.cancel(done.id)

    await woken(claim.cancelled.wait())
    await holder.ack(claim)


async def test_the_events_of_other_claims_stay_quiet(client: Client) -> None:
    one, _ = await client.enqueue("email", b""), await client.enqueue("email", b"")
    first, second = await claimed(client, "email"), await claimed(client, "email")

    await client.cancel(one.id)

    assert first.cancelled.is_set()
    assert not second.cancelled.is_set()


async def test_several_jobs_are_cancelled_each_by_its_own_state(store: Store) -> None:
    running, pending, later = a_job(), a_job(), a_job(delay=HOUR)
    await store.enqueue([running, pending, later])
    await claim_one(store)

    outcomes = await store.cancel([running.id, UNKNOWN, pending.id, later.id, pending.id], KEEP_ALL)

    assert outcomes == ["requested", "not_found", "removed", "removed", "not_found"]


@pytest.mark.parametrize("kept", [0, None])
async def test_a_cancelled_claim_is_kept_as_the_settings_say(open_client: OpenClient, kept: int | None) -> None:
    client = await open_client(QueueSettings(keep_cancelled=kept))
    done = await client.enqueue("email", b"")

    await client.cancel_claim(await claimed(client, "email"), "no")

    assert (await client.get(done.id) is None) == (kept == 0)
