"""Another door to the same jobs, for an event loop of its own in another thread."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable

from windlass.core.job import Claim
from windlass.core.requests import ClaimRequest, Renewed
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.topics import queue_topic
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import listening, soon
from windlass.testing.conformance.given import MINUTE, SECOND, a_job, claim_one, settlement, wanting

JOBS = 1_000


def _in_a_thread(store: Store, work: Callable[[Store], Awaitable[None]]) -> threading.Thread:
    """Start a thread with a loop of its own that works through a sibling, and closes it."""

    async def run() -> None:
        sibling = store.sibling()
        await sibling.open()
        try:
            await work(sibling)
        finally:
            await sibling.close()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    return thread


async def test_a_sibling_has_the_same_jobs(store: Store) -> None:
    sibling = store.sibling()
    await sibling.open()
    job = a_job()

    await sibling.enqueue([job])
    claim = await claim_one(store)
    await sibling.settle([settlement(claim)])
    await sibling.close()

    [read] = await store.get([job.id])
    assert read is not None
    assert read.state is State.SUCCEEDED


async def test_a_store_goes_on_when_its_sibling_is_closed(store: Store) -> None:
    sibling = store.sibling()
    await sibling.open()
    await sibling.enqueue([a_job()])

    await sibling.close()

    assert len((await store.claim(wanting())).jobs) == 1


async def test_two_threads_share_the_jobs_and_each_is_given_once(store: Store) -> None:
    given: list[str] = []
    renewed: list[Renewed | None] = []
    batches = [[a_job() for _ in range(JOBS // 20)] for _ in range(20)]

    async def work(sibling: Store) -> None:
        while claims := (await sibling.claim(wanting(limit=10))).jobs:
            renewed.extend(await sibling.renew([(claim.job.id, claim.token) for claim in claims], MINUTE))
            given.extend(claim.job.id for claim in claims)
            await sibling.settle([settlement(claim) for claim in claims])

    for batch in batches:
        await store.enqueue(batch)

    threads = [_in_a_thread(store, work) for _ in range(2)]
    await work(store)
    await asyncio.gather(*[asyncio.to_thread(thread.join) for thread in threads])

    assert Counter(given) == Counter(job.id for batch in batches for job in batch)
    assert None not in renewed
    [row] = await store.stats()
    assert (row.pending, row.running, row.succeeded) == (0, 0, JOBS)


async def test_a_sibling_renews_while_the_first_loop_stands_still(store: Store, clock: FakeClock) -> None:
    job = a_job()
    await store.enqueue([job])
    claim = await claim_one(store, lease=SECOND)
    renewed: list[Renewed | None] = []

    async def work(sibling: Store) -> None:
        renewed.extend(await sibling.renew([(claim.job.id, claim.token)], MINUTE))

    # the loop of this test does nothing else meanwhile
    _in_a_thread(store, work).join()

    assert renewed == [Renewed(clock.now() + MINUTE, cancel_requested=False)]


async def test_news_comes_from_a_sibling_in_another_thread(store: Store) -> None:
    if not store.features.wakes_waiters:
        return

    async def work(sibling: Store) -> None:
        await sibling.enqueue([a_job()])

    with listening(store, queue_topic("default")) as woken:
        thread = _in_a_thread(store, work)
        await soon(woken.wait())
    await asyncio.to_thread(thread.join)


async def test_a_claim_through_one_door_is_settled_through_another(store: Store) -> None:
    await store.enqueue([a_job() for _ in range(3)])
    claims: list[Claim] = []

    async def work(sibling: Store) -> None:
        claims.extend((await sibling.claim(ClaimRequest(["default"], 3, MINUTE))).jobs)

    await asyncio.to_thread(_in_a_thread(store, work).join)
    await store.settle([settlement(claim) for claim in claims])

    [row] = await store.stats()
    assert row.succeeded == 3
