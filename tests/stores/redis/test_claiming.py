"""Claims that come across a damaged job: the others are given, and it stays in line."""

import logging
from typing import Final

import pytest

from tests.redis.asking import ask
from tests.redis.keys import prefix_of, servers_of
from tests.stores.redis.calls import wanting
from windlass.core.job import PreparedJob
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.testing.conformance.given import a_job

WAYS: Final = ["key", "claim", "hold", "holder"]


def inflict(url: str, job: PreparedJob, what: str) -> None:
    [server] = servers_of(url)
    keys = f"{{{prefix_of(url)}}}|"
    match what:
        case "key":
            ask(server, "DEL", f"{keys}job|{job.id}")
            ask(server, "SET", f"{keys}job|{job.id}", "text")
        case "holder":
            [key] = ask(server, "KEYS", f"{keys}hold|*")
            ask(server, "DEL", key)
            ask(server, "SADD", key, "member")
        case _:
            ask(server, "HSET", f"{keys}job|{job.id}", what, "\x91")


@pytest.mark.parametrize("what", WAYS)
async def test_a_claim_goes_on_behind_a_damaged_job(
    url: str, store: Store, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    before = [a_job("first") for _ in range(2)]
    jobs = [a_job("q") for _ in range(2)]
    damaged = a_job("q", unique=Unique("k", until="claimed"))
    jobs += [a_job("q") for _ in range(4)]
    await store.enqueue([*before, *jobs[:2], damaged, *jobs[2:]])
    inflict(url, damaged, what)

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
        inflict(url, job, "key")
    sound = [job.id for job in jobs if job not in damaged]

    given = [claim.job.id for _ in range(12) for claim in await store.claim(wanting("q", limit=5))]

    assert given == sound
    [stats] = await store.stats()
    assert (stats.pending, stats.running) == (8, 52)
