"""`wait` and the `cancelled` event: one shared look for everybody."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable, Collection
from uuid import uuid4

import pytest

import windlass
from windlass import Claim, Client, ClientClosed, Completed, NewJob, NotFound, State, TimedOut
from windlass.core.ids import JobId
from windlass.core.looks import Glance
from windlass.core.requests import Settlement
from windlass.core.retention import KEEP_ALL
from windlass.core.topics import Topic
from windlass.core.verdict import ToSucceeded
from windlass.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(clock: FakeClock) -> AsyncIterator[Client]:
    async with windlass.connect("memory://", clock=clock) as client:
        yield client


@pytest.fixture
def looks(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[Collection[JobId]]:
    seen: list[Collection[JobId]] = []
    glance_now = client.store.glance

    async def glance(ids: Collection[JobId]) -> dict[JobId, Glance]:
        seen.append(ids)
        return await glance_now(ids)

    monkeypatch.setattr(client.store, "glance", glance)
    return seen


async def a_claim(client: Client) -> Claim:
    await client.enqueue("email")
    claim = await client.claim("email")
    assert claim is not None
    return claim


async def test_an_id_that_is_not_there_is_not_found_at_once(client: Client) -> None:
    assert await client.wait(uuid4(), 60) == NotFound()


async def test_a_wait_ends_with_its_time(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email")
    waiting = asyncio.create_task(client.wait(done.id, 5))
    await clock.timers(2)

    clock.advance(5)

    assert await waiting == TimedOut()


async def test_no_time_at_all_is_enough_for_a_job_that_has_ended(client: Client) -> None:
    claim = await a_claim(client)
    await client.dead_letter(claim, "no")

    found = await client.wait(claim.job.id, 0)

    assert isinstance(found, Completed)
    assert found.job is not None
    assert found.job.state is State.DEAD


async def test_a_job_whose_record_went_is_completed_without_one(client: Client, clock: FakeClock) -> None:
    claim = await a_claim(client)
    waiting = asyncio.create_task(client.wait(claim.job.id, 60))
    await clock.timers(1)

    await client.store.settle([Settlement(claim.job.id, claim.token, ToSucceeded(), keep=False)])

    assert await waiting == Completed(None)


async def test_many_waiters_share_one_look(client: Client, looks: list[Collection[JobId]]) -> None:
    done = await client.enqueue_many([NewJob("email") for _ in range(100)])
    waiting = [asyncio.create_task(client.wait(one.id, 60)) for one in done]
    claims = await client.claim_many("email", limit=100)
    await asyncio.gather(*[client.ack(claim) for claim in claims])

    results = await asyncio.gather(*waiting)

    assert all(isinstance(result, Completed) for result in results)
    assert len(looks) < 5


async def test_a_lost_ring_costs_one_poll_interval(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deaf(_topics: Collection[Topic], _ring: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    monkeypatch.setattr(client.store, "listen", deaf)
    claim = await a_claim(client)
    waiting = asyncio.create_task(client.wait(claim.job.id, 60))
    await clock.timers(2)
    await client.ack(claim)

    clock.advance(1)

    assert isinstance(await waiting, Completed)


async def test_the_close_ends_a_wait(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email")
    waiting = asyncio.create_task(client.wait(done.id))
    await clock.timers(1)

    await client.close()

    with pytest.raises(ClientClosed):
        await waiting


async def test_a_store_that_is_gone_fails_a_first_look_and_is_waited_for_later(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = await a_claim(client)
    waiting = asyncio.create_task(client.wait(claim.job.id))
    await clock.timers(1)
    gone = asyncio.Event()

    async def unavailable(_ids: Collection[JobId]) -> dict[JobId, Glance]:
        gone.set()
        raise windlass.StoreUnavailable("gone", retryable=True)

    with monkeypatch.context() as patch:
        patch.setattr(client.store, "glance", unavailable)
        with pytest.raises(windlass.StoreUnavailable):
            await client.wait(claim.job.id)
        await gone.wait()
    await client.ack(claim)

    assert isinstance(await waiting, Completed)


async def test_an_event_that_nobody_looks_at_is_not_watched(
    client: Client, clock: FakeClock, looks: list[Collection[JobId]]
) -> None:
    claim = await a_claim(client)

    await client.cancel(claim.job.id)

    assert looks == []
    assert clock.waiting == 0


async def test_a_cancel_by_the_same_client_sets_the_event_at_once(client: Client) -> None:
    looked_at, fresh = await a_claim(client), await a_claim(client)
    before = looked_at.cancelled.is_set()

    for claim in (looked_at, fresh):
        await client.cancel(claim.job.id)

    assert not before
    assert (looked_at.cancelled.is_set(), looked_at.cancelled.reason) == (True, "cancel")
    assert (fresh.cancelled.is_set(), fresh.cancelled.reason) == (True, "cancel")


async def test_a_later_claim_does_not_inherit_an_old_request(client: Client) -> None:
    claim = await a_claim(client)
    await client.cancel(claim.job.id)
    await client.cancel_claim(claim, "asked to")
    await client.retry(claim.job.id)

    again = await client.claim("email")

    assert again is not None
    assert not again.cancelled.is_set()


async def test_a_flagged_job_is_claimed_with_its_event_set(client: Client) -> None:
    claim = await a_claim(client)
    await client.cancel(claim.job.id)
    await client.rescue(force=True)

    again = await client.claim("email")

    assert again is not None
    assert again.cancelled.is_set()
    await again.cancelled.wait()


async def test_a_cancel_by_another_client_wakes_who_waits_for_it() -> None:
    async with windlass.connect("memory://events") as one, windlass.connect("memory://events") as other:
        claim = await a_claim(one)
        waiting = asyncio.create_task(claim.cancelled.wait())
        await asyncio.sleep(0)

        await other.cancel(claim.job.id)

        await waiting
        assert claim.cancelled.reason == "cancel"


async def test_a_rescued_claim_is_told_that_it_is_lost(client: Client) -> None:
    claim = await a_claim(client)
    waiting = asyncio.create_task(claim.cancelled.wait())
    await asyncio.sleep(0)

    await client.rescue(force=True)

    await waiting
    assert claim.cancelled.reason == "claim_lost"


async def test_a_settled_claim_is_not_told_that_it_is_lost(client: Client) -> None:
    claim = await a_claim(client)
    other = await a_claim(client)
    assert not claim.cancelled.is_set()
    assert not other.cancelled.is_set()

    await client.ack(claim)
    await client.rescue(force=True)
    await other.cancelled.wait()

    assert not claim.cancelled.is_set()
    assert claim.cancelled.reason is None


@pytest.mark.slow
async def test_a_dropped_claim_is_watched_no_longer(
    client: Client, clock: FakeClock, looks: list[Collection[JobId]]
) -> None:
    claim = await a_claim(client)
    assert not claim.cancelled.is_set()
    await clock.timers(1)
    while_held = len(looks)

    del claim
    gc.collect()
    clock.advance(1)
    await clock.timers(1)

    assert (while_held, len(looks)) == (1, 1)


async def test_a_thread_can_wait_for_the_event(client: Client) -> None:
    claim = await a_claim(client)
    found: list[bool] = []
    looking = threading.Event()

    def work() -> None:
        found.append(claim.cancelled.wait_sync(0))
        looking.set()
        found.append(claim.cancelled.wait_sync())

    thread = asyncio.create_task(asyncio.to_thread(work))
    await asyncio.to_thread(looking.wait)
    await client.store.cancel([claim.job.id], KEEP_ALL)
    await thread

    assert found == [False, True]


async def test_a_wait_is_true_in_a_condition_when_the_job_has_ended(client: Client) -> None:
    done = await client.enqueue("email")

    assert not await client.wait(done.id, 0)
    assert not await client.wait(uuid4(), 0)
    [claim] = await client.claim_many("email")
    await client.ack(claim)
    assert await client.wait(done.id, 0)
