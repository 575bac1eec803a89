"""Jobs come back when their holder does not: decided by the lease alone, bounded by the attempts."""

from datetime import timedelta

import pytest

from windlass.client.client import Client
from windlass.core.duration import LONGEST, ZERO
from windlass.core.errors import ClaimLost
from windlass.core.requests import Rescued, RescueRequest
from windlass.core.retention import KEEP_ALL, Keep, Retention
from windlass.core.settings import QueueSettings
from windlass.core.states import State
from windlass.core.store import Store
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient
from windlass.testing.conformance.given import DAY, HOUR, MINUTE, SECOND, a_job, claim_one, claimed, found, wanting


async def test_a_job_whose_lease_ran_out_is_given_again(client: Client) -> None:
    done = await client.enqueue("email", b"")
    await claimed(client, "email", lease=0)
    assert await client.claim("email") is None

    assert await client.rescue() == 1

    again = await claimed(client, "email")
    assert (again.job.id, again.job.attempt, again.delivery) == (done.id, 2, 2)


async def test_a_job_without_attempts_left_is_dead_after_rescue(open_client: OpenClient) -> None:
    client = await open_client(QueueSettings(max_attempts=2))
    done = await client.enqueue("email", b"")
    for _ in range(2):
        await claimed(client, "email", lease=0)
        await client.rescue()

    assert await client.claim("email") is None
    assert (await found(client, done.id)).state is State.DEAD


async def test_a_live_lease_is_left_alone(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email", lease=300)
    clock.advance(timedelta(seconds=300) - timedelta(microseconds=1))

    assert await client.rescue() == 0

    assert (await found(client, done.id)).state is State.RUNNING
    await client.ack(claim)


@pytest.mark.parametrize("lease", [DAY * 365, LONGEST])
@pytest.mark.parametrize("how", ["claimed", "renewed"])
async def test_a_claim_is_held_to_the_end_of_its_lease_however_long_that_is(
    store: Store, clock: FakeClock, lease: timedelta, how: str
) -> None:
    """None is too long, and none is made shorter by one that ends at once."""
    await store.enqueue([a_job(), a_job()])
    claim = await claim_one(store, lease=HOUR if how == "renewed" else lease)
    if how == "renewed":
        [renewed] = await store.renew([(claim.job.id, claim.token)], lease)
        assert renewed is not None
        assert renewed.lease_expires_at == clock.now() + lease
    no_lease = await claim_one(store, lease=ZERO)

    first = await store.rescue(RescueRequest(), KEEP_ALL)
    clock.advance(lease - timedelta(microseconds=1))
    early = await store.rescue(RescueRequest(), KEEP_ALL)
    clock.advance(timedelta(microseconds=1))
    due = await store.rescue(RescueRequest(), KEEP_ALL)

    assert [[each.id for each in page] for page in (first, early, due)] == [[no_lease.job.id], [], [claim.job.id]]


async def test_a_lease_ends_at_its_very_time(client: Client, clock: FakeClock) -> None:
    """However long its job would run, or other jobs do."""
    await client.enqueue("email", b"")
    await claimed(client, "email", lease=300)

    clock.advance(300)

    assert await client.rescue() == 1


async def test_a_claim_of_a_server_that_nobody_knows_is_rescued_by_its_lease(store: Store, clock: FakeClock) -> None:
    """The record of its server is gone before, or never was."""
    await store.enqueue([a_job()])
    await claim_one(store, lease=MINUTE, worker="gone#1")
    await store.leave("gone#1")
    clock.advance(MINUTE)

    [rescued] = await store.rescue(RescueRequest(), KEEP_ALL)

    assert rescued.state is State.PENDING


async def test_a_server_of_the_same_name_keeps_no_claims_of_its_predecessor_alive(
    store: Store, clock: FakeClock
) -> None:
    await store.enqueue([a_job(), a_job()])
    old = await claim_one(store, lease=MINUTE, worker="same#1")
    clock.advance(MINUTE - SECOND)
    new = await claim_one(store, lease=MINUTE, worker="same#1")
    await store.renew([(new.job.id, new.token)], MINUTE)
    clock.advance(SECOND)

    rescued = await store.rescue(RescueRequest(), KEEP_ALL)

    assert [each.id for each in rescued] == [old.job.id]


async def test_an_ack_after_the_lease_and_before_rescue_counts(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email", lease=1)
    clock.advance(MINUTE)
    await client.ack(claim)

    assert await client.rescue() == 0

    assert await client.claim("email") is None
    assert (await found(client, done.id)).state is State.SUCCEEDED


async def test_a_rescued_job_waits_with_the_attempt_that_it_was_charged(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")
    await claimed(client, "email", lease=1)
    clock.advance(MINUTE)

    await client.rescue()

    job = await found(client, done.id)
    assert (job.state, job.attempt, job.run_at) == (State.PENDING, 1, clock.now())
    assert (job.claimed_at, job.lease_expires_at, job.worker) == (None, None, None)
    assert job.last_error is not None
    assert "lease expired" in job.last_error


async def test_rescue_of_the_last_attempt_makes_the_job_dead(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")
    for _ in range(3):
        await claimed(client, "email", lease=1)
        clock.advance(MINUTE)
        await client.rescue()

    job = await found(client, done.id)
    assert (job.state, job.attempt, job.finished_at) == (State.DEAD, 3, clock.now())
    assert job.claimed_at is not None
    assert job.lease_expires_at is None


async def test_an_operator_can_end_every_claim_of_some_queues(client: Client, clock: FakeClock) -> None:
    for queue in ("default", "publish", "other"):
        await client.enqueue(queue, b"")
        await claimed(client, queue)
    waiting = await client.enqueue("default", b"")

    assert await client.rescue(queues=["default", "publish"], force=True, to="dead") == 2

    dead = await client.dead_jobs()
    assert sorted(job.queue for job in dead) == ["default", "publish"]
    assert all("orphan" in (job.last_error or "") for job in dead)
    assert all(job.finished_at == clock.now() for job in dead)
    assert (await client.stats("other")).running == 1
    assert (await found(client, waiting.id)).state is State.PENDING


async def test_rescue_of_no_queue_does_nothing(client: Client, store: Store) -> None:
    await client.enqueue("default", b"")
    await claimed(client, "default", lease=0)

    assert await client.rescue(queues=[], force=True, to="dead") == 0
    assert await store.rescue(RescueRequest([], force=True, to="dead"), KEEP_ALL) == []

    assert (await client.stats("default")).running == 1


async def test_a_poison_job_ends_and_the_next_one_is_given(client: Client, clock: FakeClock) -> None:
    """Also not by one whose holder is gone at its last attempt, or the line would stand still."""
    poison = await client.enqueue("email", b"poison")
    for _ in range(3):
        await claimed(client, "email", lease=1)
        clock.advance(MINUTE)
        await client.rescue()
    fresh = await client.enqueue("email", b"fresh")

    assert (await found(client, poison.id)).last_error
    assert (await claimed(client, "email")).job.id == fresh.id


async def test_forced_rescue_takes_live_claims_back_to_waiting(client: Client) -> None:
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email", lease=300)

    assert await client.rescue(force=True) == 1

    assert (await found(client, done.id)).state is State.PENDING
    with pytest.raises(ClaimLost):
        await client.ack(claim)


async def test_rescue_to_dead_takes_expired_claims_alone_unless_forced(client: Client, clock: FakeClock) -> None:
    gone, live = await client.enqueue("email", b""), await client.enqueue("email", b"")
    await claimed(client, "email", lease=1)
    await claimed(client, "email", lease=300)
    clock.advance(SECOND)

    assert await client.rescue(to="dead") == 1

    dead = await found(client, gone.id)
    assert dead.state is State.DEAD
    assert "lease expired" in (dead.last_error or "")
    assert (await found(client, live.id)).state is State.RUNNING


async def test_rescue_may_be_of_some_workers_alone(store: Store) -> None:
    mine, other = a_job(), a_job()
    await store.enqueue([mine, other])
    await claim_one(store, worker="w1")
    await claim_one(store, worker="w2")

    rescued = await store.rescue(RescueRequest(workers=["w1"], force=True), KEEP_ALL)

    assert rescued == [Rescued(mine.id, State.PENDING)]


async def test_rescue_of_some_workers_goes_by_their_whole_names(store: Store) -> None:
    names = ["web#1", "web#10", "WEB#1", "web", "web#1 ", "%", None, "web#2"]
    await store.enqueue([a_job() for _ in names])
    claims = [await claim_one(store, worker=name) for name in names]

    rescued = await store.rescue(RescueRequest(workers=["web#1", "web#2", "unknown"], force=True), KEEP_ALL)

    assert {each.id for each in rescued} == {claims[0].job.id, claims[-1].job.id}
    held = await store.renew([(claim.job.id, claim.token) for claim in claims], MINUTE)
    assert [renewed is None for renewed in held] == [name in {"web#1", "web#2"} for name in names]
    assert await store.rescue(RescueRequest(workers=[], force=True), KEEP_ALL) == []


async def test_without_force_rescue_of_some_workers_waits_for_their_leases(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job(), a_job()])
    gone = await claim_one(store, worker="w1", lease=SECOND)
    await claim_one(store, worker="w1")
    clock.advance(SECOND)

    rescued = await store.rescue(RescueRequest(workers=["w1"]), KEEP_ALL)

    assert [each.id for each in rescued] == [gone.job.id]


async def test_rescue_works_page_by_page(store: Store, clock: FakeClock) -> None:
    """Live claims do not hide the expired ones."""
    live, gone = [a_job() for _ in range(30)], [a_job() for _ in range(25)]
    await store.enqueue(live)
    await store.claim(wanting(limit=30, lease=MINUTE))
    await store.enqueue(gone)
    await store.claim(wanting(limit=25, lease=SECOND))
    clock.advance(SECOND)

    pages = [await store.rescue(RescueRequest(limit=10), KEEP_ALL) for _ in range(4)]

    assert [len(page) for page in pages] == [10, 10, 5, 0]
    assert {each.id for page in pages for each in page} == {job.id for job in gone}


async def test_each_of_many_expired_claims_is_rescued_once(store: Store) -> None:
    jobs = [a_job() for _ in range(2500)]
    await store.enqueue(jobs)
    await store.claim(wanting(limit=2500, lease=timedelta(0)))

    rescued = await store.rescue(RescueRequest(limit=5000), KEEP_ALL)

    assert sorted(each.id for each in rescued) == sorted(job.id for job in jobs)
    [row] = await store.stats()
    assert (row.pending, row.running, row.totals.rescued) == (2500, 0, 2500)


async def test_each_claim_of_a_worker_is_rescued_once_among_many_of_others(store: Store) -> None:
    jobs = [a_job(max_attempts=1) for _ in range(1300)]
    await store.enqueue(jobs)
    theirs = (await store.claim(wanting(limit=800, worker="live"))).jobs
    ended = (await store.claim(wanting(limit=300, worker="ended"))).jobs
    await store.claim(wanting(limit=200, worker="live"))

    rescued = await store.rescue(RescueRequest(workers=["ended"], force=True), KEEP_ALL)

    assert sorted(each.id for each in rescued) == sorted(claim.job.id for claim in ended)
    [row] = await store.stats()
    assert (row.running, row.dead, row.totals.rescued, row.totals.dead) == (len(theirs) + 200, 300, 300, 300)


async def test_a_dead_record_that_is_not_kept_goes_with_its_rescue(store: Store) -> None:
    job = a_job(max_attempts=1)
    await store.enqueue([job])
    await claim_one(store, lease=timedelta(0))

    rescued = await store.rescue(RescueRequest(), Retention(Keep(dead=timedelta(0))))

    assert rescued == [Rescued(job.id, State.DEAD)]
    assert await store.get([job.id]) == [None]
    [row] = await store.stats()
    assert (row.totals.dead, row.totals.rescued) == (1, 1)


async def test_leases_that_nobody_will_rescue_are_counted(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job() for _ in range(3)])
    await store.claim(wanting(limit=2, lease=SECOND))
    assert await store.stranded(dead_after=MINUTE) == 0

    clock.advance(SECOND)

    assert await store.stranded(dead_after=MINUTE) == 2
