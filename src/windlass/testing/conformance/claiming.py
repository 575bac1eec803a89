"""Jobs go out: to one holder at a time, fenced, in the state that says so."""

import asyncio
from datetime import timedelta

from windlass.client.client import Client
from windlass.core.job import NewJob
from windlass.core.settings import QueueSettings
from windlass.core.states import State
from windlass.core.store import Store
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient, Woken, asleep, outlast, rearmed
from windlass.testing.conformance.given import (
    AT_ONCE,
    HOUR,
    MINUTE,
    SECOND,
    a_job,
    claim_one,
    claimed,
    found,
    released,
    wanting,
)


async def test_a_claimed_job_is_what_was_enqueued(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"hello")

    claim = await claimed(client, "email", lease=30)

    job = claim.job
    assert (job.id, job.queue, job.payload) == (done.id, "email", b"hello")
    assert (job.state, job.attempt, job.delivery, claim.delivery) == (State.RUNNING, 1, 1, 1)
    assert job.claimed_at == clock.now()
    assert job.lease_expires_at == clock.now() + timedelta(seconds=30)
    assert (await found(client, done.id))._replace(history=(), log=()) == job


async def test_an_empty_queue_gives_nothing(client: Client, store: Store) -> None:
    assert await client.claim("email") is None
    assert await client.claim_many(["email", "other"], limit=10) == []
    assert await client.claim_many([], limit=10) == []
    assert (await store.claim(wanting("email", limit=0))).jobs == []


async def test_an_acked_job_is_not_given_again(client: Client) -> None:
    await client.enqueue("email", b"")
    claim = await claimed(client, "email")

    await client.ack(claim)

    assert await client.claim("email") is None


async def test_each_queue_gives_its_own_jobs(client: Client) -> None:
    email = await client.enqueue("email", b"")
    sms = await client.enqueue("sms", b"")

    assert (await claimed(client, "email")).job.id == email.id
    assert await client.claim("email") is None
    assert (await claimed(client, "sms")).job.id == sms.id
    assert await client.claim("sms") is None


async def test_a_queue_may_have_settings_of_its_own(open_client: OpenClient, clock: FakeClock) -> None:
    client = await open_client(queues={"fast": QueueSettings(max_attempts=1, lease=5)})
    await client.enqueue("fast", b"")
    await client.enqueue("other", b"")

    fast = (await claimed(client, "fast")).job
    other = (await claimed(client, "other")).job

    assert (fast.max_attempts, fast.lease_expires_at) == (1, clock.now() + timedelta(seconds=5))
    assert (other.max_attempts, other.lease_expires_at) == (3, clock.now() + timedelta(seconds=30))


async def test_one_job_has_one_holder(open_client: OpenClient) -> None:
    one, other = await open_client(), await open_client()
    done = await one.enqueue("email", b"")

    assert (await claimed(one, "email")).job.id == done.id
    assert await other.claim("email") is None


async def test_rivals_share_the_jobs_and_no_job_twice(client: Client) -> None:
    done = await client.enqueue_many([NewJob("email") for _ in range(50)])

    claims = await asyncio.gather(*(client.claim_many(["email"], limit=7) for _ in range(10)))

    given = [claim for several in claims for claim in several]
    assert sorted(claim.job.id for claim in given) == sorted(each.id for each in done)
    assert len({claim.token for claim in given}) == 50


async def test_each_claimed_job_has_a_token_of_its_own(store: Store) -> None:
    await store.enqueue([a_job() for _ in range(20)])

    claims = (await store.claim(wanting(limit=20))).jobs

    assert len({claim.token for claim in claims}) == 20
    assert all(len(claim.token) >= 16 for claim in claims)
    assert not {claim.token for claim in claims} & {claim.job.id for claim in claims}


async def test_a_token_is_never_given_twice(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job()])
    tokens: set[str] = set()
    for _ in range(10):
        claim = await claim_one(store)
        tokens.add(claim.token)
        await store.settle([released(claim)])
        clock.advance(SECOND)

    assert len(tokens) == 10


async def test_a_claim_gives_no_more_than_its_limit(client: Client) -> None:
    await client.enqueue_many([NewJob("email") for _ in range(5)])

    assert len(await client.claim_many(["email"], limit=3)) == 3
    assert len(await client.claim_many(["email"], limit=3)) == 2
    assert await client.claim_many(["email"], limit=0) == []


async def test_queues_are_claimed_from_strictly_in_their_order(client: Client) -> None:
    for queue in ("c", "a", "b", "a"):
        await client.enqueue(queue, b"", priority=1 if queue == "c" else None)

    claims = await client.claim_many(["a", "b", "c"], limit=4)

    assert [claim.job.queue for claim in claims] == ["a", "a", "b", "c"]


async def test_the_first_queue_is_emptied_before_the_second_is_touched(client: Client) -> None:
    for queue in ("b", "b", "a", "a"):
        await client.enqueue(queue, b"")

    claims = await client.claim_many(["b", "a"], limit=3)

    assert [claim.job.queue for claim in claims] == ["b", "b", "a"]
    assert (await client.stats("a")).pending == 1


async def test_only_the_kinds_that_were_asked_for_are_given(client: Client) -> None:
    for kind in (None, "x", "y", "x", "z"):
        await client.enqueue("email", b"", kind=kind)

    claims = await client.claim_many(["email"], limit=10, kinds=["x", "z"])

    assert [claim.job.kind for claim in claims] == ["x", "x", "z"]
    assert [claim.job.kind for claim in await client.claim_many(["email"], limit=10)] == [None, "y"]


async def test_no_kinds_means_no_jobs(client: Client) -> None:
    await client.enqueue("email", b"", kind="x")

    assert await client.claim("email", kinds=[]) is None


async def test_a_kind_is_found_behind_a_thousand_others(client: Client) -> None:
    await client.enqueue_many([NewJob("email", kind="other") for _ in range(1_000)])
    done = await client.enqueue("email", b"", kind="mine", priority=9_999)

    claim = await client.claim("email", kinds=["mine"])

    assert claim is not None
    assert claim.job.id == done.id


async def test_a_due_job_is_given_without_any_service(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"", delay=MINUTE)
    due = clock.now() + MINUTE
    clock.advance(MINUTE - timedelta(microseconds=1))
    assert await client.claim("email") is None

    clock.advance(timedelta(microseconds=1))

    claim = await claimed(client, "email")
    assert (claim.job.id, claim.job.run_at) == (done.id, due)


async def test_a_lease_of_zero_is_allowed(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email", b"")

    claim = await claimed(client, "email", lease=0)

    assert claim.job.lease_expires_at == clock.now()
    await client.ack(claim)


async def test_an_expired_lease_alone_gives_the_job_to_nobody(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email", b"")
    claim = await claimed(client, "email", lease=1)

    clock.advance(HOUR)

    assert await client.claim("email") is None
    await client.ack(claim)


async def test_a_claim_waits_for_its_time_and_no_longer(client: Client, clock: FakeClock) -> None:
    began = clock.now()

    assert await outlast(clock, client.claim("email", wait=5)) is None

    assert clock.now() >= began + timedelta(seconds=5)


async def test_a_waiting_claim_is_woken_by_an_enqueue(client: Client, clock: FakeClock, woken: Woken) -> None:
    waiting = await asleep(clock, client.claim("email", wait=10))

    done = await client.enqueue("email", b"")

    claim = await woken(waiting)
    assert claim is not None
    assert claim.job.id == done.id


async def test_a_waiting_claim_is_woken_through_another_client(
    open_client: OpenClient, clock: FakeClock, woken: Woken
) -> None:
    one, other = await open_client(), await open_client()
    waiting = await asleep(clock, one.claim_many(["sms", "email"], limit=3, wait=10))

    done = await other.enqueue("email", b"")

    assert [claim.job.id for claim in await woken(waiting)] == [done.id]


async def test_a_waiting_claim_takes_a_job_when_it_comes_due(client: Client, clock: FakeClock, woken: Woken) -> None:
    done = await client.enqueue("email", b"", delay=20)
    waiting = await asleep(clock, client.claim("email", wait=60))

    clock.advance(20)

    claim = await woken(waiting)
    assert claim is not None
    assert claim.job.id == done.id


async def test_a_waiting_claim_hears_of_a_job_that_comes_due_earlier(
    client: Client, clock: FakeClock, store: Store
) -> None:
    await client.enqueue("email", b"late", delay=50)
    waiting = await asleep(clock, client.claim("email", wait=60))
    hearing = asyncio.ensure_future(rearmed(clock, clock.waiting))

    await client.enqueue("email", b"early", delay=5)
    if store.features.wakes_waiters:
        await hearing
    hearing.cancel()
    clock.advance(5)

    # a look that began before may have been told of a later time
    claim = await outlast(clock, waiting)
    assert claim is not None
    assert claim.job.payload == b"early"


async def test_a_waiting_claim_is_woken_by_a_retry_at_once(
    open_client: OpenClient, clock: FakeClock, woken: Woken
) -> None:
    client = await open_client(AT_ONCE)
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    waiting = await asleep(clock, client.claim("email", wait=10))

    await client.nack(claim, "boom")

    again = await woken(waiting)
    assert again is not None
    assert (again.job.id, again.job.attempt) == (done.id, 2)


async def test_a_waiting_claim_is_woken_by_a_release_and_a_rescue(
    client: Client, clock: FakeClock, woken: Woken
) -> None:
    await client.enqueue("email", b"")
    claim = await claimed(client, "email", lease=0)
    waiting = await asleep(clock, client.claim("email", lease=0, wait=10))
    await client.release(claim)
    assert await woken(waiting) is not None
    waiting = await asleep(clock, client.claim("email", lease=0, wait=10))

    await client.rescue()

    again = await woken(waiting)
    assert again is not None
    assert again.delivery == 3


async def test_a_waiting_claim_is_woken_by_an_operators_retry(client: Client, clock: FakeClock, woken: Woken) -> None:
    done = await client.enqueue("email", b"")
    await client.dead_letter(await claimed(client, "email"), "no")
    waiting = await asleep(clock, client.claim("email", wait=10))

    await client.retry(done.id)

    assert await woken(waiting) is not None


async def test_one_job_ends_one_of_many_waiting_claims(client: Client, clock: FakeClock, woken: Woken) -> None:
    waiting = [await asleep(clock, client.claim("email", wait=10)) for _ in range(4)]

    await client.enqueue("email", b"")
    done, _ = await woken(asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED))

    assert len(done) == 1
    assert (await client.stats("email")).running == 1
    rest = await outlast(clock, asyncio.gather(*waiting))
    assert sum(claim is not None for claim in rest) == 1


async def test_a_cancelled_wait_strands_no_job(client: Client, clock: FakeClock) -> None:
    waiting = await asleep(clock, client.claim("email", wait=10))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    done = await client.enqueue("email", b"")

    assert (await claimed(client, "email")).job.id == done.id


async def test_a_claim_that_is_cancelled_on_its_way_gives_the_job_back(open_client: OpenClient, store: Store) -> None:
    client = await open_client()
    done = await client.enqueue("email", b"")
    for turns in range(8):
        claiming = asyncio.ensure_future(client.claim("email"))
        for _ in range(turns):
            await asyncio.sleep(0)
        claiming.cancel()
        [answer] = await asyncio.gather(claiming, return_exceptions=True)
        if answer is not None and not isinstance(answer, BaseException):
            await client.release(answer)

    # a client that is closed has given back what came too late for its callers
    await client.close()

    [job] = await store.get([done.id])
    assert job is not None
    assert (job.state, job.attempt) == (State.PENDING, 0)


async def test_a_queue_that_is_named_twice_gives_no_job_twice(client: Client) -> None:
    await client.enqueue_many([NewJob("email") for _ in range(3)])

    claims = await client.claim_many(["email", "email"], limit=10)

    assert len({claim.job.id for claim in claims}) == len(claims) == 3
