"""Claims begin at a mark, and no job is ever before it (docs/decisions/0013-marks.md)."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from tests.postgres.cluster import schema_of
from windlass import connect
from windlass.client.client import Client
from windlass.connect import open_store
from windlass.core.requests import ClaimRequest, Settlement
from windlass.core.store import Store
from windlass.core.verdict import ToReleased, ToSucceeded
from windlass.stores.postgres import survey
from windlass.stores.postgres.moves import marks
from windlass.stores.postgres.statements import sql
from windlass.stores.postgres.work import Statement, Work
from windlass.testing.conformance.given import a_job

MINUTE = timedelta(minutes=1)
MANY = 300


@pytest.fixture(autouse=True)
def soon_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "RAISE_AFTER", MANY)
    monkeypatch.setattr(survey, "WAIT_FOR_WRITERS", 0.2)


@pytest.fixture
async def store(schema: str) -> AsyncIterator[Store]:
    store = open_store(schema)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def outside(schema: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    connection = await asyncpg.connect(
        schema.partition("?")[0], server_settings={"search_path": schema_of(schema), "enable_seqscan": "off"}
    )
    yield connection
    await connection.close()


async def work(store: Store, count: int) -> None:
    """Enqueue and settle `count` jobs."""
    await store.enqueue([a_job("q") for _ in range(count)])
    done = 0
    while done < count:
        claims = await store.claim(ClaimRequest(["q"], 100, MINUTE))
        assert claims
        await store.settle([Settlement(claim.job.id, claim.token, ToSucceeded(), keep=False) for claim in claims])
        done += len(claims)


async def raised(outside: "asyncpg.Connection[Any]") -> dict[int, Any]:
    """Return the marks by priority once there are some."""
    async with asyncio.timeout(10):
        while True:
            row = await outside.fetchrow("select priorities, marks from windlass_queue where queue = 'q'")
            if row is not None and row["marks"]:
                return dict(zip(row["priorities"], row["marks"], strict=True))
            await asyncio.sleep(0.01)


async def claimed_ids(store: Store, limit: int = 10) -> list[str]:
    return [claim.job.id for claim in await store.claim(ClaimRequest(["q"], limit, MINUTE))]


async def test_a_mark_is_raised_when_many_jobs_have_left(store: Store, outside: "asyncpg.Connection[Any]") -> None:
    await work(store, MANY)

    found = await raised(outside)

    assert set(found) == {1000}
    assert found[1000] <= await outside.fetchval("select clock_timestamp()")


async def test_jobs_of_every_priority_are_still_claimed_in_order(
    store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    await work(store, MANY)
    await raised(outside)

    jobs = [a_job("q")._replace(priority=priority) for priority in (2000, 1000, 5, 1001, 999)]
    await store.enqueue(jobs)

    assert await claimed_ids(store) == [jobs[place].id for place in (2, 4, 1, 3, 0)]


async def test_a_job_of_a_transaction_that_stayed_open_is_claimed_when_it_commits(
    schema: str, store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    async with connect(schema) as client, asyncio.timeout(20):
        late = await enqueue_late(client, store, outside)

    assert await claimed_ids(store) == [late]


async def enqueue_late(client: Client, store: Store, outside: "asyncpg.Connection[Any]") -> str:
    """Enqueue in a transaction that is open while many later jobs come and go, and commit it."""
    async with outside.transaction():
        late = await client.enqueue("q", b"", connection=outside)
        await work(store, MANY * 2)
        await asyncio.sleep(survey.WAIT_FOR_WRITERS * 2)
    return late.id


async def test_a_job_that_is_released_is_claimed_again_although_it_stands_before_the_mark(
    store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    await store.enqueue([first := a_job("q")])
    [claim] = await store.claim(ClaimRequest(["q"], 1, MINUTE))
    await work(store, MANY)
    mark = (await raised(outside))[1000]
    assert claim.job.run_at < mark

    await store.settle([Settlement(claim.job.id, claim.token, ToReleased())])

    assert await claimed_ids(store) == [first.id]


async def test_a_job_that_comes_due_is_claimed_although_it_stands_before_the_mark(
    store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    later = a_job("q", delay=timedelta(milliseconds=300))
    await store.enqueue([later])
    await work(store, MANY)
    await asyncio.sleep(0.35)
    await outside.execute("update windlass_queue set priorities = '{1000}', marks = array[clock_timestamp()]")
    await raised(outside)

    assert await claimed_ids(store) == [later.id]


async def test_a_mark_that_lies_in_the_future_is_dropped(store: Store, outside: "asyncpg.Connection[Any]") -> None:
    await outside.execute(
        "insert into windlass_queue (queue, priorities, marks) "
        "values ('q', '{1000}', array[clock_timestamp() + interval '1 hour'])"
    )
    await store.enqueue([job := a_job("q")])
    assert await claimed_ids(store) == []

    assert await drive(outside, marks.check("q"))

    assert await claimed_ids(store) == [job.id]


async def test_what_a_claim_reads_does_not_grow_under_an_old_snapshot(
    schema: str, store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    holder = await asyncpg.connect(schema.partition("?")[0])
    try:
        async with holder.transaction(isolation="repeatable_read"):
            await holder.fetchval("select count(*) from pg_class")
            for _ in range(8):
                await work(store, MANY * 2)
                await raised(outside)
            await asyncio.sleep(0.1)
            await work(store, MANY)
            await store.enqueue([a_job("q") for _ in range(10)])
            pages = await pages_read(outside)
            await outside.execute("update windlass_queue set priorities = '{}', marks = '{}'")
            unmarked = await pages_read(outside)
    finally:
        await holder.close()

    # more than 5,000 rows that are gone stand at the head: without a mark each of them is looked at
    assert pages * 2 < unmarked


async def pages_read(outside: "asyncpg.Connection[Any]") -> int:
    """Return how many pages the look at the head of the queue touches."""
    parameters = [None, "r", ["q"], 1, MINUTE, "w", None, False, False, False]
    look = outside.transaction()
    await look.start()
    plan = await outside.fetchval("explain (analyze, buffers, format json) " + sql("claim"), *parameters)
    await look.rollback()
    heads = [node for node in nodes(plan) if node.get("Index Name") == "windlass_ready"]
    assert heads, "the claim does not look at windlass_ready"
    return sum(node["Shared Hit Blocks"] + node["Shared Read Blocks"] for node in heads)


def nodes(plan: str) -> list[dict[str, Any]]:
    """Return every node of a plan."""

    def walk(node: dict[str, Any]) -> list[dict[str, Any]]:
        return [node, *(below for child in node.get("Plans", []) for below in walk(child))]

    return walk(json.loads(plan)[0]["Plan"])


async def drive(connection: "asyncpg.Connection[Any]", move: Work[bool]) -> bool:
    """Run a move on a connection, each statement by itself."""
    try:
        wanted = next(move)
        while True:
            assert isinstance(wanted, Statement)
            wanted = move.send(await connection.fetch(sql(wanted.name), *wanted.parameters))
    except StopIteration as end:
        return bool(end.value)
