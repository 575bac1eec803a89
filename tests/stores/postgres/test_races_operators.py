"""People and services that touch the same jobs in opposite orders: nobody is refused, and all that they did adds up."""

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.stores.postgres.racing import connection_to, opened, opened_many, settlement, wanting
from windlass.core.ids import JobId
from windlass.core.job import Claim, Failure, Note
from windlass.core.requests import Settled, Settlement
from windlass.core.retention import Retention
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.stores.postgres import runner, survey
from windlass.testing.conformance.given import a_job


@pytest.fixture
async def store(schema: str) -> AsyncIterator[Store]:
    async with opened(schema) as store:
        yield store


@pytest.fixture
def no_deadlocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a deadlock be an error, in place of a second's pause before the next try."""
    monkeypatch.setattr(runner, "_MOST_TRANSIENT", 0)


@pytest.mark.usefixtures("no_deadlocks")
@pytest.mark.parametrize("keep", [True, False])
async def test_acks_cancels_and_notes_of_the_same_jobs_do_not_wait_for_each_other_in_a_circle(
    schema: str,
    keep: bool,  # noqa: FBT001
) -> None:
    async with opened_many(schema, 2) as [one, other], asyncio.timeout(60):
        for _ in range(40):
            await one.enqueue([a_job("q") for _ in range(60)])
            claims = (await one.claim(wanting(limit=60))).jobs
            answers, _, _ = await asyncio.gather(
                one.settle([settlement(claim, keep=keep) for claim in claims]),
                other.cancel([claim.job.id for claim in claims], Retention()),
                other.note([Note(claim.job.id, claim.token, lines=[("info", "line")]) for claim in claims]),
            )
            assert answers == [Settled.DONE] * 60


@pytest.mark.usefixtures("no_deadlocks")
async def test_lists_of_the_same_jobs_in_opposite_orders_are_all_served(schema: str) -> None:
    async with opened_many(schema, 2) as [one, other], asyncio.timeout(60):
        ids = [done.id for done in await one.enqueue([a_job("q", unique=Unique(str(at))) for at in range(12)])]

        async def operate(store: Store, seed: int) -> None:
            rng = random.Random(seed)
            for _ in range(150):
                chosen = rng.sample(ids, 8)
                match rng.randint(0, 3):
                    case 0:
                        await store.cancel(chosen, Retention())
                    case 1:
                        await store.retry(chosen)
                    case 2:
                        await store.reschedule(chosen, datetime.now(UTC) + timedelta(hours=1))
                    case _:
                        claims = (await store.claim(wanting(limit=4))).jobs
                        await store.settle([settlement(claim, ToDead(Failure("no"))) for claim in reversed(claims)])

        await asyncio.gather(operate(one, 1), operate(other, 2), operate(one, 3), operate(other, 4))
        await asyncio.gather(one.cancel(ids, Retention()), other.cancel(ids[::-1], Retention()))
        await asyncio.gather(one.delete(ids), other.delete(ids[::-1]))
        [stats] = await one.stats("q")

    assert (stats.pending, stats.scheduled, stats.running, stats.dead, stats.cancelled) == (0, 0, 0, 0, 0)


@pytest.mark.usefixtures("no_deadlocks")
async def test_releases_promotions_pauses_and_rising_marks_never_stand_in_each_others_way(
    schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "RAISE_AFTER", 3)
    monkeypatch.setattr(survey, "LOOK_FOR_WRITERS", 0.001)
    queues = ["a", "b", "c"]
    async with opened_many(schema, 3) as stores, connection_to(schema) as outside, asyncio.timeout(60):
        for store in stores:
            await store.enqueue([a_job(queue) for queue in queues for _ in range(10)])

        async def work(store: Store, seed: int) -> None:
            rng = random.Random(seed)
            for _ in range(60):
                await store.enqueue([a_job(rng.choice(queues), delay=timedelta(milliseconds=1))])
                claims = (await store.claim(wanting(*rng.sample(queues, 3), limit=6))).jobs
                released = [settlement(claim, ToReleased(started=rng.random() < 0.5)) for claim in claims]
                rng.shuffle(released)
                assert await store.settle(released) == [Settled.DONE] * len(claims)
                queue = rng.choice(queues)
                await store.set_paused(queue, paused=True)
                await store.promote(limit=5)
                await store.set_paused(queue, paused=False)

        await asyncio.gather(*(work(store, seed) for seed, store in enumerate(stores * 2)))
        marked = await outside.fetchval("select count(*) from windlass_queue where cardinality(marks) > 0")
        given: set[str] = set()
        while claims := (await stores[0].claim(wanting(*queues, limit=100))).jobs:
            given |= {claim.job.id for claim in claims}

    assert marked, "no mark rose: this shows nothing"
    assert len(given) == 90 + 6 * 60


async def claims_of(store: Store, count: int) -> list[Claim]:
    await store.enqueue([a_job("q") for _ in range(count)])
    return (await store.claim(wanting(limit=count))).jobs


async def test_stale_and_crossed_tokens_beside_valid_ones_change_nothing_of_theirs(store: Store) -> None:
    old = await claims_of(store, 2)
    await store.settle([settlement(claim, ToReleased()) for claim in old])
    new = (await store.claim(wanting(limit=2))).jobs
    (third, fourth) = await claims_of(store, 2)

    answers = await store.settle(
        [
            settlement(old[0]),
            settlement(third),
            Settlement(new[1].job.id, new[0].token, ToSucceeded()),
            Settlement(fourth.job.id, third.token, ToDead(Failure("no"))),
        ]
    )

    assert answers == [Settled.LOST, Settled.DONE, Settled.LOST, Settled.LOST]
    assert await store.settle([settlement(claim) for claim in (*new, fourth)]) == [Settled.DONE] * 3


async def test_stale_acks_of_jobs_that_were_claimed_again_together_are_lost(store: Store) -> None:
    old = await claims_of(store, 2)
    await store.settle([settlement(claim, ToReleased()) for claim in old])
    new = {claim.job.id: claim for claim in (await store.claim(wanting(limit=2))).jobs}

    stale, crossed = await asyncio.gather(
        store.settle([settlement(claim) for claim in old]),
        store.settle([Settlement(old[at].job.id, new[old[1 - at].job.id].token, ToSucceeded()) for at in range(2)]),
    )

    assert stale == crossed == [Settled.LOST] * 2
    assert await store.settle([settlement(claim) for claim in new.values()]) == [Settled.DONE] * 2


async def test_a_thousand_mixed_settlements_with_duplicates_are_each_answered(store: Store) -> None:
    rng = random.Random(5)
    verdicts: list[Verdict] = [
        ToSucceeded(),
        ToSucceeded(b"1", "json"),
        ToDead(Failure("no")),
        ToCancelled("no"),
        ToReleased(),
        ToRetry(timedelta(hours=1), Failure("no")),
        ToSnoozed(timedelta(hours=1)),
    ]
    claims = await claims_of(store, 900)
    batch = [settlement(claim, rng.choice(verdicts)) for claim in claims]
    batch += rng.sample(batch, 50)
    batch += [Settlement(claim.job.id, claims[0].token, ToSucceeded()) for claim in claims[1:51]]
    rng.shuffle(batch)

    answers = await store.settle(batch)

    done = [one.job_id for one, answer in zip(batch, answers, strict=True) if answer is Settled.DONE]
    assert len(done) == len(set(done)) == 900
    assert answers.count(Settled.REPEATED) == 50
    assert answers.count(Settled.LOST) == 50
    [stats] = await store.stats("q")
    assert stats.running == 0


async def test_a_settlement_whose_followers_key_is_held_is_refused_alone(store: Store) -> None:
    await store.enqueue([holder := a_job("r", unique=Unique("k", on_conflict="raise"))])
    first, second, third = await claims_of(store, 3)
    follower = a_job("r", unique=Unique("k", on_conflict="raise"))

    answers = await store.settle(
        [settlement(first), settlement(second, then=[follower], kv={b"k": b"v"}), settlement(third, ToReleased())]
    )

    assert answers[0] is Settled.DONE
    assert answers[2] is Settled.DONE
    assert getattr(answers[1], "job_id", None) == holder.id
    assert await store.kv_get([b"k"]) == [None]
    assert await store.settle([settlement(second)]) == [Settled.DONE]
    [stats] = await store.stats("r")
    assert (stats.pending, stats.totals.enqueued) == (1, 1)


async def test_ids_that_are_none_are_not_found_and_spoil_nothing_for_others(store: Store) -> None:
    [claim] = await claims_of(store, 1)
    nobody = JobId("00000000-0000-4000-8000-000000000000")

    mine, others = await asyncio.gather(
        store.settle([settlement(claim)]), store.settle([Settlement(nobody, claim.token, ToSucceeded())])
    )

    assert (mine, others) == ([Settled.DONE], [Settled.LOST])
