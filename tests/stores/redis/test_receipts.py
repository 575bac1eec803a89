"""What is kept as the answer to a call, and how long: as long as it may be repeated, since it lies in memory."""

from tests.redis.asking import ask
from tests.redis.keys import keys_of, with_options
from tests.stores.redis.calls import a_claim, opened, wanting
from windlass.core.requests import KvWrite
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
        assert (await store.claim(wanting("q"))).jobs == []

    assert kept_for(url) == []
