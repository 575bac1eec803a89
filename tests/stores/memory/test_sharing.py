import asyncio
import gc
import weakref
from collections import Counter
from datetime import timedelta
from threading import Thread

import pytest

from windlass.connect import connect
from windlass.core.errors import UniqueConflict
from windlass.core.ids import JobId
from windlass.core.job import NO_HEADERS, NewJob, PreparedJob
from windlass.core.requests import ClaimRequest
from windlass.core.unique import Unique
from windlass.stores.memory import MemoryStore
from windlass.testing import FakeClock, SeededRng


async def test_a_named_store_is_shared_and_a_nameless_one_is_not() -> None:
    async with connect("memory://shared") as one, connect("memory://shared") as other, connect("memory://") as alone:
        enqueued = await one.enqueue("email", b"hello")

        assert await other.get(enqueued.id) is not None
        assert await alone.get(enqueued.id) is None


async def test_closing_one_client_leaves_the_jobs_of_a_named_store_to_the_others() -> None:
    async with connect("memory://stays") as other:
        async with connect("memory://stays") as one:
            await one.enqueue("email", b"hello")

        assert await other.claim("email") is not None


def test_threads_with_loops_of_their_own_share_a_named_store_and_get_each_job_once() -> None:
    given: list[str] = []

    async def produce_and_consume() -> None:
        async with connect("memory://threads") as client:
            for _ in range(100):
                await client.enqueue_many([NewJob("email"), NewJob("email")])
                for claim in await client.claim_many(["email"], limit=2):
                    given.append(claim.job.id)
                    await client.ack(claim)

    threads = [Thread(target=asyncio.run, args=(produce_and_consume(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(given) == 800
    assert Counter(given).most_common(1)[0][1] == 1


def test_a_waiter_is_woken_from_a_thread_with_another_loop() -> None:
    async def wait_for_a_job() -> bool:
        async with connect("memory://woken") as client:
            waiting = asyncio.create_task(client.claim("email", wait=30))
            await asyncio.sleep(0)
            await asyncio.to_thread(asyncio.run, enqueue())
            return await waiting is not None

    async def enqueue() -> None:
        async with connect("memory://woken") as client:
            await client.enqueue("email", b"hello")

    assert asyncio.run(asyncio.wait_for(wait_for_a_job(), 10))


async def test_a_refused_batch_leaves_nothing_behind() -> None:
    async with connect("memory://") as client:
        await client.enqueue("email", b"first", unique=Unique("k", on_conflict="replace"))
        before = [await client.jobs(), await client.stats(), await client.kv.scan()]
        batch = [
            NewJob("new", b"plain", kv={"a": b"1"}),
            NewJob("email", b"newer", unique=Unique("k", on_conflict="replace"), kv={"b": b"2"}),
            NewJob("email", b"taken", unique=Unique("other", until="finished")),
            NewJob("email", b"refused", unique=Unique("k", on_conflict="raise")),
        ]

        with pytest.raises(UniqueConflict):
            await client.enqueue_many(batch)

        assert [await client.jobs(), await client.stats(), await client.kv.scan()] == before
        assert (await client.enqueue("email", b"free", unique=Unique("other", on_conflict="raise"))).created


@pytest.mark.slow
async def test_a_store_that_nobody_holds_is_freed_with_its_jobs() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock, rng=SeededRng())
    await store.enqueue([a_job("1"), a_job("2")])
    await store.claim(ClaimRequest(["email"], 1, timedelta(seconds=30)))
    freed: list[int] = []
    weakref.finalize(clock, freed.append, 1)

    del store, clock
    gc.collect()

    assert freed == [1]


def a_job(job_id: str) -> PreparedJob:
    return PreparedJob(JobId(job_id), "email", None, b"", "raw", NO_HEADERS, None, 1, 1, None, None, None, {})
