"""A key that is held: what the second job gets, and what a retry of an old holder."""

import logging

import pytest

from windlass.client.client import Client
from windlass.core.errors import InvalidValue, UniqueConflict
from windlass.core.filters import JobFilter
from windlass.core.job import NewJob
from windlass.core.requests import Changed
from windlass.core.retention import KEEP_ALL
from windlass.core.settings import QueueSettings
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import OnConflict, Unique
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient, Woken, asleep
from windlass.testing.conformance.given import (
    HOUR,
    MINUTE,
    a_job,
    claimed,
    found,
)
from windlass.testing.conformance.reach import Reach, at_once

FINISHED = Unique("k", until="finished")
BY_TIME = Unique("k", until=HOUR)
RAISE = Unique("k", on_conflict="raise")
REPLACE = Unique("k", on_conflict="replace")


async def test_a_held_key_may_raise(client: Client, reach: Reach) -> None:
    first = await client.enqueue("email", b"", unique="k")

    with pytest.raises(UniqueConflict) as conflict:
        await client.enqueue("email", b"", unique=RAISE, kv=reach.kv({"k": b"v"}))

    assert (conflict.value.key, conflict.value.job_id) == ("k", first.id)
    assert await client.kv.get("k") is None
    assert (await client.stats("email")).totals.enqueued == 1


async def test_a_free_key_raises_nothing(client: Client) -> None:
    assert (await client.enqueue("email", b"", unique=RAISE)).created


@pytest.mark.parametrize("on_conflict", ["keep", "raise"])
async def test_another_payload_under_a_matched_key_raises(client: Client, on_conflict: OnConflict) -> None:
    key = Unique("k", match_payload=True, on_conflict=on_conflict)
    await client.enqueue("email", b"1", unique=key)

    with pytest.raises(UniqueConflict):
        await client.enqueue("email", b"2", unique=key)

    assert (await client.stats("email")).pending == 1


async def test_the_same_payload_under_a_matched_key_is_a_hit(client: Client) -> None:
    key = Unique("k", match_payload=True)
    first = await client.enqueue("email", {"n": 1}, unique=key)

    assert await client.enqueue("email", {"n": 1}, unique=key) == (first.id, False)


async def test_a_payload_is_matched_also_after_its_record_is_gone(open_client: OpenClient) -> None:
    client = await open_client(QueueSettings(keep_succeeded=0))
    key = Unique("k", until=HOUR, match_payload=True)
    first = await client.enqueue("email", b"1", unique=key)
    await client.ack(await claimed(client, "email"))

    assert await client.enqueue("email", b"1", unique=key) == (first.id, False)
    with pytest.raises(UniqueConflict):
        await client.enqueue("email", b"2", unique=key)


async def test_a_waiting_job_takes_payload_and_time_of_the_newer_call(client: Client, clock: FakeClock) -> None:
    first = await client.enqueue("email", b"1", unique=REPLACE, priority=5, headers={"h": "1"}, delay=1)
    before = await found(client, first.id)

    second = await client.enqueue("email", {"n": 2}, unique=REPLACE, priority=9, headers={"h": "2"}, delay=MINUTE)

    assert second == (first.id, False)
    job = await found(client, first.id)
    assert (job.payload, job.codec, job.run_at) == (b'{"n":2}', "json", clock.now() + MINUTE)
    assert (job.seq, job.priority, dict(job.headers)) == (before.seq, 5, {"h": "1"})
    assert (job.state, job.created_at, job.unique_key) == (State.SCHEDULED, before.created_at, "k")
    assert (await client.stats("email")).totals.enqueued == 1


async def test_the_state_of_a_replaced_job_follows_its_time(client: Client) -> None:
    first = await client.enqueue("email", b"1", unique=REPLACE)
    await client.enqueue("email", b"2", unique=REPLACE, delay=MINUTE)
    assert (await found(client, first.id)).state is State.SCHEDULED
    assert await client.claim("email") is None

    await client.enqueue("email", b"3", unique=REPLACE)

    assert (await found(client, first.id)).state is State.PENDING
    assert (await claimed(client, "email")).job.payload == b"3"


async def test_a_replacement_writes_its_kv(client: Client, store: Store, reach: Reach) -> None:
    await client.enqueue("email", b"1", unique=REPLACE, kv=reach.kv({"k": b"1"}))

    async with at_once(store):
        await client.enqueue("email", b"2", unique=REPLACE, kv={"k": b"2"})

        assert await client.kv.get("k") == b"2"


async def test_a_replacement_wakes_a_waiting_claim(client: Client, clock: FakeClock, woken: Woken) -> None:
    await client.enqueue("email", b"1", unique=REPLACE, delay=HOUR)
    waiting = await asleep(clock, client.claim("email", wait=10))

    await client.enqueue("email", b"2", unique=REPLACE)

    claim = await woken(waiting)
    assert claim is not None
    assert claim.job.payload == b"2"


async def test_a_claimed_job_is_not_replaced(client: Client) -> None:
    first = await client.enqueue("email", b"1", unique=REPLACE)
    await claimed(client, "email")

    second = await client.enqueue("email", b"2", unique=REPLACE)

    assert second.created
    assert (await found(client, first.id)).payload == b"1"


async def test_a_holder_that_does_not_wait_cannot_be_replaced(client: Client) -> None:
    await client.enqueue("email", b"1", unique=FINISHED)
    await claimed(client, "email")

    with pytest.raises(UniqueConflict):
        await client.enqueue("email", b"2", unique=REPLACE)


async def test_a_holder_whose_record_is_gone_cannot_be_replaced(client: Client) -> None:
    first = await client.enqueue("email", b"1", unique=BY_TIME)
    await client.cancel(first.id)
    await client.delete(first.id)

    with pytest.raises(UniqueConflict):
        await client.enqueue("email", b"2", unique=REPLACE)


async def test_a_replaced_payload_is_what_is_matched(client: Client) -> None:
    first = await client.enqueue("email", b"1", unique=REPLACE)
    await client.enqueue("email", b"2", unique=REPLACE)
    matched = Unique("k", match_payload=True)

    assert await client.enqueue("email", b"2", unique=matched) == (first.id, False)
    with pytest.raises(UniqueConflict):
        await client.enqueue("email", b"1", unique=matched)


async def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(InvalidValue):
        Unique("k", until="finished", on_conflict="replace")
    with pytest.raises(InvalidValue):
        Unique("k", on_conflict="replace", match_payload=True)


async def test_a_second_equal_key_in_a_batch_hits_the_first(client: Client, reach: Reach) -> None:
    new = [NewJob("email", bytes([n]), unique="k", kv=reach.kv({"k": bytes([n])})) for n in range(3)]

    done = await client.enqueue_many(new)

    assert [each.created for each in done] == [True, False, False]
    assert len({each.id for each in done}) == 1
    assert (await found(client, done[0].id)).payload == b"\x00"
    assert await client.kv.get("k") == reach.kv({"k": b"\x00"}).get("k")


async def test_a_second_equal_key_in_a_batch_may_refuse_it(client: Client) -> None:
    with pytest.raises(UniqueConflict):
        await client.enqueue_many([NewJob("email", b"", unique=RAISE), NewJob("email", b"", unique=RAISE)])

    assert await client.queues() == []


async def test_a_second_equal_key_in_a_batch_may_replace_the_first(client: Client) -> None:
    done = await client.enqueue_many([NewJob("email", b"1", unique=REPLACE), NewJob("email", b"2", unique=REPLACE)])

    assert [each.created for each in done] == [True, False]
    assert (await claimed(client, "email")).job.payload == b"2"


async def test_a_retry_takes_the_key_again(client: Client) -> None:
    first = await client.enqueue("email", b"", unique=FINISHED)
    await client.dead_letter(await claimed(client, "email"), "no")

    await client.retry(first.id)

    assert await client.enqueue("email", b"", unique=FINISHED) == (first.id, False)


async def test_a_retry_of_a_job_whose_key_is_held_is_refused(client: Client) -> None:
    first = await client.enqueue("email", b"", unique=FINISHED)
    await client.dead_letter(await claimed(client, "email"), "no")
    await client.enqueue("email", b"", unique=FINISHED)
    before = await found(client, first.id)

    with pytest.raises(UniqueConflict):
        await client.retry(first.id)
    with pytest.raises(UniqueConflict):
        await client.requeue_dead(first.id)

    assert await found(client, first.id) == before


async def test_a_cancelled_job_takes_its_key_again_by_a_retry(client: Client) -> None:
    first = await client.enqueue("email", b"", unique="k")
    await client.cancel(first.id)

    await client.retry(first.id)

    assert await client.enqueue("email", b"", unique="k") == (first.id, False)


async def test_a_retry_by_filter_leaves_out_and_counts_what_is_held(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    held = await client.enqueue("email", b"", unique=FINISHED)
    await client.dead_letter(await claimed(client, "email"), "no")
    free = await client.enqueue("email", b"")
    await client.dead_letter(await claimed(client, "email"), "no")
    await client.enqueue("email", b"", unique=FINISHED)

    with caplog.at_level(logging.WARNING, "windlass"):
        assert await client.retry(JobFilter(queue="email", state=State.DEAD)) == 1

    assert (await found(client, held.id)).state is State.DEAD
    assert (await found(client, free.id)).state is State.PENDING
    assert any("1 jobs" in record.getMessage() for record in caplog.records)


async def test_of_two_retried_jobs_with_one_key_the_first_gets_it(store: Store) -> None:
    first, second = a_job(unique=FINISHED), a_job(unique=FINISHED)
    for job in (first, second):
        await store.enqueue([job])
        await store.cancel([job.id], KEEP_ALL)

    assert await store.retry([first.id, second.id]) == [Changed.DONE, Changed.KEY_HELD]


async def test_a_retry_does_not_conflict_with_the_jobs_own_key_by_time(client: Client) -> None:
    first = await client.enqueue("email", b"", unique=BY_TIME)
    await client.dead_letter(await claimed(client, "email"), "no")

    await client.retry(first.id)

    assert (await found(client, first.id)).state is State.PENDING
    assert await client.enqueue("email", b"", unique=BY_TIME) == (first.id, False)


async def test_a_retry_does_not_hold_a_key_by_time_for_longer(client: Client, clock: FakeClock) -> None:
    first = await client.enqueue("email", b"", unique=BY_TIME)
    await client.dead_letter(await claimed(client, "email"), "no")
    clock.advance(HOUR)

    await client.retry(first.id)

    assert (await client.enqueue("email", b"", unique=BY_TIME)).created
