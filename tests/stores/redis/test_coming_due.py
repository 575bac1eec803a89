"""Scheduled jobs that come due beside a damaged one: they are promoted, and it is set aside."""

import logging
from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from tests.redis.asking import connected
from tests.redis.private import PrivateRedis
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

    assert (promoted, await store.due_in(["q"])) == ([1, 2, 0], MINUTE)
    assert [claim.job.id for claim in (await store.claim(wanting("q", limit=9))).jobs] == [
        jobs[at].id for at in (1, 3, 4)
    ]
    [stats] = await store.stats()
    assert (stats.scheduled, stats.pending, stats.running, stats.dead) == (1, 0, 3, 2)
    assert sorted(record.getMessage().split(" ")[1] for record in caplog.records) == sorted(damaged)


async def test_a_claim_gives_what_came_due_beside_damaged_jobs(url: str, store: Store, clock: FakeClock) -> None:
    jobs = [a_job("q", delay=MINUTE) for _ in range(5)]
    await store.enqueue([*jobs, a_job("q")])
    for job in (jobs[1], jobs[4]):
        inflict(url, job.id, "key of another type")
    clock.advance(MINUTE)

    given = [claim.job.id for _ in range(2) for claim in (await store.claim(wanting("q", limit=9))).jobs]

    assert sorted(given[1:]) == sorted(jobs[at].id for at in (0, 2, 3))
    [stats] = await store.stats()
    assert (stats.scheduled, stats.pending, stats.running, stats.dead) == (0, 0, 4, 2)


@pytest.mark.parametrize("call", ["promote", "claim"])
async def test_one_script_sets_a_bounded_number_of_jobs_aside_that_came_due(call: str) -> None:
    """The server answers others in between, however many are damaged."""
    queues = [f"q{number}" for number in range(3)]
    jobs = [a_job(queue, delay=MINUTE) for queue in queues for _ in range(1_050)]
    sound = a_job("q2", delay=MINUTE)
    clock = FakeClock()
    # no other test runs scripts there
    with PrivateRedis() as server, closing(connected(server.url)) as client:
        store = open_store(server.url, clock=clock)
        await store.open()
        await store.enqueue([*jobs, sound])
        with client.pipeline(transaction=False) as pipeline:
            for job in jobs:
                pipeline.hset(f"{{windlass}}|job|{job.id}", "head", "")
            pipeline.execute()
        clock.advance(2 * MINUTE)
        client.config_resetstat()
        if call == "promote":
            assert await store.promote(limit=5) == 1
        else:
            assert [claim.job.id for claim in (await store.claim(wanting(*queues, limit=5))).jobs] == [sound.id]
        scripts = client.info("commandstats")["cmdstat_evalsha"]["calls"]
        stats = await store.stats()
        await store.close()

    assert scripts >= 4
    assert [(each.scheduled, each.dead) for each in stats] == [(0, 1_050)] * 3
