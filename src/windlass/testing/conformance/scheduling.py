"""Jobs for later: they wait as scheduled, and are pending from their time on."""

from datetime import timedelta

import pytest

from windlass.client.client import Client
from windlass.core.errors import InvalidValue, JobNotFound, WrongState
from windlass.core.ids import JobId
from windlass.core.job import PRIORITY_HIGH
from windlass.core.requests import Changed
from windlass.core.states import State
from windlass.core.store import Store
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import Woken, asleep
from windlass.testing.conformance.given import (
    HOUR,
    MINUTE,
    SECOND,
    UNKNOWN,
    a_job,
    claimed,
    enqueue_each,
    found,
    wanting,
)

MILLISECOND = timedelta(milliseconds=1)
MICROSECOND = timedelta(microseconds=1)


async def test_a_job_for_later_is_not_given_now(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email", b"", run_at=clock.now() + HOUR)

    assert await client.claim("email") is None
    stats = await client.stats("email")
    assert (stats.scheduled, stats.pending) == (1, 0)


async def test_a_run_time_in_the_past_is_pending_now(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"", run_at=clock.now() - SECOND)

    job = await found(client, done.id)
    assert (job.state, job.run_at) == (State.PENDING, clock.now())
    assert (await claimed(client, "email")).job.id == done.id


async def test_a_run_time_that_is_now_has_come(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"", run_at=clock.now())
    zero = await client.enqueue("email", b"", delay=0)

    assert (await found(client, done.id)).state is State.PENDING
    assert (await found(client, zero.id)).state is State.PENDING


async def test_thousands_that_come_due_at_once_are_each_given_once_and_in_their_order(
    store: Store, clock: FakeClock
) -> None:
    jobs = [a_job(delay=SECOND - number * MICROSECOND) for number in range(3000)]
    await store.enqueue(jobs)
    clock.advance(SECOND)

    given: list[JobId] = []
    while claims := (await store.claim(wanting(limit=700))).jobs:
        given += [claim.job.id for claim in claims]

    assert given == [job.id for job in reversed(jobs)]


async def test_promotion_makes_a_due_job_pending(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"", delay=MILLISECOND)
    assert await client.claim("email") is None
    clock.advance(5 * MILLISECOND)

    assert await client.promote() == 1

    stats = await client.stats("email")
    assert (stats.scheduled, stats.pending) == (0, 1)
    assert (await claimed(client, "email")).job.id == done.id


async def test_promotion_leaves_what_is_not_due(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email", b"", delay=HOUR)
    clock.advance(MINUTE)

    assert await client.promote() == 0

    assert (await client.stats("email")).scheduled == 1


async def test_promotion_keeps_to_its_limit(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job(delay=SECOND) for _ in range(5)])
    clock.advance(SECOND)

    assert [await store.promote(limit=2) for _ in range(4)] == [2, 2, 1, 0]


async def test_a_delay_counts_from_now(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"", delay=HOUR)

    stats = await client.stats("email")
    assert (stats.scheduled, stats.pending) == (1, 0)
    assert (await found(client, done.id)).run_at == clock.now() + HOUR


async def test_a_promoted_job_keeps_its_priority(client: Client, clock: FakeClock) -> None:
    normal = await client.enqueue("email", b"", delay=MILLISECOND)
    high = await client.enqueue("email", b"", priority=PRIORITY_HIGH)
    clock.advance(5 * MILLISECOND)
    await client.promote()

    assert [(await claimed(client, "email")).job.id for _ in range(2)] == [high.id, normal.id]


async def test_the_time_until_a_job_comes_due_is_that_of_the_earliest(store: Store, clock: FakeClock) -> None:
    await enqueue_each(store, a_job("a", delay=HOUR), a_job("a", delay=MINUTE), a_job("b", delay=SECOND))

    assert await store.due_in(["a"]) == MINUTE
    assert await store.due_in(["a", "b"]) == SECOND
    assert await store.due_in(["c"]) is None
    assert await store.due_in([]) is None
    clock.advance(2)
    assert await store.due_in(["b"]) == timedelta(0)


async def test_a_paused_queue_has_no_job_to_come_due(store: Store) -> None:
    await store.enqueue([a_job("a", delay=HOUR)])

    await store.set_paused("a", paused=True)

    assert await store.due_in(["a"]) is None


async def test_a_waiting_job_can_be_rescheduled(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")

    await client.reschedule(done.id, clock.now() + HOUR)

    job = await found(client, done.id)
    assert (job.state, job.run_at) == (State.SCHEDULED, clock.now() + HOUR)
    assert await client.claim("email") is None
    clock.advance(HOUR)
    assert (await claimed(client, "email")).job.id == done.id


async def test_a_job_can_be_run_now(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"", delay=HOUR)
    clock.advance(MINUTE)

    await client.run_now(done.id)

    job = await found(client, done.id)
    assert (job.state, job.run_at) == (State.PENDING, clock.now())
    assert (await claimed(client, "email")).job.id == done.id


async def test_rescheduling_into_the_past_means_now(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"", delay=HOUR)

    await client.reschedule(done.id, clock.now() - HOUR)

    job = await found(client, done.id)
    assert (job.state, job.run_at) == (State.PENDING, clock.now())


async def test_a_waiting_claim_is_woken_by_run_now(client: Client, clock: FakeClock, woken: Woken) -> None:
    done = await client.enqueue("email", b"", delay=HOUR)
    waiting = await asleep(clock, client.claim("email", wait=10))

    await client.run_now(done.id)

    assert await woken(waiting) is not None


async def test_only_a_waiting_job_can_be_rescheduled(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    with pytest.raises(WrongState) as running:
        await client.run_now(done.id)
    await client.ack(claim)

    with pytest.raises(WrongState) as ended:
        await client.reschedule(done.id, clock.now())
    with pytest.raises(JobNotFound):
        await client.run_now(UNKNOWN)

    assert (running.value.state, ended.value.state) == ("running", "succeeded")


async def test_several_jobs_are_rescheduled_each_by_its_own_state(store: Store, clock: FakeClock) -> None:
    job = a_job()
    await store.enqueue([job])

    changed = await store.reschedule([UNKNOWN, job.id], clock.now() + HOUR)

    assert changed == [Changed.NOT_FOUND, Changed.DONE]


async def test_a_time_without_a_zone_is_refused(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")

    with pytest.raises(InvalidValue):
        await client.reschedule(done.id, clock.now().replace(tzinfo=None))
