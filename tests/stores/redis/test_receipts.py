"""What is kept as the answer to a call, and how long: as long as it may be repeated, since it lies in memory."""

from tests.redis.asking import ask
from tests.redis.keys import keys_of, with_options
from tests.stores.redis.calls import a_claim, opened, settlement, wanting
from windlass.core.requests import KvWrite, Settled
from windlass.core.store import Store
from windlass.testing.conformance.given import a_job


def kept_for(url: str) -> list[int]:
    """Return the seconds that each receipt has left."""
    return [ask(url, "TTL", key) for key in keys_of(url) if "|receipt|" in key]


async def test_the_answer_to_a_call_stays_for_a_minute_beyond_its_deadline(url: str) -> None:
    async with opened(with_options(url, "timeout=3.5")) as store:
        await store.kv_write(KvWrite(b"k", b"v"))
        await a_claim(store, "q")

    kept = kept_for(url)
    assert len(kept) == 3
    assert all(40 < seconds <= 64 for seconds in kept)


async def test_the_answer_to_a_request_that_its_caller_has_named_stays_for_ten_minutes(url: str) -> None:
    async with opened(url) as store:
        await store.enqueue([a_job("q")], request_id="a")
        await store.claim(wanting("q"), request_id="b")
        await store.claim(wanting("q"), request_id="b")

    kept = kept_for(url)
    assert len(kept) == 2
    assert all(570 < seconds <= 600 for seconds in kept)


async def test_who_was_given_nothing_leaves_no_receipt(url: str) -> None:
    async with opened(url) as store:
        assert await store.claim(wanting("q")) == []

    assert kept_for(url) == []


async def test_one_request_for_calls_of_several_kinds_is_one_for_each(store: Store) -> None:
    """Who names requests by what they are about may use a name again for another kind of call."""
    [first] = await store.enqueue([a_job("q")], request_id="r1")
    [claim] = await store.claim(wanting("q"), request_id="r1")
    assert claim.job.id == first.id
    assert await store.settle([settlement(claim)], request_id="r1") == [Settled.DONE]

    assert [one.created for one in await store.enqueue([a_job("q"), a_job("q")], request_id="r2")] == [True, True]
    claims = await store.claim(wanting("q", limit=2), request_id="r2")
    again = await store.claim(wanting("q", limit=2), request_id="r2")
    settled = await store.settle([settlement(claim) for claim in claims], request_id="r2")

    assert [claim.token for claim in again] == [claim.token for claim in claims]
    assert settled == [Settled.DONE] * 2
