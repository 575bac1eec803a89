"""A call whose reply was lost may be repeated: it does nothing again and gives the first answer."""

from uuid import uuid4

import pytest

from windlass.client.client import Client
from windlass.core.errors import ClaimLost, UniqueConflict
from windlass.core.job import Failure, NewJob
from windlass.core.requests import Changed, RescueRequest, Settled, Settlement
from windlass.core.retention import KEEP_ALL
from windlass.core.settings import QueueSettings
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient
from windlass.testing.conformance.given import SECOND, a_job, claim_one, claimed, settlement, wanting
from windlass.testing.conformance.reach import Reach


async def test_an_enqueue_repeated_with_its_id_is_one_job(client: Client) -> None:
    job_id = uuid4()

    answers = [await client.enqueue("email", b"", id=job_id) for _ in range(3)]

    assert [answer.created for answer in answers] == [True, False, False]
    assert (await client.stats("email")).totals.enqueued == 1


async def test_an_enqueue_repeated_with_its_request_gives_the_first_answer(store: Store, reach: Reach) -> None:
    jobs = [a_job(unique=Unique("k"), kv=reach.kv({b"k": b"1"})), a_job(unique=Unique("k"))]

    first = await store.enqueue(jobs, request_id="r1")
    second = await store.enqueue(jobs, request_id="r1")

    assert first == second == [(jobs[0].id, True), (jobs[0].id, False)]
    [row] = await store.stats()
    assert (row.pending, row.totals.enqueued) == (1, 1)


async def test_a_claim_repeated_with_its_request_gives_the_same_claims(store: Store) -> None:
    await store.enqueue([a_job() for _ in range(5)])

    first = (await store.claim(wanting(limit=2), request_id="r1")).jobs
    second = (await store.claim(wanting(limit=2), request_id="r1")).jobs
    third = (await store.claim(wanting(limit=2), request_id="r2")).jobs

    assert [(c.job, c.token) for c in first] == [(c.job, c.token) for c in second]
    assert not {c.job.id for c in first} & {c.job.id for c in third}
    [row] = await store.stats()
    assert row.running == 4


async def test_a_claim_that_is_repeated_gives_the_same_however_many_jobs_came_due(
    store: Store, clock: FakeClock
) -> None:
    await store.enqueue([a_job(delay=SECOND) for _ in range(2_500)])
    clock.advance(SECOND)

    first = (await store.claim(wanting(limit=2), request_id="r1")).jobs
    second = (await store.claim(wanting(limit=2), request_id="r1")).jobs

    assert len(first) == 2
    assert [c.token for c in first] == [c.token for c in second]
    [row] = await store.stats()
    assert row.running == 2


async def test_a_claim_that_found_nothing_may_be_repeated(store: Store) -> None:
    assert (await store.claim(wanting(), request_id="r1")).jobs == []
    assert (await store.claim(wanting(), request_id="r1")).jobs == []


async def test_settlements_repeated_with_their_request_give_the_first_answer(store: Store, reach: Reach) -> None:
    await store.enqueue([a_job(), a_job()])
    one, other = (await store.claim(wanting(limit=2))).jobs
    batch = [
        Settlement(one.job.id, one.token, ToRetry(SECOND * 0, Failure("boom")), then=[a_job(reach.queue("next"))]),
        Settlement(other.job.id, other.token, ToSucceeded(), keep=False),
    ]

    first = await store.settle(batch, request_id="r1")
    # the first of them is with somebody else by now
    await claim_one(store)
    second = await store.settle(batch, request_id="r1")

    assert first == second == [Settled.DONE, Settled.DONE]
    [row] = await store.stats("default")
    assert (row.totals.retried, row.totals.succeeded) == (1, 1)
    assert sum(row.totals.enqueued for row in await store.stats()) == 3


async def test_one_request_for_calls_of_several_kinds_is_one_for_each(store: Store) -> None:
    """Who names requests by what they are about may use a name again for another kind of call."""
    job = a_job()

    made = await store.enqueue([job], request_id="r1")
    [claim] = (await store.claim(wanting(), request_id="r1")).jobs
    [settled] = await store.settle([settlement(claim)], request_id="r1")

    assert (made, claim.job.id, settled) == ([(job.id, True)], job.id, Settled.DONE)
    [row] = await store.stats()
    assert (row.succeeded, row.totals.enqueued) == (1, 1)


async def test_each_kind_of_call_that_shares_a_request_gives_its_own_first_answer(store: Store) -> None:
    await store.enqueue([a_job(), a_job()])
    jobs = [a_job(unique=Unique("k")), a_job(unique=Unique("k"))]
    settled = [settlement(claim) for claim in (await store.claim(wanting(limit=2))).jobs]
    done = await store.settle(settled, request_id="r1")
    made = await store.enqueue(jobs, request_id="r1")
    claims = (await store.claim(wanting(), request_id="r1")).jobs

    assert await store.settle(settled, request_id="r1") == done == [Settled.DONE] * 2
    assert await store.enqueue(jobs, request_id="r1") == made == [(jobs[0].id, True), (jobs[0].id, False)]
    again = (await store.claim(wanting(), request_id="r1")).jobs
    assert [claim.token for claim in again] == [claim.token for claim in claims]


@pytest.mark.parametrize(
    "verdict",
    [ToSucceeded(), ToDead(Failure("no")), ToRetry(SECOND, Failure("no")), ToSnoozed(SECOND), ToReleased()],
    ids=lambda verdict: type(verdict).__name__,
)
async def test_a_settlement_repeated_with_its_token_is_a_success(store: Store, reach: Reach, verdict: Verdict) -> None:
    job = a_job()
    await store.enqueue([job])
    claim = await claim_one(store)
    assert await store.settle([settlement(claim, verdict)]) == [Settled.DONE]
    before = await store.get([job.id]), await store.stats()

    follow_up, kv = a_job(reach.queue("next")), reach.kv({b"k": b"v"})
    again = await store.settle([Settlement(job.id, claim.token, verdict, then=[follow_up], kv=kv)])

    assert again == [Settled.REPEATED]
    assert (await store.get([job.id]), await store.stats()) == before
    assert await store.kv_get([b"k"]) == [None]


async def test_a_settlement_repeated_within_one_batch_is_done_once(store: Store) -> None:
    await store.enqueue([a_job()])
    claim = await claim_one(store)

    answers = await store.settle([settlement(claim), settlement(claim)])

    assert answers == [Settled.DONE, Settled.REPEATED]
    [row] = await store.stats()
    assert row.totals.succeeded == 1


async def test_of_two_settlements_of_one_claim_in_a_batch_the_first_counts(store: Store) -> None:
    await store.enqueue([a_job()])
    claim = await claim_one(store)

    answers = await store.settle([settlement(claim, ToReleased()), settlement(claim)])

    assert answers == [Settled.DONE, Settled.REPEATED]
    [row] = await store.stats()
    assert (row.pending, row.succeeded) == (1, 0)


async def test_a_settled_token_is_stale_once_the_job_was_claimed_again(store: Store) -> None:
    await store.enqueue([a_job()])
    claim = await claim_one(store)
    await store.settle([settlement(claim, ToReleased())])
    await claim_one(store)

    assert await store.settle([settlement(claim, ToReleased())]) == [Settled.LOST]


async def test_an_ack_may_be_repeated_by_whoever_holds_the_claim(client: Client) -> None:
    await client.enqueue("email", b"")
    claim = await claimed(client, "email")

    await client.ack(claim)
    await client.ack(claim)

    assert (await client.stats("email")).totals.succeeded == 1


async def test_an_ack_may_be_repeated_after_its_record_is_gone(open_client: OpenClient, reach: Reach) -> None:
    client = await open_client(QueueSettings(keep_succeeded=0))
    done = await client.enqueue("email", b"")
    claim = await claimed(client, "email")

    for _ in range(2):
        await client.ack(claim, then=[NewJob(reach.queue("next", "email"), b"")])

    assert await client.get(done.id) is None
    stats = await client.stats()
    assert (stats.totals.succeeded, stats.pending) == (1, 1)


async def test_a_second_ack_through_another_claim_is_refused(client: Client) -> None:
    await client.enqueue("email", b"")
    stale = await claimed(client, "email", lease=0)
    await client.rescue()
    current = await claimed(client, "email")
    await client.ack(current)

    with pytest.raises(ClaimLost):
        await client.ack(stale)

    assert (await client.stats("email")).totals.succeeded == 1


async def test_a_refused_enqueue_may_be_repeated_and_is_judged_anew(store: Store) -> None:
    await store.enqueue([a_job(unique=Unique("k"))])
    again = [a_job(unique=Unique("k", on_conflict="raise"))]
    with pytest.raises(UniqueConflict):
        await store.enqueue(again, request_id="r1")
    await claim_one(store)

    assert await store.enqueue(again, request_id="r1") == [(again[0].id, True)]


async def test_operators_calls_may_be_repeated(store: Store) -> None:
    job = a_job()
    await store.enqueue([job])
    await store.settle([settlement(await claim_one(store), ToDead(Failure("no")))])

    assert await store.retry([job.id, job.id]) == [Changed.DONE, Changed.WRONG_STATE]
    assert await store.rescue(RescueRequest(force=True), KEEP_ALL) == []
