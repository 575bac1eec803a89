"""Claims that come across a damaged job: the others are given, and it stays in line."""

import logging

import pytest

from tests.redis.asking import ask
from tests.redis.keys import prefix_of, servers_of
from tests.stores.redis.calls import wanting
from tests.stores.redis.damage import OF_JOBS, inflict
from windlass.core.errors import StoreCorrupt, StoreUnavailable
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.testing.conformance.given import a_job


@pytest.mark.parametrize("what", OF_JOBS)
async def test_a_claim_goes_on_behind_a_damaged_job(
    url: str, store: Store, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    before = [a_job("first") for _ in range(2)]
    jobs = [a_job("q") for _ in range(2)]
    damaged = a_job("q", unique=Unique("k", until="claimed"))
    jobs += [a_job("q") for _ in range(4)]
    await store.enqueue([*before, *jobs[:2], damaged, *jobs[2:]])
    inflict(url, damaged.id, what)

    with caplog.at_level(logging.ERROR, "windlass.redis"):
        given = [
            [claim.job.id for claim in await store.claim(wanting("first", "q", limit=limit))] for limit in (6, 1, 9, 9)
        ]

    assert given == [[job.id for job in [*before, *jobs[:4]]], [jobs[4].id], [jobs[5].id], []]
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        f"job {damaged.id} cannot be claimed, and stays in line behind those that can"
    ]
    [_, stats] = await store.stats()
    assert (stats.pending, stats.running) == (1, 6)


async def test_a_claim_goes_on_behind_damaged_jobs_wherever_they_stand(url: str, store: Store) -> None:
    jobs = [a_job("q", kind="ab"[number % 2]) for number in range(60)]
    await store.enqueue(jobs)
    damaged = [jobs[at] for at in (0, 1, 2, 9, 11, 30, 58, 59)]
    for job in damaged:
        inflict(url, job.id, "key of another type")
    sound = [job.id for job in jobs if job not in damaged]

    given = [claim.job.id for _ in range(12) for claim in await store.claim(wanting("q", limit=5))]

    assert given == sound
    [stats] = await store.stats()
    assert (stats.pending, stats.running) == (8, 52)


async def test_jobs_of_every_size_are_given(store: Store) -> None:
    jobs = [a_job("q", payload=b"x" * size) for size in (0, 1, 255, 256, 65_535, 65_536)]
    jobs += [job._replace(codec="c" * size) for job in jobs[:3] for size in (31, 32, 200)]
    jobs = [job._replace(id=a_job().id, tenant=tenant) for tenant in (None, "t") for job in jobs]
    await store.enqueue(jobs)

    given = await store.claim(wanting("q", limit=100))

    assert [(claim.job.id, claim.job.payload, claim.job.codec, claim.job.tenant) for claim in given] == [
        (job.id, job.payload, job.codec, job.tenant) for job in jobs
    ]


@pytest.mark.parametrize("what", ["key of another type", "claim", "short head", "body", "more"])
async def test_a_repeated_claim_gives_the_others_beside_a_job_that_was_damaged_since(
    url: str, store: Store, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    jobs = [a_job("q") for _ in range(3)]
    await store.enqueue(jobs)
    first, _, third = await store.claim(wanting("q", limit=3), request_id="r")
    inflict(url, jobs[1].id, what)

    again = await store.claim(wanting("q", limit=3), request_id="r")

    assert [(claim.job.id, claim.token) for claim in again] == [
        (first.job.id, first.token),
        (third.job.id, third.token),
    ]
    assert f"job {jobs[1].id} cannot be claimed" in caplog.text


async def test_a_damaged_line_is_no_damage_of_a_job(url: str, store: Store) -> None:
    await store.enqueue([a_job("q", kind=kind) for kind in "ab"])
    [server] = servers_of(url)
    keys = f"{{{prefix_of(url)}}}|"
    ask(server, "ZADD", f"{keys}ready|q|a", 0, "\0")

    with pytest.raises(StoreUnavailable, match="too short") as told:
        await store.claim(wanting("q"))

    assert not isinstance(told.value, StoreCorrupt)
    assert [ask(server, "ZCARD", f"{keys}{line}") for line in ("ready|q|a", "ready|q|b", "leased|q")] == [2, 1, 0]


async def test_what_no_script_sees_of_a_damaged_job_is_told_as_damage(url: str, store: Store) -> None:
    job = a_job("q")
    await store.enqueue([job])
    [server] = servers_of(url)
    ask(server, "HSET", f"{{{prefix_of(url)}}}|job|{job.id}", "body", b"\x92\xa1\xff\xc4\x00")

    with pytest.raises(StoreCorrupt, match="cannot be read"):
        await store.claim(wanting("q"))
