"""Pruning under an old snapshot: a page costs no more for all those that went before it."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, Final

import asyncpg
import pytest

from tests.postgres.cluster import dsn_of, schema_of
from tests.stores.postgres.held_snapshots import held_snapshot, pages_read
from tests.stores.postgres.racing import opened
from windlass.core.retention import Keep, Retention
from windlass.core.store import Store
from windlass.stores.postgres import pruner
from windlass.stores.postgres.moves import prune

PAGE: Final = 1_000
OLD: Final = Retention(Keep(None, None, timedelta(hours=1)))
FINISHED: Final = """
insert into windlass_job (
    id, queue, payload, codec, priority, state, max_attempts, created_at, run_at, finished_at
)
select
    gen_random_uuid(), 'q', '', 'raw', 0, 'cancelled', 3, now(), now(),
    now() - interval '2 days' + n * interval '1 s' + $2::interval
from generate_series(1, $1::integer) as n
"""
COUNTED: Final = "insert into windlass_delta (minute, queue, kind, cancelled) values (now(), 'q', '', $1::integer)"
RECEIPTS: Final = """
insert into windlass_receipt (request_id, at)
select gen_random_uuid()::text, now() - interval '2 days' + n * interval '1 s' from generate_series(1, $1::integer) as n
"""
HOLDS: Final = """
insert into windlass_hold (name, job_id, expires_at, digest)
select gen_random_uuid()::text, gen_random_uuid(), now() - interval '2 days' + n * interval '1 s', ''
from generate_series(1, $1::integer) as n
"""
FIRST: Final = """
select
    (select min(finished_at) from windlass_job),
    (select min(seq) from windlass_job),
    (select min(at) from windlass_receipt),
    (select min(expires_at) from windlass_hold)
"""


@pytest.fixture
async def store(schema: str) -> AsyncIterator[Store]:
    async with opened(schema) as store:
        yield store


@pytest.fixture
async def outside(schema: str, store: Store) -> AsyncIterator["asyncpg.Connection[Any]"]:  # noqa: ARG001 - it is made there
    settings = {"search_path": schema_of(schema), "enable_seqscan": "off", "enable_bitmapscan": "off"}
    connection = await asyncpg.connect(dsn_of(schema), server_settings=settings)
    yield connection
    await connection.close()


async def finished(outside: "asyncpg.Connection[Any]", count: int, *, later: timedelta = timedelta(0)) -> None:
    """Leave cancelled jobs, one a second older than the next, and all of them old."""
    await outside.execute(FINISHED, count, later)
    await outside.execute(COUNTED, count)


@pytest.mark.slow
async def test_a_page_reads_no_more_for_those_that_went_before_it(
    schema: str, store: Store, outside: "asyncpg.Connection[Any]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "AT_ONCE", 4 * PAGE)
    monkeypatch.setattr(pruner, "MOST_PAGES", 1)
    async with held_snapshot(schema):
        await finished(outside, 5 * PAGE)
        await outside.execute(RECEIPTS, 5 * PAGE)
        await outside.execute(HOLDS, 5 * PAGE)
        for _ in range(4):
            assert await store.prune(OLD, limit=PAGE) == PAGE
            # small ones go with the first page
            monkeypatch.setattr(pruner, "MOST_PAGES", 0)
        [(finished_at, seq, at, expires_at)] = await outside.fetch(FIRST)

        async def looks(*, remembered: bool) -> list[int]:
            since = (finished_at, seq - 1, at, expires_at) if remembered else (None, None, None, None)
            records = {
                "now": None,
                "queues": ["q"],
                "states": ["cancelled"],
                "ages": [timedelta(hours=1)],
                "most": [10],
                "limit": 10,
                "since": [since[0]],
                "since_seqs": [since[1]],
            }
            small = {"now": None, "age": timedelta(0), "limit": 10}
            return [
                await pages_read(outside, "prunable", records, "windlass_finished"),
                await pages_read(outside, "forget_old_receipts", {**small, "since": since[2]}, "windlass_receipt_age"),
                await pages_read(outside, "drop_expired_holds", {**small, "since": since[3]}, "windlass_hold_expiry"),
            ]

        with_places, from_the_beginning = await looks(remembered=True), await looks(remembered=False)

    # 4,000 rows that are gone stand at the head of each
    assert all(pages * 2 < all_pages for pages, all_pages in zip(with_places, from_the_beginning, strict=True))


async def test_the_next_page_begins_where_the_last_one_ended(store: Store, outside: "asyncpg.Connection[Any]") -> None:
    await finished(outside, 20)
    assert await store.prune(OLD, limit=10) == 10
    await finished(outside, 1, later=-timedelta(days=1))

    assert await store.prune(OLD, limit=100) == 10
    assert await store.prune(OLD, limit=100) == 0


async def test_a_record_that_was_committed_late_goes_when_all_is_looked_at_again(
    store: Store, outside: "asyncpg.Connection[Any]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruner, "ALL_EVERY", 0.0)
    await finished(outside, 20)
    assert await store.prune(OLD, limit=10) == 10

    await finished(outside, 1, later=-timedelta(days=1))

    assert await store.prune(OLD, limit=100) == 11
