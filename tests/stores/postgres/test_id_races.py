"""An id that two transactions bring at the same moment for different jobs."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.stores.postgres.racing import connection_to, opened
from tests.stores.postgres.test_unique_races import waiting_for_locks
from windlass.borrow import borrow
from windlass.core.errors import IdConflict
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.testing.conformance.given import a_job


@pytest.fixture
async def store(schema: str) -> AsyncIterator[Store]:
    async with opened(schema) as store:
        yield store


def batches(job: PreparedJob) -> dict[str, list[PreparedJob]]:
    """Return what may come with `job`, each by a way of its own to the store."""
    return {
        "alone": [job],
        "alike": [job, a_job(job.queue)],
        "different": [a_job("other"), job],
        "keyed": [job, a_job("other", unique=Unique("k"))],
    }


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("way", batches(a_job()))
async def test_an_enqueue_waits_for_the_transaction_that_brings_its_id(
    schema: str, store: Store, way: str, end: str
) -> None:
    job = a_job("mine")
    batch = batches(job)[way]
    async with connection_to(schema) as first, connection_to(schema) as watcher:
        await first.execute("begin")
        await store.join(borrow(first)).enqueue([job._replace(queue="theirs")])
        waiting = asyncio.gather(store.enqueue(batch), return_exceptions=True)
        await waiting_for_locks(watcher)
        await first.execute(end)
        [answer] = await waiting

    counts = {row.queue: row.totals.enqueued for row in await store.stats()}
    if end == "commit":
        assert isinstance(answer, IdConflict)
        assert counts == {"theirs": 1}
    else:
        assert answer == [Enqueued(each.id, created=True) for each in batch]
        assert "theirs" not in counts


async def test_one_that_waits_for_an_id_and_is_refused_fails_no_other_caller(schema: str, store: Store) -> None:
    job, good = a_job("mine"), [a_job("mine") for _ in range(20)]
    async with connection_to(schema) as first, connection_to(schema) as watcher:
        await first.execute("begin")
        await store.join(borrow(first)).enqueue([job._replace(queue="theirs")])
        waiting = asyncio.gather(*(store.enqueue([each]) for each in [job, *good]), return_exceptions=True)
        await waiting_for_locks(watcher)
        await first.execute("commit")
        answers: list[Any] = await waiting

    assert isinstance(answers[0], IdConflict)
    assert answers[1:] == [[Enqueued(each.id, created=True)] for each in good]


@pytest.mark.parametrize("way", batches(a_job()))
async def test_of_two_callers_transactions_the_second_is_refused_whole(schema: str, store: Store, way: str) -> None:
    job = a_job("mine")
    batch = batches(job)[way]
    async with connection_to(schema) as first, connection_to(schema) as second, connection_to(schema) as watcher:
        await first.execute("begin")
        await second.execute("begin")
        await store.join(borrow(first)).enqueue([job._replace(queue="theirs")])
        waiting = asyncio.gather(store.join(borrow(second)).enqueue(batch), return_exceptions=True)
        await waiting_for_locks(watcher)
        await first.execute("commit")
        [answer] = await waiting
        # what was refused in the middle can only be rolled back, and a commit does that too
        await second.execute("commit")

    assert isinstance(answer, IdConflict)
    assert ("can only be rolled back" in str(answer)) is (way in {"alike", "different"})
    assert {row.queue: row.totals.enqueued for row in await store.stats()} == {"theirs": 1}


async def test_of_two_callers_transactions_with_one_job_the_second_finds_it(schema: str, store: Store) -> None:
    job, beside = a_job("mine"), a_job("other")
    async with connection_to(schema) as first, connection_to(schema) as second, connection_to(schema) as watcher:
        await first.execute("begin")
        await second.execute("begin")
        await store.join(borrow(first)).enqueue([job])
        waiting = asyncio.ensure_future(store.join(borrow(second)).enqueue([job, beside]))
        await waiting_for_locks(watcher)
        await first.execute("commit")
        answer = await waiting
        await second.execute("commit")

    assert answer == [Enqueued(job.id, created=False), Enqueued(beside.id, created=True)]
    assert {row.queue: row.totals.enqueued for row in await store.stats()} == {"mine": 1, "other": 1}
