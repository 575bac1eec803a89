"""What a client does when another process has taken its store over: every wait ends, and nothing is tried again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest

import windlass
from tests.engine.fenceable_store import FenceableStore
from windlass import Client, Fenced
from windlass.core.ids import JobId

PATIENCE = 20.0


@pytest.fixture
def store() -> FenceableStore:
    return FenceableStore()


@pytest.fixture
async def client(store: FenceableStore) -> AsyncIterator[Client]:
    async with windlass.connect(store.here) as client:
        yield client


WAITS: dict[str, Callable[[Client, JobId], Awaitable[object]]] = {
    "claim": lambda client, _: client.claim("empty", wait=3600),
    "claim_many": lambda client, _: client.claim_many(["empty", "nothing"], limit=10, wait=3600),
    "wait": lambda client, job_id: client.wait(job_id, 3600),
    "lock": lambda client, _: _hold(client),
}


async def _hold(client: Client) -> None:
    async with client.lock("held", ttl=3600):
        pass


@pytest.mark.parametrize("name", WAITS)
async def test_whoever_waits_is_told(store: FenceableStore, client: Client, name: str) -> None:
    job = await client.enqueue("email")
    await store.behind.lock("held", "somebody", timedelta(hours=1))
    waiting = asyncio.ensure_future(WAITS[name](client, job.id))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()

    store.take_over()

    async with asyncio.timeout(PATIENCE):
        with pytest.raises(Fenced):
            await waiting


async def test_the_holder_of_a_claim_is_told_that_it_is_lost(store: FenceableStore, client: Client) -> None:
    await client.enqueue("email")
    claim = await client.claim("email")
    assert claim is not None
    assert not claim.cancelled.is_set()

    store.take_over()

    async with asyncio.timeout(PATIENCE):
        await claim.cancelled.wait()
    assert claim.cancelled.reason == "claim_lost"
    with pytest.raises(Fenced):
        await client.ack(claim)


async def test_a_lock_that_cannot_be_renewed_is_lost_at_once(store: FenceableStore, client: Client) -> None:
    async def hold() -> None:
        async with client.lock("nightly", ttl=0.06) as held:
            store.take_over()
            await held.lost.wait()

    async with asyncio.timeout(PATIENCE):
        with pytest.raises(Fenced):
            await hold()


async def test_a_client_is_closed_without_a_word(
    store: FenceableStore, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await client.enqueue("email")

    store.take_over()
    with pytest.raises(Fenced):
        await client.enqueue("email")
    await client.close()

    assert not caplog.records
