"""A store on a bucket whose lists are old, or that does what it is asked for and never says so."""

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import pytest

import windlass
from proofs.slatedb.faulty_s3 import FaultyS3
from proofs.slatedb.s3_faults import NONE, Faults
from tests.slatedb import s3
from windlass import Client, NewJob, OutcomeUnknown, StoreUnavailable
from windlass.stores.slatedb import objects

OPENINGS = 3
PATIENCE = 60.0
STALE = Faults(share=1.0, kinds=("stale list",), only=("ListObjectsV2",))
"""All that is listed is what was listed last before."""


@pytest.fixture
def faulty() -> Iterator[FaultyS3]:
    with FaultyS3(s3.running().endpoint, NONE) as faulty:
        yield faulty


def url(faulty: FaultyS3, prefix: str, seconds: float) -> str:
    return f"slatedb+s3://{s3.BUCKET}/{prefix}?endpoint={faulty.endpoint}&timeout={seconds:g}"


async def counts_are_right(client: Client) -> bool:
    return all(finding.level == "ok" for finding in await client.store.check())


async def test_lists_that_are_old_hide_nothing_from_whoever_opens_the_store(faulty: FaultyS3) -> None:
    where = url(faulty, "stale-lists", 10)
    for _ in range(2):
        async with windlass.connect(where) as client:
            await client.enqueue_many([NewJob("work") for _ in range(5)])
    faulty.change(STALE)

    for number in range(OPENINGS):
        async with windlass.connect(where) as client:
            assert (await client.stats()).pending == 10 + number
            await client.enqueue("work", b"")

    assert faulty.faulty >= OPENINGS
    faulty.change(NONE)
    async with windlass.connect(where) as client:
        assert (await client.stats()).pending == 10 + OPENINGS
        assert await counts_are_right(client)


async def test_a_list_from_before_the_store_was_made_is_no_damage_and_makes_no_second_one(faulty: FaultyS3) -> None:
    where = url(faulty, "list-of-nothing", 10)
    faulty.change(STALE)
    async with windlass.connect(where) as client:
        await client.enqueue("work", b"")

    with pytest.raises(StoreUnavailable, match="was made meanwhile") as refused:
        async with windlass.connect(where):
            pass

    assert (type(refused.value), refused.value.retryable) == (StoreUnavailable, True)
    faulty.change(NONE)
    async with windlass.connect(where) as client:
        assert (await client.stats()).pending == 1
        assert await counts_are_right(client)


async def test_a_write_that_is_done_and_never_answered_is_repeated_and_done_once(
    faulty: FaultyS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "LEAST_REQUEST", 0.5)
    async with windlass.connect(url(faulty, "held-writes", 0.5)) as client:
        [job] = await client.enqueue_many([NewJob("work")])
        claim = await client.claim("work")
        assert claim is not None

        faulty.change(Faults(share=1.0, kinds=("held",), only=("PutObject",)))
        with pytest.raises(OutcomeUnknown) as unknown:
            await client.ack(claim)
        faulty.change(NONE)
        async with asyncio.timeout(PATIENCE):
            await until_settled(client, claim)

        assert unknown.value.job_id == job.id
        [stats] = await client.store.stats("work")
        assert (stats.succeeded, stats.totals.succeeded, stats.totals.enqueued) == (1, 1, 1)
        assert await counts_are_right(client)


@pytest.mark.on_request
async def test_what_takes_longer_than_a_call_may_gets_through_and_all_goes_on_behind_it(faulty: FaultyS3) -> None:
    async with windlass.connect(url(faulty, "slow-line", 1)) as client:
        await client.enqueue("work", b"first")
        # sixteen seconds for what follows
        faulty.change(Faults(share=0.0, bytes_per_second=100_000))
        large = [NewJob("work", bytes(800_000)) for _ in range(2)]

        with pytest.raises(OutcomeUnknown):
            await client.enqueue_many(large)
        async with asyncio.timeout(PATIENCE):
            await until_enqueued(client, b"behind it")

        assert (await client.stats()).pending == 4


async def until_enqueued(client: Client, payload: bytes) -> None:
    chosen = uuid4()
    while True:
        try:
            await client.enqueue("work", payload, id=chosen)
        except (OutcomeUnknown, StoreUnavailable):
            continue
        return


async def until_settled(client: Client, claim: windlass.Claim) -> None:
    while True:
        try:
            return await client.ack(claim)
        except OutcomeUnknown:
            continue
