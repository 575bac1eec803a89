"""Callers that go away while their claims are under way: the jobs go back, at no cost."""

import asyncio
from datetime import timedelta
from typing import Final

from tests.stores.slatedb.lived import job, numbered
from tests.stores.slatedb.opened import Held, eventually_is, new_address, opened, pending, store_at, until_full
from windlass.core.requests import Claimed, ClaimRequest
from windlass.core.states import State

MINUTE: Final = timedelta(minutes=1)
REQUEST: Final = ClaimRequest(["email"], 2, MINUTE)


async def cancel(task: "asyncio.Task[Claimed]") -> None:
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_jobs_of_a_claim_that_was_cancelled_under_way_go_back() -> None:
    async with opened() as store:
        await store.enqueue([job(1), job(2), job(3)])
        held = Held(store)
        claim = asyncio.create_task(store.claim(REQUEST))
        await held.begun()

        await cancel(claim)
        await held.let_go()

        await eventually_is(lambda: pending(store), 3)
        claims = (await store.claim(REQUEST)).jobs
        assert [(each.job.id, each.job.attempt) for each in claims] == [(numbered(1), 1), (numbered(2), 1)]


async def test_a_claim_that_was_cancelled_before_it_began_takes_nothing() -> None:
    async with opened() as store:
        await store.enqueue([job(1)])
        held = Held(store)
        others = [asyncio.create_task(store.enqueue([job(2, "other")]))]
        await held.begun()
        others.append(asyncio.create_task(store.enqueue([job(3, "other")])))
        await until_full(store)
        claim = asyncio.create_task(store.claim(REQUEST))
        await asyncio.sleep(0)

        await cancel(claim)
        await held.let_go()
        await asyncio.gather(*others)

        [found] = await store.get([numbered(1)])
        assert found is not None
        assert (found.state, found.delivery) == (State.PENDING, 0)


async def test_jobs_go_back_although_the_store_is_closed_meanwhile() -> None:
    address = new_address()
    store = store_at(address)
    await store.open()
    await store.enqueue([job(1), job(2)])
    held = Held(store)
    claim = asyncio.create_task(store.claim(REQUEST))
    await held.begun()

    await cancel(claim)
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    await held.let_go()
    await closing

    async with opened(address) as again:
        found = await again.get([numbered(1), numbered(2)])
        assert [each and (each.state, each.attempt) for each in found] == [(State.PENDING, 0)] * 2


async def test_jobs_claimed_for_an_event_loop_that_was_closed_go_back() -> None:
    address = new_address()
    async with opened(address) as store:
        await store.enqueue([job(1)])
        sibling = store_at(address)
        held = Held(store)

        async def claim_and_leave() -> None:
            await sibling.open()
            claim = asyncio.create_task(sibling.claim(REQUEST))
            await held.begun()
            # the loop goes, and its only caller with it
            claim.cancel()

        await asyncio.to_thread(asyncio.run, claim_and_leave())
        await held.let_go()

        await eventually_is(lambda: pending(store), 1)
        await sibling.close()
