"""Claims that come across a damaged job: the others are given, and it is set aside."""

import logging
from typing import Final

import pytest

from tests.redis.asking import ask
from tests.redis.keys import keys_of, prefix_of, servers_of
from tests.stores.redis.calls import NONE_KEPT, settlement, wanting
from tests.stores.redis.damage import OF_JOBS, inflict
from windlass.core.filters import JobFilter
from windlass.core.requests import Changed, Settled
from windlass.core.retention import Retention
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.kit.damage import dead_reason
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
            [claim.job.id for claim in (await store.claim(wanting("first", "q", limit=limit))).jobs]
            for limit in (6, 1, 9, 9)
        ]

    assert given == [[job.id for job in [*before, *jobs[:4]]], [jobs[4].id], [jobs[5].id], []]
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        f"job {damaged.id} is damaged and was set aside as dead"
    ]
    [_, stats] = await store.stats()
    assert (stats.pending, stats.running, stats.dead, stats.totals.dead) == (0, 6, 1, 1)
    [dead] = await store.jobs(JobFilter(state=State.DEAD), after=None, limit=9)
    assert (dead.id, dead.queue, dead.attempt) == (damaged.id, "q", 0)
    assert (dead.last_error or "").startswith("DamagedRecord: ")


async def test_a_claim_goes_on_behind_damaged_jobs_wherever_they_stand(url: str, store: Store) -> None:
    jobs = [a_job("q", kind="ab"[number % 2]) for number in range(60)]
    await store.enqueue(jobs)
    damaged = [jobs[at] for at in (0, 1, 2, 9, 11, 30, 58, 59)]
    for job in damaged:
        inflict(url, job.id, "key of another type")
    sound = [job.id for job in jobs if job not in damaged]

    given = [claim.job.id for _ in range(12) for claim in (await store.claim(wanting("q", limit=5))).jobs]

    assert given == sound
    [stats] = await store.stats()
    assert (stats.pending, stats.running, stats.dead) == (0, 52, 8)


async def test_jobs_of_every_size_are_given(store: Store) -> None:
    jobs = [a_job("q", payload=b"x" * size) for size in (0, 1, 255, 256, 65_535, 65_536)]
    jobs += [job._replace(codec="c" * size) for job in jobs[:3] for size in (31, 32, 200)]
    jobs = [job._replace(id=a_job().id, tenant=tenant) for tenant in (None, "t") for job in jobs]
    await store.enqueue(jobs)

    given = (await store.claim(wanting("q", limit=100))).jobs

    assert [(claim.job.id, claim.job.payload, claim.job.codec, claim.job.tenant) for claim in given] == [
        (job.id, job.payload, job.codec, job.tenant) for job in jobs
    ]


@pytest.mark.parametrize("what", ["key of another type", "claim", "short head", "body", "more"])
async def test_a_repeated_claim_gives_the_others_beside_a_job_that_was_damaged_since(
    url: str, store: Store, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    jobs = [a_job("q") for _ in range(3)]
    await store.enqueue(jobs)
    first, _, third = (await store.claim(wanting("q", limit=3), request_id="r")).jobs
    inflict(url, jobs[1].id, what)

    again = (await store.claim(wanting("q", limit=3), request_id="r")).jobs

    assert [(claim.job.id, claim.token) for claim in again] == [
        (first.job.id, first.token),
        (third.job.id, third.token),
    ]
    assert f"job {jobs[1].id} is damaged and was set aside as dead" in caplog.text
    [stats] = await store.stats()
    assert (stats.running, stats.dead) == (2, 1)


@pytest.mark.parametrize("member", ["", "\0", "\0" * 19, "\x7f" * 20, "\xff" * 3])
async def test_a_member_of_a_line_that_is_too_short_stops_no_claim(
    url: str, store: Store, caplog: pytest.LogCaptureFixture, member: str
) -> None:
    queue = f"q{len(member)}-{ord(member[:1] or ' ')}"
    jobs = [a_job(queue, kind=kind) for kind in "abab"]
    await store.enqueue(jobs)
    [server] = servers_of(url)
    keys = f"{{{prefix_of(url)}}}|"
    for kind in "ac":
        ask(server, "SADD", f"{keys}kinds|{queue}", kind)
        ask(server, "ZADD", f"{keys}ready|{queue}|{kind}", 0, member)

    stats = await store.stats()
    waiting = await store.waiting()
    claims = [claim for limit in (1, 9, 9) for claim in (await store.claim(wanting(queue, limit=limit))).jobs]

    assert [claim.job.id for claim in claims] == [job.id for job in jobs]
    assert caplog.text.count(f"ready|{queue} is too short") == 1
    assert [ask(server, "EXISTS", f"{keys}ready|{queue}|{kind}") for kind in "abc"] == [0, 0, 0]
    assert [each.queue for each in stats] == [queue]
    assert {each.kind for each in waiting} >= {"a", "b"}
    assert (await store.stats())[0].pending == 0


NOT_SEEN: Final = {
    "codec": ("body", b"\x92\xa1\xff\xc4\x00"),
    "headers": ("more", b"\x95\x81\xa1a\xa1\xff\xc0\xc0\xc0\xc0"),
    "tenant": ("more", b"\x95\x80\x01\xc0\xc0\xc0"),
    "last_error": ("error", b"\xff"),
    "unique_key": ("key", b"\xff"),
}
"""Damage that the script does not look for: the field of the job, the field of the hash, and what is there."""


@pytest.mark.parametrize("request_id", [None, "r"])
@pytest.mark.parametrize("field", NOT_SEEN)
async def test_what_no_script_sees_of_a_damaged_job_is_set_aside_and_the_others_are_given(
    url: str, store: Store, field: str, request_id: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [a_job("q") for _ in range(3)]
    await store.enqueue(jobs)
    [server] = servers_of(url)
    name, value = NOT_SEEN[field]
    ask(server, "HSET", f"{{{prefix_of(url)}}}|job|{jobs[1].id}", name, value)

    given = (await store.claim(wanting("q", limit=3), request_id=request_id)).jobs

    assert [claim.job.id for claim in given] == [jobs[0].id, jobs[2].id]
    assert await store.settle([settlement(claim) for claim in given]) == [Settled.DONE] * 2
    [dead] = await store.jobs(JobFilter(state=State.DEAD), after=None, limit=9)
    assert dead.id == jobs[1].id
    assert f"{field} " in (dead.last_error or "")
    assert f"job {jobs[1].id} is damaged and was set aside as dead: {field} " in caplog.text
    [stats] = await store.stats()
    assert (stats.pending, stats.running, stats.dead, stats.totals.dead) == (0, 0, 1, 1)


async def test_a_job_that_is_retried_while_it_is_damaged_is_set_aside_again_and_runs_once_it_is_repaired(
    url: str, store: Store
) -> None:
    job = a_job("q", unique=Unique("k", until="finished"))
    await store.enqueue([job])
    [server] = servers_of(url)
    key = f"{{{prefix_of(url)}}}|job|{job.id}"
    body = ask(server, "HGET", key, "body")
    ask(server, "HSET", key, "body", "\x92")

    for _ in range(2):
        assert (await store.claim(wanting("q"))).jobs == []
        assert ask(server, "HGET", key, "body") == "\x92"
        [stored] = await store.get([job.id])
        assert stored is not None
        assert (stored.state, stored.damage is None) == (State.DEAD, False)
        assert await store.retry([job.id]) == [Changed.DONE]
    ask(server, "HSET", key, "body", body)

    [claim] = (await store.claim(wanting("q"))).jobs
    assert (claim.job.id, claim.job.payload, claim.job.attempt) == (job.id, job.payload, 1)
    [second] = await store.enqueue([a_job("q", unique=Unique("k", until="finished"))])
    assert second == (job.id, False)


@pytest.mark.parametrize("what", OF_JOBS)
async def test_a_job_that_was_set_aside_is_shown_deleted_and_pruned(url: str, store: Store, what: str) -> None:
    jobs = [a_job("q", unique=Unique(name, until="claimed")) for name in "ab"]
    for job in jobs:
        await store.enqueue([job])
        inflict(url, job.id, what)
        assert (await store.claim(wanting("q"))).jobs == []

    page = await store.newest(JobFilter(state=State.DEAD), before=None, limit=9, most=99)
    assert {job.id for job in page.jobs} == {job.id for job in jobs}
    assert [None if job is None else job.state for job in await store.get([job.id for job in jobs])] == [State.DEAD] * 2
    assert {*await store.glance([job.id for job in jobs])} == {job.id for job in jobs}
    assert await store.place(jobs[0].id) is not None
    assert await store.delete([jobs[0].id]) == [Changed.DONE]
    assert await store.prune(Retention(NONE_KEPT), limit=9) == 1
    assert [key for key in keys_of(url) if "job|" in key or "|dead|" in key or "|ended|" in key] == []


async def test_the_reason_is_that_of_every_store(url: str, store: Store) -> None:
    job = a_job("q")
    await store.enqueue([job])
    [server] = servers_of(url)
    ask(server, "HDEL", f"{{{prefix_of(url)}}}|job|{job.id}", "body")

    assert (await store.claim(wanting("q"))).jobs == []

    [dead] = await store.get([job.id])
    assert dead is not None
    assert (dead.last_error, dead.damage) == (dead_reason("body is missing"), "body is missing")
