"""Scheduled jobs that come due beside a damaged one: they are promoted, and it stays in its line."""

import logging
from collections.abc import AsyncIterator

import pytest

from tests.stores.redis.calls import MINUTE, wanting
from tests.stores.redis.damage import inflict
from windlass.connect import open_store
from windlass.core.store import Store
from windlass.testing import FakeClock
from windlass.testing.conformance.given import a_job


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(url: str, clock: FakeClock) -> AsyncIterator[Store]:
    store = open_store(url, clock=clock)
    await store.open()
    yield store
    await store.close()


@pytest.mark.parametrize("what", ["key of another type", "claim", "hold", "head", "short head", "other head"])
async def test_jobs_are_promoted_past_damaged_ones(
    url: str, store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    jobs = [a_job("q", delay=MINUTE) for _ in range(5)]
    await store.enqueue([*jobs, a_job("q", delay=3 * MINUTE)])
    damaged = [jobs[0].id, jobs[2].id]
    for job_id in damaged:
        inflict(url, job_id, what)
    clock.advance(2 * MINUTE)

    with caplog.at_level(logging.ERROR, "windlass.redis"):
        promoted = [await store.promote(limit=limit) for limit in (1, 2, 1)]

    # nobody looks again and again for those that stay
    assert (promoted, await store.due_in(["q"])) == ([1, 2, 0], MINUTE)
    assert [claim.job.id for claim in await store.claim(wanting("q", limit=9))] == [jobs[at].id for at in (1, 3, 4)]
    [stats] = await store.stats()
    assert (stats.scheduled, stats.pending, stats.running) == (3, 0, 3)
    assert sorted(record.getMessage().split(" ")[1] for record in caplog.records) == sorted(damaged)


async def test_a_claim_gives_what_came_due_beside_damaged_jobs(url: str, store: Store, clock: FakeClock) -> None:
    jobs = [a_job("q", delay=MINUTE) for _ in range(5)]
    await store.enqueue([*jobs, a_job("q")])
    for job in (jobs[1], jobs[4]):
        inflict(url, job.id, "key of another type")
    clock.advance(MINUTE)

    given = [claim.job.id for _ in range(2) for claim in await store.claim(wanting("q", limit=9))]

    assert sorted(given[1:]) == sorted(jobs[at].id for at in (0, 2, 3))
    [stats] = await store.stats()
    assert (stats.scheduled, stats.pending, stats.running) == (2, 0, 4)
