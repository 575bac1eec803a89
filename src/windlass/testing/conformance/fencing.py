"""A claim that no longer holds its job changes nothing: state, lease, progress, follow-up jobs."""

from collections.abc import Awaitable, Callable

import pytest

from windlass.client.client import Client
from windlass.core.errors import ClaimLost
from windlass.core.job import Claim, Failure, NewJob, Note, Progress, Token
from windlass.core.requests import RescueRequest, Settled, Settlement
from windlass.core.retention import KEEP_ALL
from windlass.core.settings import QueueSettings
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient
from windlass.testing.conformance.given import (
    MINUTE,
    SECOND,
    UNKNOWN,
    a_job,
    claim_one,
    claimed,
    found,
    released,
    settlement,
    wanting,
)
from windlass.testing.conformance.reach import Reach

VERDICTS: list[Verdict] = [
    ToSucceeded(b"stale"),
    ToRetry(SECOND, Failure("stale")),
    ToDead(Failure("stale")),
    ToSnoozed(SECOND),
    ToReleased(),
    ToCancelled("stale"),
]


@pytest.mark.parametrize("verdict", VERDICTS, ids=lambda verdict: type(verdict).__name__)
async def test_a_stale_settlement_changes_nothing(store: Store, reach: Reach, verdict: Verdict) -> None:
    job, follow_up, kv = a_job(), a_job(reach.queue("next")), reach.kv({b"k": b"v"})
    await store.enqueue([job])
    stale = await claim_one(store)
    await store.rescue(RescueRequest(force=True), KEEP_ALL)
    current = await claim_one(store)
    before = await store.get([job.id]), await store.stats()

    answer = await store.settle([Settlement(job.id, stale.token, verdict, True, [follow_up], kv)])  # noqa: FBT003

    assert answer == [Settled.LOST]
    assert (await store.get([job.id]), await store.stats()) == before
    assert await store.kv_get([b"k"]) == [None]
    assert await store.settle([settlement(current)]) == [Settled.DONE]


@pytest.mark.parametrize("verdict", VERDICTS, ids=lambda verdict: type(verdict).__name__)
async def test_a_rescued_job_that_waits_is_settled_by_nobody(store: Store, verdict: Verdict) -> None:
    job = a_job()
    await store.enqueue([job])
    stale = await claim_one(store)
    await store.rescue(RescueRequest(force=True), KEEP_ALL)
    before = await store.get([job.id])

    assert await store.settle([settlement(stale, verdict)]) == [Settled.LOST]

    assert await store.get([job.id]) == before


async def test_a_stale_renewal_is_refused(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", b"")
    stale = await claimed(client, "email", lease=0)
    await client.rescue()
    await claimed(client, "email", lease=10)
    clock.advance(SECOND)
    before = await found(client, done.id)

    with pytest.raises(ClaimLost):
        await client.renew(stale, 300)

    assert await found(client, done.id) == before


async def test_stale_progress_is_refused(store: Store) -> None:
    job = a_job()
    await store.enqueue([job])
    stale = await claim_one(store)
    await store.rescue(RescueRequest(force=True), KEEP_ALL)
    await claim_one(store)
    before = await store.get([job.id])

    written = await store.note([Note(job.id, stale.token, Progress(1, 2), [("info", "still here")])])

    assert written == [False]
    assert await store.get([job.id]) == before


async def test_the_token_of_another_job_is_stale(store: Store) -> None:
    await store.enqueue([a_job(), a_job()])
    one, other = (await store.claim(wanting(limit=2))).jobs

    answers = await store.settle([Settlement(one.job.id, other.token, ToSucceeded())])

    assert answers == [Settled.LOST]
    assert await store.renew([(one.job.id, other.token)], MINUTE) == [None]
    [row] = await store.stats()
    assert row.running == 2


async def test_a_token_that_was_never_given_is_stale(store: Store) -> None:
    await store.enqueue([a_job()])
    claim = await claim_one(store)

    answers = await store.settle(
        [
            Settlement(claim.job.id, Token("0" * len(claim.token)), ToSucceeded()),
            Settlement(claim.job.id, Token(""), ToSucceeded()),
            Settlement(UNKNOWN, claim.token, ToSucceeded()),
        ],
    )

    assert answers == [Settled.LOST] * 3


async def test_a_token_holds_its_own_job_and_no_other(store: Store) -> None:
    await store.enqueue([a_job(), a_job()])
    one, other = (await store.claim(wanting(limit=2))).jobs
    crossed = [Settlement(one.job.id, other.token, ToSucceeded()), Settlement(other.job.id, one.token, ToSucceeded())]

    assert await store.settle(crossed) == [Settled.LOST, Settled.LOST]

    assert await store.settle([settlement(one), settlement(other)]) == [Settled.DONE, Settled.DONE]


async def test_stale_and_valid_settlements_share_a_batch(store: Store, clock: FakeClock) -> None:
    """The jobs were claimed together, rescued together and claimed together again."""
    jobs = [a_job() for _ in range(6)]
    await store.enqueue(jobs)
    stale = (await store.claim(wanting(limit=6, lease=SECOND))).jobs
    clock.advance(SECOND)
    await store.rescue(RescueRequest(), KEEP_ALL)
    valid = (await store.claim(wanting(limit=6))).jobs
    mixed = [settlement(claim) for pair in zip(stale[:3], valid[3:], strict=True) for claim in pair]

    answers = await store.settle(mixed)

    assert answers == [Settled.LOST, Settled.DONE] * 3
    read = [job for job in await store.get([job.id for job in jobs]) if job is not None]
    assert [job.state for job in read] == [State.RUNNING] * 3 + [State.SUCCEEDED] * 3


async def test_stale_and_valid_renewals_share_a_batch(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job() for _ in range(4)])
    stale = (await store.claim(wanting(limit=4, lease=SECOND))).jobs
    clock.advance(SECOND)
    await store.rescue(RescueRequest(), KEEP_ALL)
    valid = (await store.claim(wanting(limit=4))).jobs
    held = [(claim.job.id, claim.token) for claim in (stale[0], valid[1], stale[2], valid[3])]

    renewed = await store.renew(held, MINUTE)

    assert [each is not None for each in renewed] == [False, True, False, True]


Settle = Callable[[Client, Claim], Awaitable[None]]
ENDS: dict[str, Settle] = {
    "ack": lambda client, claim: client.ack(claim),
    "nack": lambda client, claim: client.nack(claim, "boom"),
    "dead_letter": lambda client, claim: client.dead_letter(claim, "no"),
    "snooze": lambda client, claim: client.snooze(claim, 1),
    "release": lambda client, claim: client.release(claim),
    "cancel_claim": lambda client, claim: client.cancel_claim(claim, "no"),
}


@pytest.mark.parametrize("settle", ENDS.values(), ids=ENDS.keys())
async def test_every_settlement_of_a_lost_claim_says_so(client: Client, settle: Settle) -> None:
    done = await client.enqueue("email", b"")
    stale = await claimed(client, "email", lease=0)
    await client.rescue()
    await claimed(client, "email")

    with pytest.raises(ClaimLost) as lost:
        await settle(client, stale)

    assert lost.value.job_id == done.id
    assert (await found(client, done.id)).state is State.RUNNING


async def test_each_claim_raises_the_delivery_by_one(client: Client) -> None:
    done = await client.enqueue("email", b"", max_attempts=1)
    deliveries = [await _released_at(client) for _ in range(3)]
    await client.dead_letter(await claimed(client, "email"), "no")
    await client.retry(done.id)

    assert deliveries == [1, 2, 3]
    again = await claimed(client, "email")
    assert (again.delivery, again.job.attempt) == (5, 1)


async def _released_at(client: Client) -> int:
    claim = await claimed(client, "email")
    await client.release(claim)
    return claim.delivery


async def test_no_job_is_charged_more_than_its_attempts(open_client: OpenClient) -> None:
    client = await open_client(QueueSettings(max_attempts=3))
    done = await client.enqueue("email", b"")
    attempts: list[int] = []
    while (claim := await client.claim("email", lease=0)) is not None:
        attempts.append(claim.job.attempt)
        await client.rescue()

    assert attempts == [1, 2, 3]
    assert (await found(client, done.id)).state is State.DEAD


async def test_a_job_deleted_under_a_claim_is_lost_to_it(open_client: OpenClient, reach: Reach) -> None:
    client = await open_client(QueueSettings(keep_dead=0))
    await client.enqueue("email", b"")
    claim = await claimed(client, "email")
    await client.rescue(force=True, to="dead")

    with pytest.raises(ClaimLost):
        await client.ack(claim, then=[NewJob(reach.queue("next", "email"), b"")])

    assert await client.queues() == ["email"]
    assert (await client.stats()).totals.enqueued == 1


async def test_the_claims_event_fires_when_the_claim_is_lost(client: Client) -> None:
    await client.enqueue("email", b"")
    claim = await claimed(client, "email", lease=0)
    await client.rescue()

    with pytest.raises(ClaimLost):
        await client.renew(claim, 30)

    assert claim.cancelled.is_set()
    assert claim.cancelled.reason == "claim_lost"


async def test_a_glance_shows_the_token_that_holds(store: Store) -> None:
    job = a_job()
    await store.enqueue([job])
    claim = await claim_one(store)
    assert (await store.glance([job.id, UNKNOWN]))[job.id].token == claim.token

    await store.settle([released(claim)])

    glance = (await store.glance([job.id]))[job.id]
    assert (glance.state, glance.cancel_requested) == (State.PENDING, False)
