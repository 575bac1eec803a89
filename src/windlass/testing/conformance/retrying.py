"""Failed attempts wait by the policy; operators give ended jobs another life, or delete them."""

from datetime import timedelta

import pytest

from windlass.client.client import Client
from windlass.core.errors import JobNotFound, WrongState
from windlass.core.filters import JobFilter
from windlass.core.requests import Changed
from windlass.core.retention import KEEP_ALL
from windlass.core.retry import Exponential, Fixed, NoRetry, retry_delay
from windlass.core.settings import QueueSettings
from windlass.core.states import State
from windlass.core.store import Store
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient
from windlass.testing.conformance.given import SECOND, UNKNOWN, a_dead_job, a_job, claim_one, claimed, found, settlement

MILLISECOND = timedelta(milliseconds=1)


async def test_a_failed_attempt_waits_as_scheduled(client: Client) -> None:
    await client.enqueue("email", b"")

    await client.nack(await claimed(client, "email"), "boom")

    stats = await client.stats("email")
    assert (stats.pending, stats.running, stats.scheduled) == (0, 0, 1)
    assert await client.claim("email") is None


async def test_the_wait_doubles_up_to_its_cap() -> None:
    policy = Exponential(base=1, cap=60, jitter="none")

    waits = [retry_delay(policy, attempt, None, 0.5) for attempt in (1, 2, 3, 4, 20)]

    assert waits == [timedelta(seconds=n) for n in (1, 2, 4, 8, 60)]
    assert retry_delay(Exponential(base=0), 5, None, 0.5) == timedelta(0)


async def test_a_failed_attempt_is_followed_by_the_next_after_its_wait(
    open_client: OpenClient, clock: FakeClock
) -> None:
    client = await open_client(QueueSettings(retry=Fixed(10 * MILLISECOND)))
    await client.enqueue("email", b"")
    await client.nack(await claimed(client, "email"), "boom")
    clock.advance(20 * MILLISECOND)

    assert await client.promote() == 1

    job = (await claimed(client, "email")).job
    assert (job.attempt, job.last_error) == (2, "boom")


async def test_the_waits_of_a_job_follow_its_attempts(open_client: OpenClient, clock: FakeClock) -> None:
    client = await open_client(QueueSettings(max_attempts=5, retry=Exponential(base=1, jitter="none")))
    done = await client.enqueue("email", b"")
    waits: list[float] = []
    for _ in range(4):
        await client.nack(await claimed(client, "email"), "boom")
        wait = (await found(client, done.id)).run_at - clock.now()
        waits.append(wait.total_seconds())
        clock.advance(wait)

    assert waits == [1, 2, 4, 8]


async def test_a_policy_may_give_up_early(open_client: OpenClient) -> None:
    client = await open_client(QueueSettings(max_attempts=5, retry=NoRetry()))
    done = await client.enqueue("email", b"")

    await client.nack(await claimed(client, "email"), "boom")

    assert (await found(client, done.id)).state is State.DEAD


async def test_the_policy_is_that_of_the_process_that_settles(open_client: OpenClient, clock: FakeClock) -> None:
    producer = await open_client(QueueSettings(retry=Fixed(5)))
    consumer = await open_client(queues={"email": QueueSettings(retry=Fixed(7))})
    done = await producer.enqueue("email", b"")

    await consumer.nack(await claimed(consumer, "email"), "boom")

    assert (await found(producer, done.id)).run_at == clock.now() + timedelta(seconds=7)


async def test_a_dead_job_can_be_requeued(client: Client) -> None:
    job_id = await a_dead_job(client)
    [listed] = await client.dead_jobs("email")
    assert (listed.id, listed.state) == (job_id, State.DEAD)

    await client.requeue_dead(job_id)

    job = (await claimed(client, "email")).job
    assert (job.id, job.attempt, job.last_error) == (job_id, 1, None)


async def test_a_retried_job_has_a_full_new_budget(open_client: OpenClient, clock: FakeClock) -> None:
    client = await open_client(QueueSettings(max_attempts=2, retry=Fixed(0)))
    done = await client.enqueue("email", b"")
    for _ in range(2):
        await client.nack(await claimed(client, "email"), "boom")
    clock.advance(SECOND)

    assert await client.retry(done.id) == 1

    job = await found(client, done.id)
    assert (job.state, job.attempt, job.delivery, job.run_at) == (State.PENDING, 0, 2, clock.now())
    assert (job.last_error, job.finished_at, job.claimed_at, job.worker) == (None, None, None, None)
    assert [each.delivery for each in job.history] == [1, 2]
    for _ in range(2):
        await client.nack(await claimed(client, "email"), "boom")
    assert (await found(client, done.id)).state is State.DEAD


async def test_a_cancelled_job_can_be_retried_and_has_no_flag(client: Client) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    await client.cancel(done.id)
    await client.cancel_claim(claim, "asked to")

    await client.retry(done.id)

    again = await claimed(client, "email")
    assert (again.job.cancel_requested, again.cancelled.is_set()) == (False, False)


async def test_only_a_dead_job_can_be_requeued(client: Client) -> None:
    done = await client.enqueue("email", b"")
    await client.cancel(done.id)

    with pytest.raises(WrongState):
        await client.requeue_dead(done.id)
    with pytest.raises(JobNotFound):
        await client.requeue_dead(UNKNOWN)

    assert (await found(client, done.id)).state is State.CANCELLED


async def test_only_dead_and_cancelled_jobs_can_be_retried(client: Client) -> None:
    done = await client.enqueue("email", b"")
    with pytest.raises(WrongState) as pending:
        await client.retry(done.id)
    claim = await claimed(client, "email")
    with pytest.raises(WrongState) as running:
        await client.retry(done.id)
    await client.ack(claim)
    with pytest.raises(WrongState) as succeeded:
        await client.retry(done.id)
    with pytest.raises(JobNotFound):
        await client.retry(UNKNOWN)

    assert [error.value.state for error in (pending, running, succeeded)] == ["pending", "running", "succeeded"]


async def test_jobs_are_retried_by_filter(client: Client) -> None:
    dead = [await a_dead_job(client) for _ in range(3)]
    cancelled = await client.enqueue("email", b"")
    await client.cancel(cancelled.id)
    other = await client.enqueue("sms", b"")
    await client.cancel(other.id)
    await client.enqueue("email", b"")

    assert await client.retry(JobFilter(queue="email")) == 4

    stats = await client.stats("email")
    assert (stats.pending, stats.dead, stats.cancelled) == (5, 0, 0)
    assert (await found(client, other.id)).state is State.CANCELLED
    assert (await found(client, dead[0])).state is State.PENDING


async def test_a_filter_works_through_more_than_one_chunk(client: Client, store: Store) -> None:
    jobs = [a_job() for _ in range(2_100)]
    await store.enqueue(jobs)
    await store.cancel([job.id for job in jobs], KEEP_ALL)

    assert await client.retry(JobFilter(state=State.CANCELLED)) == 2_100
    assert (await client.stats()).pending == 2_100


async def test_a_finished_job_can_be_deleted(client: Client) -> None:
    job_id = await a_dead_job(client)

    assert await client.delete(job_id) == 1

    assert await client.get(job_id) is None
    with pytest.raises(JobNotFound):
        await client.delete(job_id)
    assert (await client.stats("email")).dead == 0


async def test_only_a_finished_job_can_be_deleted(client: Client) -> None:
    waiting = await client.enqueue("email", b"", delay=5)
    running = await client.enqueue("email", b"")
    claim = await claimed(client, "email")

    for job_id in (waiting.id, running.id):
        with pytest.raises(WrongState):
            await client.delete(job_id)

    await client.ack(claim)
    assert await client.get(waiting.id) is not None


async def test_jobs_are_deleted_by_filter_and_others_left(client: Client) -> None:
    await a_dead_job(client)
    done = await client.enqueue("email", b"")
    await client.ack(await claimed(client, "email"))
    await client.enqueue("email", b"waiting")

    assert await client.delete(JobFilter(state=State.DEAD)) == 1
    assert await client.get(done.id) is not None
    assert await client.delete(JobFilter(queue="email")) == 1

    assert [job.payload for job in await client.jobs()] == [b"waiting"]


async def test_several_jobs_are_changed_each_by_its_own_state(store: Store) -> None:
    ended, waiting = a_job(), a_job()
    await store.enqueue([ended, waiting])
    await store.settle([settlement(await claim_one(store))])

    assert await store.retry([ended.id, waiting.id, UNKNOWN]) == [
        Changed.WRONG_STATE,
        Changed.WRONG_STATE,
        Changed.NOT_FOUND,
    ]
    assert await store.delete([ended.id, waiting.id, ended.id]) == [
        Changed.DONE,
        Changed.WRONG_STATE,
        Changed.NOT_FOUND,
    ]
