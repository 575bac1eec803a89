"""A network that says nothing any more: every call ends by its deadline, and all is well when it is back."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

import pytest

import windlass
from tests.redis.keys import with_options
from tests.redis.proxy import Proxy
from tests.servers.faults import Direction
from tests.stores.redis.calls import LOOKS, WRITES, Call, opened
from windlass import Client, NewJob, OutcomeUnknown, StoreUnavailable
from windlass.core.store import Store
from windlass.stores.redis import enqueuer
from windlass.testing.conformance.given import a_job

DEADLINE: Final = 1.0
SPARE: Final = 4.0
"""Seconds for a machine that has much else to do."""
OPTIONS: Final = f"timeout={DEADLINE}&connections=100"


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[Client]:
    async with windlass.connect(with_options(proxy.url, OPTIONS)) as client:
        yield client
        proxy.release()


@pytest.mark.parametrize(
    "spread, held",
    [("", ["requests", "answers"]), ("", ["answers"]), ("&spread=queues", ["answers"])],
    ids=["black hole", "no answers", "no answers, spread"],
)
async def test_every_call_ends_by_its_deadline_when_nothing_is_answered(
    url: str, proxy: Proxy, spread: str, held: list[Direction]
) -> None:
    async with opened(f"{url}{spread}") as direct, opened(with_options(proxy.url, f"{OPTIONS}{spread}")) as through:
        calls = {scenario.__name__: await scenario(direct, f"q-{scenario.__name__}") for scenario in WRITES} | LOOKS
        await connect_for_each(through, len(calls))
        proxy.hold(held)

        ends = await asyncio.gather(*(call_in_vain(through, name, call) for name, call in calls.items()))

        assert [(name, seconds) for name, _, seconds in ends if seconds > DEADLINE + SPARE] == []
        assert [name for name, error, _ in ends if isinstance(error, StoreUnavailable) and not error.retryable] == []
        proxy.release()
        assert await through.paused(["q"]) == []


async def connect_for_each(store: Store, calls: int) -> None:
    """Have a connection for each of `calls`, so that each is left alone in the middle of what it does."""
    async with asyncio.timeout(30):
        # on a machine that has much else to do not all are there by the deadline of the first
        while any(await asyncio.gather(*(_fails(store) for _ in range(calls)))):
            pass


async def _fails(store: Store) -> bool:
    try:
        await store.stats("q")
    except StoreUnavailable:
        return True
    return False


async def call_in_vain(store: Store, name: str, call: Call) -> tuple[str, BaseException, float]:
    began = time.monotonic()
    with pytest.raises((StoreUnavailable, OutcomeUnknown)) as raised:
        await call(store)
    return name, raised.value, time.monotonic() - began


async def test_who_comes_when_nothing_is_answered_is_told_so_at_the_deadline(proxy: Proxy) -> None:
    proxy.hold()
    began = time.monotonic()

    with pytest.raises(StoreUnavailable, match="did not answer in time") as told:
        await windlass.connect(with_options(proxy.url, OPTIONS)).open()

    assert told.value.retryable
    assert time.monotonic() - began < DEADLINE + SPARE


async def test_an_enqueue_whose_answer_never_came_is_unknown_under_its_own_id(client: Client, proxy: Proxy) -> None:
    # the first goes by itself, the others together: each on a connection that is there already
    await asyncio.gather(client.enqueue("q", b""), client.enqueue("q", b""))
    proxy.hold(["answers"])
    ids = [f"01900000-0000-7000-8000-00000000000{number}" for number in range(5)]

    ends = await asyncio.gather(*(client.enqueue("q", b"", id=each) for each in ids), return_exceptions=True)

    assert [end.job_id for end in ends if isinstance(end, OutcomeUnknown)] == ids
    proxy.release()
    again = await asyncio.gather(*(client.enqueue("q", b"", id=each) for each in ids))
    assert [done.id for done in again] == ids
    assert (await client.stats("q")).pending == 7


async def test_calls_that_wait_behind_many_others_end_in_time_too(
    monkeypatch: pytest.MonkeyPatch, proxy: Proxy
) -> None:
    monkeypatch.setattr(enqueuer, "MOST_TOGETHER", 10)
    async with opened(with_options(proxy.url, OPTIONS)) as store:
        # the first goes by itself, the others together: each on a connection that is there already
        await asyncio.gather(store.enqueue([a_job("q")]), store.enqueue([a_job("q")]))
        proxy.hold()
        began = time.monotonic()

        ends = await asyncio.gather(*(store.enqueue([a_job("q")]) for _ in range(100)), return_exceptions=True)

        assert time.monotonic() - began < DEADLINE + SPARE
        unsent = [end for end in ends if isinstance(end, StoreUnavailable) and end.retryable]
        assert (len(unsent), sum(isinstance(end, OutcomeUnknown) for end in ends)) == (89, 11)
        proxy.release()
        await store.enqueue([a_job("q")])


async def test_an_ack_whose_answer_never_came_is_unknown_under_its_own_id(client: Client, proxy: Proxy) -> None:
    await client.enqueue_many([NewJob("q") for _ in range(5)])
    claims = await client.claim_many("q", limit=5, lease=600)
    proxy.hold(["answers"])

    ends = await asyncio.gather(*(client.ack(claim) for claim in claims), return_exceptions=True)

    assert [end.job_id for end in ends if isinstance(end, OutcomeUnknown)] == [claim.job.id for claim in claims]
    proxy.release()
    await asyncio.gather(*(client.ack(claim) for claim in claims))
    assert (await client.stats("q")).totals.succeeded == 5


async def test_a_close_in_a_black_hole_ends_too(proxy: Proxy) -> None:
    client = windlass.connect(with_options(proxy.url, OPTIONS))
    await client.enqueue("q", b"")
    waiting = asyncio.create_task(client.claim("other", wait=60))
    await asyncio.sleep(0)
    proxy.hold()
    began = time.monotonic()

    waiting.cancel()
    await asyncio.wait({waiting})
    await client.close()

    assert time.monotonic() - began < DEADLINE + SPARE
