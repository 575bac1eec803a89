"""Nothing is answered, shown or told before it is durable."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, Final

import pytest

from tests.stores.slatedb.lived import job, numbered
from tests.stores.slatedb.opened import Held, gathering, new_address, opened, recorded, room_of
from windlass.core.errors import UniqueConflict
from windlass.core.job import Claim
from windlass.core.moving import Moved, Packed, Parcel
from windlass.core.requests import ClaimRequest, KvWrite, RescueRequest
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.core.topics import ENDS, queue_topic
from windlass.core.unique import Unique, hold
from windlass.stores.slatedb import SlateStore
from windlass.stores.slatedb.moves.housekeeping import PruneBeside
from windlass.testing.conformance.given import settlement

MINUTE: Final = timedelta(minutes=1)
REQUEST: Final = ClaimRequest(["email"], 1, MINUTE)
TURNS: Final = 0.05


@pytest.fixture
async def store() -> AsyncIterator[SlateStore]:
    async with opened() as store:
        yield store


async def stays_unanswered(*tasks: "asyncio.Task[Any]") -> bool:
    """Whether none of these is answered, given the time that all of them would take otherwise."""
    done, _ = await asyncio.wait(tasks, timeout=TURNS)
    return not done


CALLS: Final[dict[str, Callable[[Store, Claim], Awaitable[object]]]] = {
    "enqueue": lambda store, _: store.enqueue([job(10)]),
    "claim": lambda store, _: store.claim(REQUEST),
    "settle": lambda store, claim: store.settle([settlement(claim)]),
    "renew": lambda store, claim: store.renew([(claim.job.id, claim.token)], MINUTE),
    "kv": lambda store, _: store.kv_write(KvWrite(b"k", b"v")),
    "lock": lambda store, _: store.lock("l", "me", MINUTE),
    "pause": lambda store, _: store.set_paused("email", paused=True),
    "timings": lambda store, claim: store.write_timings([TimingCount(claim.job.created_at, "email", "", "ran", 0, 1)]),
    "moved": lambda store, _: store.set_moved(Moved("redis://other", "move")),
    "unpack": lambda store, _: store.unpack(Parcel("move", "email", 1, Packed([], []))),
    "let go": lambda store, _: store.let_go(jobs=[numbered(2)]),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_is_answered_when_what_it_wrote_is_durable(store: SlateStore, name: str) -> None:
    await store.enqueue([job(1), job(2)])
    [claim] = (await store.claim(REQUEST)).jobs
    held = Held(store)

    call = asyncio.ensure_future(CALLS[name](store, claim))
    await held.begun()
    assert await stays_unanswered(call)
    await held.let_go()

    await call


READERS: Final[dict[str, Callable[[Store], Awaitable[object]]]] = {
    "claim": lambda store: store.claim(ClaimRequest(["later"], 1, MINUTE)),
    "due in": lambda store: store.due_in(["later"]),
    "promote": lambda store: store.promote(limit=1),
    "rescue": lambda store: store.rescue(RescueRequest(), KEEP_ALL),
    "prune beside": lambda store: room_of(store).submit(PruneBeside()),
    "look": lambda store: store.stats(),
}


@pytest.mark.parametrize("name", READERS)
async def test_a_call_is_durable_first_also_beside_one_that_reads_and_changes_nothing(name: str) -> None:
    address = new_address()
    async with opened(address) as before:
        await before.enqueue([job(1), job(2, "later", delay=MINUTE)])
        await before.claim(REQUEST)
    # an owner that begins has not read what stands where
    async with opened(address) as store:
        held = Held(store)

        async with gathering(store):
            enqueue = asyncio.create_task(store.enqueue([job(3)]))
            reader = asyncio.ensure_future(READERS[name](store))
        assert await stays_unanswered(enqueue)
        await held.let_go()

        await asyncio.gather(enqueue, reader)


async def test_a_look_does_not_tell_what_may_yet_be_lost(store: SlateStore) -> None:
    held = Held(store)

    enqueue = asyncio.create_task(store.enqueue([job(1)]))
    await held.begun()
    get, stats, other = (
        asyncio.create_task(store.get([numbered(1)])),
        asyncio.create_task(store.stats()),
        asyncio.create_task(store.kv_get([b"other"])),
    )
    assert await stays_unanswered(enqueue, get, stats, other)
    await held.let_go()

    assert [each is not None for each in await get] == [True]
    assert [each.pending for each in await stats] == [1]
    assert await other == [None]


async def test_a_refusal_that_speaks_of_a_job_waits_until_that_is_durable(store: SlateStore) -> None:
    unique = hold(Unique("k", on_conflict="raise"), queue="email", kind=None, tenant=None, payload=b"")
    held = Held(store)

    first = asyncio.create_task(store.enqueue([job(1, unique=unique)]))
    await held.begun()
    second = asyncio.create_task(store.enqueue([job(2, unique=unique)]))
    repeated = asyncio.create_task(store.enqueue([job(1, unique=unique)]))
    assert await stays_unanswered(first, second, repeated)
    await held.let_go()

    assert [(each.id, each.created) for each in await first] == [(numbered(1), True)]
    with pytest.raises(UniqueConflict):
        await second
    assert [(each.id, each.created) for each in await repeated] == [(numbered(1), False)]


async def test_whoever_listens_is_rung_when_the_news_is_durable(store: SlateStore) -> None:
    await store.enqueue([job(1)])
    [claim] = (await store.claim(REQUEST)).jobs
    with recorded(store, queue_topic("email"), ENDS) as rung:
        held = Held(store)

        calls: list[asyncio.Task[Any]] = [
            asyncio.create_task(store.enqueue([job(2)])),
            asyncio.create_task(store.settle([settlement(claim)])),
        ]
        await held.begun()
        assert await stays_unanswered(*calls)
        assert rung == []
        await held.let_go()
        await asyncio.gather(*calls)

        # it is rung right behind the answer
        await store.stats()
        assert rung


async def test_a_look_with_nothing_before_it_waits_for_no_flush(store: SlateStore) -> None:
    await store.enqueue([job(1)])
    held = Held(store)

    [found] = await store.get([numbered(1)])

    assert found is not None
    assert found.state is State.PENDING
    assert (await store.claim(ClaimRequest(["other"], 1, MINUTE))).jobs == []
    await held.let_go()


async def test_what_gathers_behind_a_flush_shares_the_next(store: SlateStore) -> None:
    held = Held(store)
    first = asyncio.create_task(store.enqueue([job(0)]))
    await held.begun()

    calls = [asyncio.create_task(store.enqueue([job(n)])) for n in range(1, 100)]
    assert await stays_unanswered(first, *calls)
    await held.let_go()
    await asyncio.gather(first, *calls)

    # the first one, those that came while it began, and the rest
    assert held.flushes <= 3
    [stats] = await store.stats("email")
    assert stats.pending == 100
