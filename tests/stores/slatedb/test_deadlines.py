"""A flush that does not return: callers are told by the deadline what is known, and all goes on when it works again."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Final

import pytest

from tests.stores.slatedb.lived import job, numbered
from tests.stores.slatedb.opened import (
    PATIENCE,
    Held,
    database_of,
    engine_of,
    eventually_is,
    impatient,
    opened,
    pending,
    until_full,
)
from windlass.core.duration import ZERO
from windlass.core.errors import OutcomeUnknown, StoreUnavailable
from windlass.core.job import Failure, Job
from windlass.core.requests import ClaimRequest, Settled
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.verdict import ToRetry
from windlass.stores.slatedb import SlateStore
from windlass.testing.conformance.given import settlement

MINUTE: Final = timedelta(minutes=1)
REQUEST: Final = ClaimRequest(["email"], 2, MINUTE)


@pytest.fixture
async def store() -> AsyncIterator[SlateStore]:
    async with opened() as store:
        yield store


async def error_of(call: "asyncio.Future[Any]") -> BaseException | None:
    """Return what a call raised, which must come by its deadline."""
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait([call])
    return call.exception()


async def job_of(store: SlateStore, number: int) -> Job:
    [found] = await store.get([numbered(number)])
    assert found is not None
    return found


async def test_an_enqueue_and_a_settlement_in_doubt_name_their_job(store: SlateStore) -> None:
    await store.enqueue([job(1)])
    [claim] = (await store.claim(REQUEST)).jobs
    held = Held(store)

    with impatient(store):
        calls = [
            asyncio.ensure_future(store.enqueue([job(2), job(3)])),
            asyncio.ensure_future(store.settle([settlement(claim)])),
        ]
        errors = [await error_of(call) for call in calls]

    assert [type(error) for error in errors] == [OutcomeUnknown, OutcomeUnknown]
    assert [getattr(error, "job_id", None) for error in errors] == [numbered(2), numbered(1)]
    await held.let_go()
    # who asks again is told what became of it
    assert [each.created for each in await store.enqueue([job(2), job(3)])] == [False, False]
    assert await store.settle([settlement(claim)]) == [Settled.REPEATED]


@pytest.mark.parametrize("given_up", [True, False])
async def test_a_claim_in_doubt_gives_its_jobs_back(store: SlateStore, *, given_up: bool) -> None:
    await store.enqueue([job(1), job(2)])
    database = database_of(store)
    held = Held(store, given_up=given_up)

    with impatient(store):
        error = await error_of(asyncio.ensure_future(store.claim(REQUEST)))

    assert isinstance(error, StoreUnavailable)
    assert error.retryable
    await held.let_go()
    await eventually_is(lambda: pending(store), 2)
    found = await job_of(store, 1)
    assert (found.state, found.attempt) == (State.PENDING, 0)
    claims = (await store.claim(REQUEST)).jobs
    assert [(claim.job.id, claim.job.attempt) for claim in claims] == [(numbered(1), 1), (numbered(2), 1)]
    assert database_of(store) is database


async def test_a_claim_in_doubt_that_was_repeated_keeps_its_jobs(store: SlateStore) -> None:
    await store.enqueue([job(1), job(2)])
    held = Held(store, given_up=False)
    with impatient(store):
        assert isinstance(await error_of(asyncio.ensure_future(store.claim(REQUEST, request_id="r"))), StoreUnavailable)
    again = asyncio.ensure_future(store.claim(REQUEST, request_id="r"))
    await until_full(store)

    await held.let_go()
    claims = (await again).jobs
    await store.stats()

    assert [claim.job.id for claim in claims] == [numbered(1), numbered(2)]
    assert await store.settle([settlement(claim) for claim in claims]) == [Settled.DONE] * 2


async def test_a_claim_whose_repeat_was_given_up_as_well_gives_its_jobs_back(store: SlateStore) -> None:
    await store.enqueue([job(1), job(2)])
    held = Held(store, given_up=False)
    with impatient(store):
        assert isinstance(await error_of(asyncio.ensure_future(store.claim(REQUEST, request_id="r"))), StoreUnavailable)
    again = asyncio.ensure_future(store.claim(REQUEST, request_id="r"))
    await until_full(store)

    again.cancel()
    await held.let_go()

    await eventually_is(lambda: pending(store), 2)


async def test_a_look_that_may_have_seen_too_much_is_unavailable_and_then_waits_for_a_flush_that_works(
    store: SlateStore,
) -> None:
    held = Held(store)
    with impatient(store):
        in_doubt = asyncio.ensure_future(store.enqueue([job(1)]))
        await held.begun()

        error = await error_of(asyncio.ensure_future(store.get([numbered(1)])))

        assert isinstance(error, StoreUnavailable)
        assert isinstance(await error_of(in_doubt), OutcomeUnknown)
        # nobody writes any more, and still nobody may see it
        again = asyncio.ensure_future(store.get([numbered(1)]))
        assert isinstance(await error_of(again), StoreUnavailable)
    later = asyncio.ensure_future(store.get([numbered(1)]))
    await held.let_go()
    [found] = await later
    assert found is not None


async def test_a_call_that_was_not_begun_says_so(store: SlateStore) -> None:
    held = Held(store, given_up=False)
    with impatient(store):
        begun = [asyncio.ensure_future(store.enqueue([job(1)]))]
        await held.begun()
        begun.append(asyncio.ensure_future(store.enqueue([job(2)])))
        await until_full(store)
        late = [asyncio.ensure_future(store.enqueue([job(n)])) for n in range(3, 6)]

        errors = [await error_of(call) for call in late]
        assert {type(error) for error in errors} == {StoreUnavailable}
        assert all("nothing of what was asked was begun" in str(error) for error in errors)
        assert {type(await error_of(call)) for call in begun} == {OutcomeUnknown}
    await held.let_go()

    found = await store.get([numbered(n) for n in range(1, 6)])
    assert [each is not None for each in found] == [True, True, False, False, False]


async def test_large_calls_that_have_gathered_are_parted_over_several_writes(store: SlateStore) -> None:
    held = Held(store)
    first = [asyncio.ensure_future(store.enqueue([job(0)]))]
    await held.begun()
    first.append(asyncio.ensure_future(store.enqueue([job(1)])))
    await until_full(store)
    large = [asyncio.ensure_future(store.enqueue([job(n, payload=bytes(600_000))])) for n in range(2, 22)]

    await held.let_go()
    await asyncio.gather(*first, *large)

    # twelve megabytes, of which at most two groups of some two share one
    assert held.flushes >= 2 + 12 / 2 / 2.4


async def test_all_goes_on_after_many_deadlines_without_opening_anew(store: SlateStore) -> None:
    database = database_of(store)
    held = Held(store)

    with impatient(store):
        for number in range(3):
            assert isinstance(await error_of(asyncio.ensure_future(store.enqueue([job(number)]))), OutcomeUnknown)
    await held.let_go()

    await store.enqueue([job(10)])
    [claim] = (await store.claim(ClaimRequest(["email"], 1, MINUTE))).jobs
    assert await store.settle([settlement(claim)]) == [Settled.DONE]
    assert database_of(store) is database
    findings = {finding.name: finding.level for finding in await store.check()}
    assert findings["counts"] == "ok"


async def test_a_write_that_may_be_lost_takes_all_calls_along_that_it_was_for(store: SlateStore) -> None:
    database = database_of(store)
    engine = engine_of(store)
    write = engine.write

    async def lose(_: object) -> None:
        engine.write = write
        await asyncio.sleep(PATIENCE)

    held = Held(store)
    before = [asyncio.ensure_future(store.enqueue([job(1)]))]
    await held.begun()
    before.append(asyncio.ensure_future(store.enqueue([job(2)])))
    await until_full(store)
    # served together: a prune reads much, and what others have changed is written before that
    together = [asyncio.ensure_future(store.enqueue([job(3)])), asyncio.ensure_future(store.prune(KEEP_ALL, limit=1))]
    engine.write = lose
    with impatient(store, callers=False):
        await held.let_go()
        await asyncio.wait(before)

        errors = [await error_of(call) for call in together]

    assert [type(error) for error in errors] == [OutcomeUnknown, StoreUnavailable]
    # what is in memory may be otherwise than what is in the database: it is read anew
    await until_it_answers(store)
    assert database_of(store) is not database
    found = await store.get([numbered(n) for n in range(1, 4)])
    assert [each is not None for each in found] == [True, True, False]
    [stats] = await store.stats("email")
    assert stats.pending == 2


async def until_it_answers(store: SlateStore) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await store.stats()
            except StoreUnavailable:
                await asyncio.sleep(0.02)
            else:
                return


@pytest.mark.parametrize("given_up", [True, False])
@pytest.mark.parametrize("back", [True, False])
async def test_a_settlement_in_doubt_that_left_no_record_is_no_lost_claim_when_it_is_repeated(
    store: SlateStore, *, given_up: bool, back: bool
) -> None:
    await store.enqueue([job(1), job(2)])
    gone, retried = (await store.claim(REQUEST)).jobs
    ends = [settlement(gone, keep=False), settlement(retried, ToRetry(ZERO, Failure("boom")))]
    held = Held(store, given_up=given_up)

    with impatient(store):
        error = await error_of(asyncio.ensure_future(store.settle(ends)))
        assert isinstance(error, OutcomeUnknown)
        if not back:
            # it is asked before it is durable, and told when it is
            assert isinstance(await error_of(asyncio.ensure_future(store.settle(ends))), OutcomeUnknown)
    await held.let_go()
    [again] = (await store.claim(REQUEST)).jobs

    assert again.job.id == retried.job.id
    assert await store.settle(ends) == [Settled.REPEATED, Settled.REPEATED]
    # a token that has settled nothing is as stale as before
    stale = settlement(gone)._replace(token=retried.token)
    assert await store.settle([stale]) == [Settled.LOST]


async def test_a_settlement_whose_caller_has_gone_is_no_lost_claim_when_it_is_repeated(store: SlateStore) -> None:
    await store.enqueue([job(1)])
    [claim] = (await store.claim(REQUEST)).jobs
    held = Held(store)
    first = asyncio.ensure_future(store.settle([settlement(claim, keep=False)]))
    await held.begun()

    first.cancel()
    await held.let_go()
    await store.stats()

    assert await store.settle([settlement(claim, keep=False)]) == [Settled.REPEATED]


async def test_a_stale_settlement_in_doubt_stays_stale(store: SlateStore) -> None:
    await store.enqueue([job(1), job(2)])
    claim, other = (await store.claim(REQUEST)).jobs
    stale = settlement(claim, keep=False)._replace(token=other.token)
    held = Held(store)

    with impatient(store):
        both = asyncio.ensure_future(store.settle([stale, settlement(claim, keep=False)]))
        assert isinstance(await error_of(both), OutcomeUnknown)
    await held.let_go()

    assert await store.settle([stale]) == [Settled.LOST]
