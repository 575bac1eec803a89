"""Claims that are taken back, and what must not keep that from happening."""

import logging
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.redis.asking import ask
from tests.redis.keys import prefix_of, servers_of
from tests.redis.private import PrivateRedis
from tests.stores.redis.calls import MINUTE, NOW, opened, settlement, wanting
from tests.stores.redis.damage import inflict
from windlass.core.errors import StoreUnavailable
from windlass.core.looks import ServerRecord
from windlass.core.requests import RescueRequest, Settled
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.testing.conformance.given import a_job


@pytest.mark.parametrize("field", ["head", "claim"])
async def test_a_job_that_cannot_be_read_keeps_no_other_from_being_rescued(
    url: str, store: Store, caplog: pytest.LogCaptureFixture, field: str
) -> None:
    jobs = [a_job("q") for _ in range(30)]
    await store.enqueue(jobs)
    await store.claim(wanting("q", limit=30, lease=timedelta(0)))
    broken = jobs.pop(7)
    [server] = servers_of(url)
    ask(server, "HSET", f"{{{prefix_of(url)}}}|job|{broken.id}", field, "\x91")

    with caplog.at_level(logging.ERROR, "windlass.redis"):
        rescued = [await store.rescue(RescueRequest(), KEEP_ALL) for _ in range(2)]

    assert [{one.id for one in each if one.state is State.PENDING} for each in rescued] == [
        {job.id for job in jobs},
        set(),
    ]
    assert (broken.id, State.DEAD) in rescued[0]
    assert f"job {broken.id} is damaged and was set aside as dead: {field} " in caplog.text
    assert {claim.job.id for claim in (await store.claim(wanting("q", limit=30))).jobs} == {job.id for job in jobs}


async def test_a_job_that_cannot_be_written_keeps_no_other_from_being_rescued(
    url: str, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [a_job("q") for _ in range(3)]
    await store.enqueue(jobs)
    await store.claim(wanting("q", limit=3, lease=timedelta(0)))
    [server] = servers_of(url)
    # where a list should be
    ask(server, "SET", f"{{{prefix_of(url)}}}|history|{jobs[1].id}", "text")

    rescued = await store.rescue(RescueRequest(), KEEP_ALL)

    assert {one.id: one.state for one in rescued} == {
        jobs[0].id: State.PENDING,
        jobs[1].id: State.DEAD,
        jobs[2].id: State.PENDING,
    }
    assert f"job {jobs[1].id} is damaged and was set aside as dead: history " in caplog.text
    [stats] = await store.stats()
    assert (stats.pending, stats.running, stats.dead) == (2, 0, 1)


async def test_a_job_whose_key_has_a_damaged_holder_is_rescued_to_dead_and_frees_it(url: str, store: Store) -> None:
    jobs = [a_job("q", max_attempts=1), a_job("q", max_attempts=1, unique=Unique("k", until="finished"))]
    await store.enqueue(jobs)
    await store.claim(wanting("q", limit=2, lease=timedelta(0)))
    inflict(url, jobs[1].id, "holder of another type")

    rescued = [await store.rescue(RescueRequest(), KEEP_ALL) for _ in range(3)]

    assert [{one.id for one in each} for each in rescued] == [{job.id for job in jobs}, set(), set()]
    [stats] = await store.stats()
    assert (stats.running, stats.dead, stats.totals.rescued) == (0, 2, 2)
    [again] = await store.enqueue([a_job("q", unique=Unique("k", until="finished"))])
    assert again.created


async def test_a_rescue_passes_damaged_jobs_and_those_of_other_workers(url: str, store: Store) -> None:
    jobs = [a_job("q") for _ in range(6)]
    await store.enqueue(jobs)
    for worker in ("a", "b", "a", "b", "a", "b"):
        await store.claim(wanting("q", lease=timedelta(0), worker=worker))
    inflict(url, jobs[0].id, "head")
    request = RescueRequest(workers=["a"], limit=1)

    rescued = [await store.rescue(request, KEEP_ALL) for _ in range(3)]

    assert [[one.id for one in each] for each in rescued] == [[jobs[2].id], [jobs[4].id], []]


async def test_what_keeps_all_claims_from_being_rescued_is_no_damage_of_one() -> None:
    with PrivateRedis() as server:
        async with opened(server.url) as store:
            await store.enqueue([a_job("q")])
            await store.claim(wanting("q", lease=timedelta(0)))
            server.ask("ACL", "SETUSER", "default", "-rpush")

            with pytest.raises(StoreUnavailable, match="refused the user"):
                await store.rescue(RescueRequest(), KEEP_ALL)


async def test_a_server_that_is_started_again_by_the_same_name_keeps_no_claim_of_the_one_before_alive(
    store: Store,
) -> None:
    before = ServerRecord("s#1", "s", "host", 7, "1.0", NOW, NOW, queues=("q",), running=2)
    await store.beat(before)
    await store.enqueue([a_job("q"), a_job("q")])
    [ran_out] = (await store.claim(wanting("q", lease=timedelta(0), worker="s"))).jobs
    [held] = (await store.claim(wanting("q", lease=MINUTE, worker="s"))).jobs

    for again in (replace(before, running=0), replace(before, id="s#2", running=0)):
        await store.beat(again)

    assert [one.id for one in await store.rescue(RescueRequest(), KEEP_ALL)] == [ran_out.job.id]
    assert await store.settle([settlement(ran_out), settlement(held)]) == [Settled.LOST, Settled.DONE]
