"""How long records of finished jobs stay."""

from datetime import timedelta

from windlass.client.client import Client
from windlass.core.ids import JobId
from windlass.core.job import NewJob
from windlass.core.retention import Keep, Retention
from windlass.core.settings import QueueSettings, resolve
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient
from windlass.testing.conformance.given import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    a_dead_job,
    a_job,
    claimed,
    found,
    settlement,
    wanting,
)

MILLISECOND = timedelta(milliseconds=1)


async def _succeeded(client: Client, queue: str = "email") -> JobId:
    done = await client.enqueue(queue, b"")
    await client.ack(await claimed(client, queue))
    return done.id


async def _cancelled(client: Client, queue: str = "email") -> JobId:
    done = await client.enqueue(queue, b"")
    await client.cancel(done.id)
    return done.id


async def test_an_acked_record_that_is_not_kept_is_gone_at_once(open_client: OpenClient) -> None:
    client = await open_client(QueueSettings(keep_succeeded=0))

    job_id = await _succeeded(client)

    assert await client.get(job_id) is None
    stats = await client.stats("email")
    assert (stats.totals.succeeded, stats.succeeded, stats.pending, stats.running) == (1, 0, 0, 0)


async def test_dead_and_cancelled_records_that_are_not_kept_are_gone_at_once(open_client: OpenClient) -> None:
    client = await open_client(QueueSettings(keep_dead=0, keep_cancelled=0))

    ids = [await a_dead_job(client), await _cancelled(client)]

    assert [await client.get(job_id) for job_id in ids] == [None, None]
    assert (await client.stats("email")).totals[1:4] == (0, 1, 1)


async def test_a_kept_record_is_pruned_after_its_time(open_client: OpenClient, clock: FakeClock) -> None:
    client = await open_client(QueueSettings(keep_succeeded=20 * MILLISECOND))
    job_id = await _succeeded(client)
    assert await client.get(job_id) is not None
    clock.advance(30 * MILLISECOND)

    assert await client.prune() == 1

    assert await client.get(job_id) is None
    assert (await client.stats("email")).succeeded == 0


async def test_retention_counts_from_the_end_of_the_job(open_client: OpenClient, clock: FakeClock) -> None:
    client = await open_client(QueueSettings(keep_succeeded=500 * MILLISECOND))
    done = await client.enqueue("email", b"")
    clock.advance(600 * MILLISECOND)
    await client.ack(await claimed(client, "email"))

    assert await client.prune() == 0
    assert (await found(client, done.id)).finished_at == clock.now()

    clock.advance(550 * MILLISECOND)
    assert await client.prune() == 1
    assert await client.get(done.id) is None


async def test_a_dead_record_is_pruned_by_its_own_time(client: Client, clock: FakeClock) -> None:
    job_id = await a_dead_job(client)
    clock.advance(30 * MILLISECOND)

    assert await client.prune(keep_dead=HOUR) == 0
    assert (await found(client, job_id)).state is State.DEAD

    assert await client.prune(keep_dead=20 * MILLISECOND) == 1
    assert await client.get(job_id) is None
    assert (await client.stats("email")).dead == 0


async def test_a_retried_job_has_no_end(client: Client) -> None:
    job_id = await a_dead_job(client)
    assert (await found(client, job_id)).finished_at is not None

    await client.requeue_dead(job_id)

    assert (await claimed(client, "email")).job.finished_at is None


async def test_a_retention_that_is_just_over_has_come(client: Client, clock: FakeClock) -> None:
    job_id = await _succeeded(client)
    clock.advance(DAY - timedelta(microseconds=1))
    assert await client.prune() == 0

    clock.advance(timedelta(microseconds=1))

    assert await client.prune() == 1
    assert await client.get(job_id) is None


async def test_each_end_has_a_default_of_its_own(client: Client, clock: FakeClock) -> None:
    ids = [await _succeeded(client), await a_dead_job(client), await _cancelled(client)]
    clock.advance(DAY)

    assert await client.prune() == 2

    assert [await client.get(job_id) is None for job_id in ids] == [True, False, True]
    clock.advance(6 * DAY)
    assert await client.prune() == 1


async def test_none_keeps_for_ever(open_client: OpenClient, clock: FakeClock) -> None:
    client = await open_client(QueueSettings(keep_succeeded=None, keep_dead=None, keep_cancelled=None))
    ids = [await _succeeded(client), await a_dead_job(client), await _cancelled(client)]

    clock.advance(3_650 * DAY)

    assert await client.prune() == 0
    assert None not in [await client.get(job_id) for job_id in ids]


async def test_a_queue_may_keep_differently(open_client: OpenClient, clock: FakeClock) -> None:
    queues = {"short": QueueSettings(keep_succeeded=1), "none": QueueSettings(keep_succeeded=0)}
    client = await open_client(QueueSettings(keep_succeeded=MINUTE), queues=queues)
    ids = [await _succeeded(client, queue) for queue in ("email", "short", "none")]
    assert [await client.get(job_id) is None for job_id in ids] == [False, False, True]
    clock.advance(2)

    assert await client.prune() == 1

    assert [await client.get(job_id) is None for job_id in ids] == [False, True, True]


async def test_unfinished_jobs_are_never_pruned(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email", b"running")
    await claimed(client, "email")
    await client.enqueue("email", b"pending")
    await client.enqueue("email", b"scheduled", delay=9_000 * DAY)
    clock.advance(3_000 * DAY)

    assert await client.prune(keep_succeeded=0, keep_dead=0, keep_cancelled=0, keep_max=0) == 0

    stats = await client.stats("email")
    assert (stats.running, stats.pending, stats.scheduled) == (1, 1, 1)


async def test_records_over_the_most_are_pruned_oldest_first(client: Client, clock: FakeClock) -> None:
    ids: list[JobId] = []
    for _ in range(5):
        ids.append(await _succeeded(client))
        clock.advance(SECOND)

    assert await client.prune(keep_max=2) == 3

    assert [await client.get(job_id) is None for job_id in ids] == [True, True, True, False, False]


async def test_the_most_counts_per_queue_and_end(client: Client, clock: FakeClock) -> None:
    for queue in ("email", "sms"):
        for make in (_succeeded, a_dead_job, _cancelled):
            for _ in range(3):
                await make(client, queue)
                clock.advance(SECOND)

    assert await client.prune(keep_max=2) == 6

    for queue in ("email", "sms"):
        stats = await client.stats(queue)
        assert (stats.succeeded, stats.dead, stats.cancelled) == (2, 2, 2)


async def test_the_most_of_the_settings_holds_where_prune_is_given_none(store: Store, clock: FakeClock) -> None:
    for _ in range(3):
        await store.enqueue([a_job()])
        await store.settle([settlement(claim) for claim in (await store.claim(wanting())).jobs])
        clock.advance(SECOND)
    retention = resolve(QueueSettings(keep_succeeded=None), keep_max=1).retention

    assert [await store.prune(retention, limit=1) for _ in range(3)] == [1, 1, 0]

    [row] = await store.stats()
    assert row.succeeded == 1


async def test_the_most_and_the_time_hold_together(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job() for _ in range(5)])
    for claim in (await store.claim(wanting(limit=5))).jobs:
        await store.settle([settlement(claim)])
        clock.advance(SECOND)

    pruned = await store.prune(Retention(Keep(succeeded=3 * SECOND), most=4), limit=10)

    [row] = await store.stats()
    assert (pruned, row.succeeded) == (3, 2)


async def test_a_most_of_none_at_all_keeps_no_record(store: Store) -> None:
    await store.enqueue([a_job() for _ in range(3)])
    await store.settle([settlement(claim) for claim in (await store.claim(wanting(limit=2))).jobs])

    assert await store.prune(Retention(most=0), limit=10) == 2

    [row] = await store.stats()
    assert (row.succeeded, row.pending, row.totals.succeeded) == (0, 1, 2)


async def test_pruning_works_in_small_batches(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job() for _ in range(7)])
    await store.settle([settlement(claim) for claim in (await store.claim(wanting(limit=7))).jobs])
    clock.advance(MINUTE)
    short = Retention(Keep(succeeded=SECOND))

    assert [await store.prune(short, limit=3) for _ in range(4)] == [3, 3, 1, 0]


async def test_a_pruned_job_leaves_its_key_held_by_time(open_client: OpenClient, clock: FakeClock) -> None:
    client = await open_client(QueueSettings(keep_succeeded=1))
    key = Unique("k", until=HOUR)
    done = await client.enqueue("email", b"", unique=key)
    await client.ack(await claimed(client, "email"))
    clock.advance(MINUTE)
    await client.prune()
    assert await client.get(done.id) is None

    again = await client.enqueue("email", b"", unique=key)
    clock.advance(HOUR)
    after = await client.enqueue("email", b"", unique=key)

    assert again == (done.id, False)
    assert after.created


async def test_an_id_may_be_used_again_after_its_record_is_gone(open_client: OpenClient) -> None:
    client = await open_client(QueueSettings(keep_succeeded=0))
    done = await client.enqueue("email", b"1")
    await client.ack(await claimed(client, "email"))

    again = await client.enqueue_many([NewJob("email", b"2", id=done.id)])

    assert again == [(done.id, True)]
    claim = await claimed(client, "email")
    assert (claim.job.payload, claim.delivery) == (b"2", 1)
