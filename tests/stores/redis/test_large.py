"""Large payloads: no script gives or shows so many of them that nobody else is served meanwhile."""

import asyncio
from typing import Final

import pytest

from tests.redis.cluster import new_cluster_url
from tests.redis.proxy import Proxy
from tests.stores.redis.calls import opened, settlement, wanting
from windlass.core.errors import InvalidValue
from windlass.core.filters import JobFilter
from windlass.core.job import PreparedJob
from windlass.core.store import Store
from windlass.core.verdict import ToSucceeded
from windlass.stores.redis import claim, queries, weight
from windlass.testing.conformance.given import a_job

KIB: Final = 1024


async def enqueued(store: Store, queue: str, count: int, *, size: int = KIB) -> list[PreparedJob]:
    """Let there be jobs of a size."""
    jobs = [a_job(queue, payload=b"." * size) for _ in range(count)]
    await store.enqueue(jobs)
    return jobs


async def test_a_claim_leaves_in_line_what_is_too_large_to_be_given_with_the_first(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setattr(claim, "MOST_GIVEN", 10 * KIB)
    jobs = await enqueued(store, "q", 30)

    claims = (await store.claim(wanting("q", limit=30))).jobs

    assert [claim.job.id for claim in claims] == [job.id for job in jobs[:10]]
    [stats] = await store.stats("q")
    assert (stats.pending, stats.running) == (20, 10)
    assert {job.attempt for job in await store.jobs(JobFilter(state=None), after=None, limit=100)} == {0, 1}


async def test_a_job_that_is_too_large_for_a_claim_is_given_alone(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setattr(claim, "MOST_GIVEN", 10 * KIB)
    [large, *_] = [*await enqueued(store, "q", 1, size=20 * KIB), *await enqueued(store, "q", 1)]

    assert [claim.job.id for claim in (await store.claim(wanting("q", limit=30))).jobs] == [large.id]


@pytest.mark.parametrize("by_priority", [False, True])
async def test_a_claim_goes_to_no_later_queue_while_large_jobs_are_left_in_the_first(
    monkeypatch: pytest.MonkeyPatch, store: Store, *, by_priority: bool
) -> None:
    monkeypatch.setattr(claim, "MOST_GIVEN", 10 * KIB)
    await enqueued(store, "a", 15)
    await enqueued(store, "b", 1)

    given = [(await store.claim(wanting("a", "b", limit=30, by_priority=by_priority))).jobs for _ in range(2)]

    assert [[claim.job.queue for claim in claims] for claims in given] == [["a"] * 10, ["a"] * 5 + ["b"]]


async def test_a_claim_that_was_cut_short_and_is_repeated_goes_to_no_later_queue_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(claim, "MOST_GIVEN", 10 * KIB)
    with new_cluster_url(spread=True) as url:
        async with opened(url) as store:
            await enqueued(store, "a", 15)
            await enqueued(store, "b", 1)

            first, again = [(await store.claim(wanting("a", "b", limit=30), request_id="r")).jobs for _ in range(2)]
            rest = (await store.claim(wanting("a", "b", limit=30))).jobs

    assert [claim.job.queue for claim in first] == ["a"] * 10
    assert [claim.token for claim in again] == [claim.token for claim in first]
    assert [claim.job.queue for claim in rest] == ["a"] * 5 + ["b"]


async def test_large_jobs_are_shown_by_several_scripts(
    monkeypatch: pytest.MonkeyPatch, store: Store, proxy: Proxy
) -> None:
    monkeypatch.setattr(queries, "MOST_SHOWN", 10 * KIB)
    jobs = await enqueued(store, "q", 25)
    ids = [job.id for job in jobs]
    await store.get(ids)

    async with opened(proxy.url) as through:
        before = proxy.requests
        found = await through.get(ids)
        requests = proxy.requests - before

    assert [job and job.id for job in found] == ids
    assert requests == 3


async def test_large_jobs_of_many_callers_go_in_several_requests(
    monkeypatch: pytest.MonkeyPatch, store: Store, proxy: Proxy
) -> None:
    monkeypatch.setattr(weight, "BYTES_EACH", 100)
    # the server knows both scripts from then on
    await enqueued(store, "q", 1)
    await enqueued(store, "q", 2)

    async with opened(proxy.url) as through:
        # there are connections enough, so that no other request is made
        await asyncio.gather(*[through.kv_get([b"k"]) for _ in range(2)])
        before = proxy.requests
        await asyncio.gather(*[through.enqueue([a_job("q", payload=b"." * 10 * KIB)]) for _ in range(50)])
        requests = proxy.requests - before

    # the first goes alone, and of the others nine at a time
    assert requests == 1 + 6
    [stats] = await store.stats("q")
    assert stats.pending == 53


async def test_large_results_of_many_callers_go_in_several_requests(
    monkeypatch: pytest.MonkeyPatch, store: Store, proxy: Proxy
) -> None:
    monkeypatch.setattr(weight, "BYTES_EACH", 100)
    await enqueued(store, "q", 50)
    claims = (await store.claim(wanting("q", limit=50))).jobs
    ended = [settlement(claim, ToSucceeded(b"." * 10 * KIB, "raw")) for claim in claims]
    await store.settle(ended[:1])

    async with opened(proxy.url) as through:
        before = proxy.requests
        await asyncio.gather(*[through.settle([each]) for each in ended[1:]])
        requests = proxy.requests - before

    assert requests == 6
    [stats] = await store.stats("q")
    assert stats.succeeded == 50


async def test_a_call_that_is_too_large_for_a_request_is_refused_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    [job] = await enqueued(store, "q", 1)
    [claim] = (await store.claim(wanting("q"))).jobs
    monkeypatch.setattr(weight, "MOST_BYTES", 10 * KIB)
    many = [a_job("q", payload=b"." * KIB) for _ in range(10)]

    for call in (
        store.enqueue(many),
        store.enqueue(many, request_id="r"),
        store.settle([settlement(claim, then=many)]),
        store.settle([settlement(claim, kv={b"k": b"." * 10 * KIB})]),
    ):
        with pytest.raises(InvalidValue, match="split it into several"):
            await call

    [stats] = await store.stats("q")
    assert (stats.pending, stats.running) == (0, 1)
    assert [one.id for one in await store.jobs(JobFilter(), after=None, limit=10)] == [job.id]


async def test_one_call_that_is_too_large_fails_none_beside_it(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    monkeypatch.setattr(weight, "MOST_BYTES", 400 * KIB)
    # as much as makes up a request, in the proportion that there is
    monkeypatch.setattr(weight, "BYTES_EACH", 25)
    await enqueued(store, "q", 20)
    claims = (await store.claim(wanting("q", limit=20))).jobs
    ended = [settlement(claim, ToSucceeded(b"." * KIB, "raw")) for claim in claims]
    ended[10] = settlement(claims[10], ToSucceeded(b"." * 500 * KIB, "raw"))

    answers = await asyncio.gather(*[store.settle([each]) for each in ended], return_exceptions=True)

    assert [at for at, answer in enumerate(answers) if isinstance(answer, InvalidValue)] == [10]
    [stats] = await store.stats("q")
    assert (stats.succeeded, stats.running) == (19, 1)


async def test_one_enqueue_that_brings_too_many_values_fails_none_beside_it(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setattr(weight, "MOST_BYTES", 400 * KIB)
    # as much as makes up a request, in the proportion that there is
    monkeypatch.setattr(weight, "BYTES_EACH", 25)
    jobs = [a_job("q", kv={f"k{at}".encode(): b"." * KIB}) for at in range(20)]
    jobs[10] = a_job("q", kv={f"large{at}".encode(): b"." * 10 * KIB for at in range(50)})
    jobs[11] = a_job("q")._replace(headers={f"h{at}": "." * KIB for at in range(500)})

    answers = await asyncio.gather(*[store.enqueue([job]) for job in jobs], return_exceptions=True)

    assert [at for at, answer in enumerate(answers) if isinstance(answer, InvalidValue)] == [10, 11]
    [stats] = await store.stats("q")
    assert stats.pending == 18
