"""A claim settled in the transaction that wrote its effects: all of it happens, or nothing."""

import asyncio

import pytest

from windlass.borrow import borrow
from windlass.core.errors import NotTransactional
from windlass.core.job import Token
from windlass.core.requests import Rescued, RescueRequest, Settled
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.topics import ENDS, queue_topic
from windlass.testing.conformance.fixtures import listening, soon
from windlass.testing.conformance.given import UNKNOWN, a_job, claim_one, released, settlement

FORCED = RescueRequest(force=True)


class Undone(Exception):
    """What a handler raises in the middle of its transaction."""


async def test_a_store_without_transactions_says_so(store: Store) -> None:
    if store.features.transactional:
        return

    with pytest.raises(NotTransactional):
        async with store.transaction():
            pass


async def test_an_open_store_is_prepared(store: Store) -> None:
    assert await store.is_prepared()


async def test_what_is_settled_in_a_transaction_is_there_after_its_end(transactional: Store) -> None:
    store, job, following = transactional, a_job(), a_job("next")
    await store.enqueue([job])
    claim = await claim_one(store)

    async with store.transaction() as connection:
        joined = store.join(borrow(connection))
        held = await joined.fence([(job.id, claim.token)])
        settled = await joined.settle([settlement(claim)._replace(then=[following], kv={b"k": b"v"})])
        [inside] = await store.get([job.id])

    assert (held, settled) == ([True], [Settled.DONE])
    assert inside is not None
    assert inside.state is State.RUNNING
    read = await store.get([job.id, following.id])
    assert [each and each.state for each in read] == [State.SUCCEEDED, State.PENDING]
    assert await store.kv_get([b"k"]) == [b"v"]


async def test_an_exception_undoes_the_whole_transaction(transactional: Store) -> None:
    store, job, following = transactional, a_job(), a_job("next")
    await store.enqueue([job])
    claim = await claim_one(store)

    with pytest.raises(Undone):
        async with store.transaction() as connection:
            joined = store.join(borrow(connection))
            await joined.settle([settlement(claim)._replace(kv={b"k": b"v"})])
            await joined.enqueue([following])
            raise Undone

    [read, gone] = await store.get([job.id, following.id])
    assert read is not None
    assert (read.state, gone) == (State.RUNNING, None)
    assert await store.kv_get([b"k"]) == [None]
    assert await store.settle([settlement(claim)]) == [Settled.DONE]


async def test_the_fence_tells_which_claims_still_hold(transactional: Store) -> None:
    store = transactional
    await store.enqueue([a_job() for _ in range(3)])
    held, given_back, taken_back = [await claim_one(store, worker=name) for name in ("w1", "w2", "w3")]
    await store.settle([released(given_back)])
    await store.rescue(RescueRequest(workers=["w3"], force=True), KEEP_ALL)
    await claim_one(store)
    claims = [(claim.job.id, claim.token) for claim in (taken_back, held, given_back)]

    async with store.transaction() as connection:
        answer = await store.join(borrow(connection)).fence(
            [*claims, (held.job.id, Token("0" * 32)), (UNKNOWN, held.token)]
        )

    assert answer == [False, True, False, False, False]


async def test_a_fenced_claim_changes_nothing(transactional: Store) -> None:
    store, job = transactional, a_job()
    await store.enqueue([job])
    claim = await claim_one(store)
    before = await store.get([job.id])

    async with store.transaction() as connection:
        await store.join(borrow(connection)).fence([(job.id, claim.token)])

    assert await store.get([job.id]) == before


async def test_no_rescue_takes_a_fenced_job_before_the_transaction_ends(transactional: Store) -> None:
    store, job = transactional, a_job()
    await store.enqueue([job])
    claim = await claim_one(store)

    async with store.transaction() as connection:
        joined = store.join(borrow(connection))
        assert await joined.fence([(job.id, claim.token)]) == [True]
        rescuing = asyncio.ensure_future(store.rescue(FORCED, KEEP_ALL))
        await asyncio.sleep(0)
        settled = await joined.settle([settlement(claim)])

    assert settled == [Settled.DONE]
    assert await soon(rescuing) == []
    [read] = await store.get([job.id])
    assert read is not None
    assert read.state is State.SUCCEEDED


async def test_a_rescue_before_the_transaction_is_told_by_its_fence(transactional: Store) -> None:
    store, job = transactional, a_job()
    await store.enqueue([job])
    claim = await claim_one(store)
    assert await store.rescue(FORCED, KEEP_ALL) == [Rescued(job.id, State.PENDING)]

    async with store.transaction() as connection:
        joined = store.join(borrow(connection))
        held = await joined.fence([(job.id, claim.token)])
        settled = await joined.settle([settlement(claim)])

    assert (held, settled) == ([False], [Settled.LOST])


async def test_transactions_that_want_to_begin_at_once_go_one_after_the_other(transactional: Store) -> None:
    store, jobs = transactional, [a_job() for _ in range(20)]
    await store.enqueue(jobs)
    claims = [await claim_one(store) for _ in jobs]

    async def transact(number: int) -> None:
        async with store.transaction() as connection:
            joined = store.join(borrow(connection))
            assert await joined.fence([(claims[number].job.id, claims[number].token)]) == [True]
            await asyncio.sleep(0)
            assert await joined.settle([settlement(claims[number])]) == [Settled.DONE]

    await soon(asyncio.gather(*map(transact, range(20))))

    [row] = await store.stats()
    assert (row.running, row.succeeded) == (0, 20)


async def test_news_of_a_transaction_rings_after_its_commit(transactional: Store) -> None:
    store, job = transactional, a_job()
    await store.enqueue([job])
    claim = await claim_one(store)

    with listening(store, ENDS, queue_topic("next")) as woken:
        async with store.transaction() as connection:
            joined = store.join(borrow(connection))
            await joined.settle([settlement(claim)._replace(then=[a_job("next")])])
            # a store that has just begun to listen may ring for nothing
            woken.clear()
        await soon(woken.wait())


async def test_writes_outside_of_a_transaction_wait_for_its_end_or_go_beside_it(transactional: Store) -> None:
    store, job, beside = transactional, a_job(), a_job("beside")
    await store.enqueue([job])
    claim = await claim_one(store)

    async with store.transaction() as connection:
        writing = asyncio.ensure_future(store.enqueue([beside]))
        await store.join(borrow(connection)).settle([settlement(claim)])

    assert [done.created for done in await soon(writing)] == [True]


async def test_a_caller_who_gives_up_waiting_leaves_the_way_free(transactional: Store) -> None:
    store = transactional

    async def transact() -> None:
        async with store.transaction():
            pass

    async with store.transaction():
        waiting = asyncio.ensure_future(transact())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})

    assert waiting.cancelled()
    await soon(transact())


async def test_a_transaction_that_is_cancelled_is_undone(transactional: Store) -> None:
    store, job = transactional, a_job()
    await store.enqueue([job])
    claim = await claim_one(store)
    inside = asyncio.Event()

    async def transact() -> None:
        async with store.transaction() as connection:
            await store.join(borrow(connection)).settle([settlement(claim)])
            inside.set()
            await asyncio.Event().wait()

    transacting = asyncio.ensure_future(transact())
    await soon(inside.wait())
    transacting.cancel()
    await asyncio.wait({transacting})

    assert transacting.cancelled()
    [read] = await store.get([job.id])
    assert read is not None
    assert read.state is State.RUNNING
