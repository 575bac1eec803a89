"""Many claimers at once: each job is given once, in order, and none from a paused queue."""

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from tests.stores.postgres.racing import MINUTE, connection_to, opened, opened_many, settlement, wanting
from windlass.core.job import Claim
from windlass.core.requests import Settled
from windlass.core.store import Store
from windlass.stores.postgres.claimer import PROMOTED_AT_ONCE, TRIES
from windlass.stores.postgres.statements import statement
from windlass.testing.conformance.given import a_job


@pytest.fixture
async def store(schema: str) -> AsyncIterator[Store]:
    async with opened(schema) as store:
        yield store


@pytest.mark.parametrize(
    "options", [{}, {"by_priority": True}, {"kinds": ["a", None]}], ids=["heads", "by priority", "by kind"]
)
async def test_claimers_at_once_are_given_every_job_once(schema: str, options: dict[str, Any]) -> None:
    rng = random.Random(1)
    async with opened_many(schema, 4) as stores:
        jobs = [
            a_job(rng.choice("qr"), kind=rng.choice(["a", None]))._replace(priority=rng.choice([1, 2, 3]))
            for _ in range(1500)
        ]
        await stores[0].enqueue(jobs)
        given: list[str] = []

        async def work(store: Store) -> None:
            empty = 0
            # others may hold what is left for a moment, so once is not enough
            while empty < 3:
                claims = (await store.claim(wanting("q", "r", limit=rng.randint(1, 50), **options))).jobs
                empty = 0 if claims else empty + 1
                given.extend(claim.job.id for claim in claims)
                assert await store.settle([settlement(claim) for claim in claims]) == [Settled.DONE] * len(claims)

        await asyncio.gather(*(work(store) for store in stores * 2))

    assert len(given) == len(jobs)
    assert set(given) == {job.id for job in jobs}


@pytest.mark.parametrize("by_priority", [False, True])
async def test_one_claimer_is_given_jobs_strictly_in_their_order(store: Store, by_priority: bool) -> None:  # noqa: FBT001
    rng = random.Random(2)
    for _ in range(20):
        await store.enqueue(
            [a_job(rng.choice("qr"))._replace(priority=rng.choice([0, 5, 1000, 2**31 - 1])) for _ in range(15)]
        )
    claims: list[Claim] = []
    while batch := (await store.claim(wanting("r", "q", limit=rng.randint(1, 9), by_priority=by_priority))).jobs:
        claims += batch

    places = [
        (0 if by_priority else "rq".index(claim.job.queue), claim.job.priority, claim.job.run_at, claim.job.seq)
        for claim in claims
    ]
    assert len(places) == 300
    assert all(first < second for first, second in pairwise(places))


async def test_kinds_are_found_behind_fifty_thousand_strangers(schema: str, store: Store) -> None:
    async with connection_to(schema) as outside:
        await outside.execute(
            "insert into windlass_job"
            " (id, queue, kind, payload, codec, priority, state, max_attempts, created_at, run_at)"
            " select gen_random_uuid(), 'q', 'strange', '', 'raw', 1000, 'pending', 3, now(), now()"
            " from generate_series(1, 50000)"
        )
        wanted = [a_job("q", kind="known") for _ in range(30)]
        await store.enqueue(wanted)
        loop = asyncio.get_running_loop()
        began, given = loop.time(), list[str]()
        while claims := (await store.claim(wanting(limit=3, kinds=["known"]))).jobs:
            given += [claim.job.id for claim in claims]
        took = loop.time() - began

    assert given == [job.id for job in wanted]
    # stepping over all of them at every claim takes many times as long
    assert took < 2


async def test_from_the_return_of_a_pause_on_no_claim_is_given(schema: str) -> None:
    async with opened_many(schema, 3) as [operator, *stores]:
        # odd while it is paused
        turn, over = 0, False
        wrong: list[str] = []

        async def claim(store: Store) -> None:
            while not over:
                began = turn
                claims = (await store.claim(wanting(limit=2))).jobs
                if began % 2 and began == turn:
                    wrong.extend(claim.job.id for claim in claims)

        async def given_while_paused() -> int:
            [before] = await operator.stats("q")
            await asyncio.sleep(0.002)
            [after] = await operator.stats("q")
            return before.pending - after.pending

        claimers = [asyncio.ensure_future(claim(store)) for store in stores * 4]
        leaked = 0
        for _ in range(60):
            # more than they can claim before the pause
            await operator.enqueue([a_job("q") for _ in range(200)])
            await operator.set_paused("q", paused=True)
            turn += 1
            leaked += await given_while_paused()
            turn += 1
            await operator.set_paused("q", paused=False)
            await asyncio.sleep(0.002)
        over = True
        await asyncio.gather(*claimers)
        [stats] = await operator.stats("q")

    assert leaked == 0
    assert wrong == []
    assert stats.running > 0 < stats.pending, "nothing was claimed between the pauses: this shows nothing"


async def test_a_lease_of_no_time_at_all_is_rescued_and_not_lost(store: Store) -> None:
    await store.enqueue([job := a_job("q")])
    [claim] = (await store.claim(wanting(lease=timedelta(0)))).jobs

    assert await store.settle([settlement(claim)]) == [Settled.DONE]
    assert claim.job.id == job.id


async def test_more_jobs_than_can_be_promoted_at_once_come_due_and_are_claimed(schema: str, store: Store) -> None:
    count = PROMOTED_AT_ONCE * (TRIES + 2)
    async with connection_to(schema) as outside:
        await outside.execute(
            "insert into windlass_job"
            " (id, queue, payload, codec, priority, state, max_attempts, created_at, run_at)"
            " select gen_random_uuid(), 'q', '', 'raw', 1000, 'scheduled', 3, now(), now() - interval '1 s'"
            " from generate_series(1, $1)",
            count,
        )

    assert len((await store.claim(wanting(limit=5))).jobs) == 5


async def test_whoever_looks_at_a_job_of_a_kind_it_does_not_know_does_not_hide_it_from_others(
    schema: str, store: Store
) -> None:
    await store.enqueue([job := a_job("q", kind="known to others")])
    async with connection_to(schema) as looking, looking.transaction():
        # the claim of another process that knows other kinds, at the end of its statement
        text, values = statement("claim")
        parameters = {
            "now": None,
            "request_id": "r",
            "queues": ["q"],
            "limit": 1,
            "lease": MINUTE,
            "worker": "w",
            "kinds": ["known here"],
            "raw": False,
            "repeated": False,
            "promoted": False,
        }
        [(_, _, _, strange, _, seq, *_)] = await looking.fetch(text, *values(parameters))
        claims = (await store.claim(wanting(kinds=["known to others"]))).jobs

    assert (strange, seq) == (True, None)
    assert [claim.job.id for claim in claims] == [job.id]
