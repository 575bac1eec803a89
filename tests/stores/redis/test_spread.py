"""Queues that are kept each under a hash tag of its own: what is written where."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.redis.cluster import new_cluster_url
from tests.redis.keys import keys_of, prefix_of
from windlass.connect import open_store
from windlass.core.job import Note, Token
from windlass.core.requests import CancelOutcome, ClaimRequest, RescueRequest, Settled, Settlement
from windlass.core.retention import KEEP_ALL
from windlass.core.store import Store
from windlass.core.verdict import ToSucceeded
from windlass.testing import FakeClock, SeededRng
from windlass.testing.conformance.given import MINUTE, UNKNOWN, a_job, claim_one


@pytest.fixture
def url() -> Iterator[str]:
    with new_cluster_url(spread=True) as url:
        yield url


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(url: str, clock: FakeClock) -> AsyncIterator[Store]:
    store = open_store(url, clock=clock, rng=SeededRng())
    await store.open()
    yield store
    await store.close()


async def test_a_queue_has_a_hash_tag_of_its_own(store: Store, url: str) -> None:
    await store.enqueue([a_job("a")])
    await store.enqueue([a_job("b")])

    tags = {key.partition("}")[0] for key in keys_of(url)}

    assert tags == {f"{{{prefix_of(url)}{end}" for end in ("", "|a", "|b")}


async def test_a_token_of_an_unknown_queue_writes_nothing(store: Store, url: str) -> None:
    before = keys_of(url)
    token = Token("nobody|0-1")

    assert await store.settle([Settlement(UNKNOWN, token, ToSucceeded())]) == [Settled.LOST]
    assert await store.renew([(UNKNOWN, token)], MINUTE) == [None]
    assert await store.note([Note(UNKNOWN, token, None, [("info", "here")])]) == [False]
    assert await store.rescue(RescueRequest(["nobody"], force=True), KEEP_ALL) == []

    assert keys_of(url) == before


async def test_a_claim_makes_no_queue_known(store: Store, url: str) -> None:
    before = keys_of(url)

    assert (await store.claim(ClaimRequest(["a", "b"], 1, MINUTE))).jobs == []

    assert (keys_of(url), await store.stats()) == (before, [])
    await store.enqueue([a_job("b")])
    assert (await claim_one(store, "b")).job.queue == "b"
    assert [stats.queue for stats in await store.stats()] == ["b"]


async def test_of_two_jobs_with_one_id_every_call_means_the_same(store: Store) -> None:
    """An id is one job in its queue: whoever gives it to jobs of two queues has two."""
    job = a_job("b")
    await store.enqueue([job])
    await store.enqueue([job._replace(queue="a")])
    running = await claim_one(store, "a")

    assert await store.cancel([job.id], KEEP_ALL) == [CancelOutcome.REQUESTED]

    [read] = await store.get([job.id])
    assert read is not None
    assert (read.queue, read.cancel_requested) == ("a", True)
    glance = (await store.glance([job.id]))[job.id]
    assert (glance.token, glance.cancel_requested) == (running.token, True)
    assert (await claim_one(store, "b")).job.cancel_requested is False
