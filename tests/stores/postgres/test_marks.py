"""Claims begin at a mark, and no job is ever before it (docs/decisions/0013-marks.md)."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from tests.postgres.cluster import schema_of
from tests.stores.postgres.held_snapshots import held_snapshot, pages_read
from windlass import connect
from windlass.client.client import Client
from windlass.connect import open_store
from windlass.core.requests import ClaimRequest, Settlement
from windlass.core.store import Store
from windlass.core.verdict import ToReleased, ToSucceeded
from windlass.stores.postgres import survey
from windlass.stores.postgres.moves import marks
from windlass.stores.postgres.statements import statement
from windlass.stores.postgres.work import Parameters, Statement, Work
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
    await store.enqueue([a_job("q", kind="a") for _ in range(count)])
    done = 0
    while done < count:
        claims = (await store.claim(ClaimRequest(["q"], 100, MINUTE))).jobs
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
    return [claim.job.id for claim in (await store.claim(ClaimRequest(["q"], limit, MINUTE))).jobs]


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
    [claim] = (await store.claim(ClaimRequest(["q"], 1, MINUTE))).jobs
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


@pytest.mark.parametrize(
    "look",
    [
        ("claim", "windlass_ready", {"kinds": None, "raw": False}),
        ("claim", "windlass_ready", {"kinds": ["a"], "raw": False}),
        ("claim_chosen", "windlass_ready", {"kinds": None, "raw": False, "by_priority": True}),
        ("claim_chosen", "windlass_ready_kind", {"kinds": ["a"], "raw": False, "by_priority": False}),
        ("claim_chosen", "windlass_ready", {"kinds": ["b"], "raw": True, "by_priority": False}),
    ],
    ids=["in order", "of kinds", "by priority", "with strange kinds ahead", "raw"],
)
async def test_what_a_claim_reads_does_not_grow_under_an_old_snapshot(
    schema: str, store: Store, outside: "asyncpg.Connection[Any]", look: tuple[str, str, Parameters]
) -> None:
    name, index, choice = look
    parameters = {
        "now": None,
        "request_id": "r",
        "queues": ["q"],
        "limit": 1,
        "lease": MINUTE,
        "worker": "w",
        "repeated": False,
        "promoted": False,
        **choice,
    }
    async with held_snapshot(schema):
        for _ in range(8):
            await work(store, MANY * 2)
        since = await outside.fetchval("select clock_timestamp()")
        # marks are raised behind the work, on a busy machine a while after it
        while (await raised(outside))[1000] < since:
            await work(store, MANY)
        await store.enqueue([a_job("q", kind="a"), a_job("q")])
        pages = await pages_read(outside, name, parameters, index)
        await outside.execute("update windlass_queue set priorities = '{}', marks = '{}'")
        unmarked = await pages_read(outside, name, parameters, index)

    # more than 5,000 rows that are gone stand at the head: without a mark each of them is looked at
    assert pages * 2 < unmarked


async def test_the_most_urgent_of_all_queues_are_claimed_by_their_marks(
    store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    await work(store, MANY)
    await raised(outside)
    jobs = [
        a_job(queue)._replace(priority=priority)
        for queue, priority in [("q", 2000), ("r", 1500), ("q", 1000), ("r", 1000), ("q", 5), ("q", 1001), ("r", 999)]
    ]
    await store.enqueue(jobs)

    claims = (await store.claim(ClaimRequest(["r", "q"], 10, MINUTE, by_priority=True))).jobs

    assert [claim.job.priority for claim in claims] == sorted(job.priority for job in jobs)


async def test_a_wanted_kind_is_claimed_in_order_behind_strange_ones_and_marks(
    store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    await work(store, MANY)
    await raised(outside)
    jobs = [a_job("q", kind="a")._replace(priority=priority) for priority in (2000, 1000, 5, 1001, 999)]
    await store.enqueue([a_job("q", kind="strange")._replace(priority=1), *jobs])

    claims = (await store.claim(ClaimRequest(["q"], 3, MINUTE, kinds=["a"]))).jobs

    assert [claim.job.id for claim in claims] == [jobs[place].id for place in (2, 4, 1)]


async def drive(connection: "asyncpg.Connection[Any]", move: Work[bool]) -> bool:
    """Run a move on a connection, each statement by itself."""
    try:
        wanted = next(move)
        while True:
            assert isinstance(wanted, Statement)
            text, values = statement(wanted.name)
            wanted = move.send(await connection.fetch(text, *values(wanted.parameters)))
    except StopIteration as end:
        return bool(end.value)
