"""A store that was moved begins nothing new, whatever was under way when it was marked."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, Literal

import asyncpg
import pytest

from tests.stores.postgres.moves.moving import Mover
from tests.stores.postgres.racing import connection_to, opened, opened_many, settlement, wanting
from windlass.borrow import borrow
from windlass.core.commands import SetMoved
from windlass.core.errors import StoreMoved, StoreUnavailable, UniqueConflict
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.moving import Moved
from windlass.core.requests import KvWrite
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.stores.postgres.moves.departure import Beginner, set_moved, still_under_way
from windlass.stores.postgres.moves.enqueue import insert_plain, inserted_before
from windlass.stores.postgres.work import Changes, Work
from windlass.testing.conformance.given import a_job, a_schedule

Isolation = Literal["read_committed", "repeatable_read", "serializable"]

AWAY: Final = Moved("redis://other", "move-1")
LEFT: Final = """
select
    (select array_agg(id::text || state order by id) from windlass_job),
    (select array_agg(key order by key) from windlass_kv),
    (select array_agg(id order by id) from windlass_schedule),
    (select array_agg(queue order by queue) from windlass_queue where override @> '{"paused": true}'),
    (select array_agg(name order by name) from windlass_hold)
"""


@pytest.fixture
async def store(schema: str) -> AsyncIterator[Store]:
    async with opened(schema) as store:
        yield store


@pytest.fixture
async def outside(schema: str, store: Store) -> AsyncIterator["asyncpg.Connection[Any]"]:  # noqa: ARG001 - makes the schema
    async with connection_to(schema) as connection:
        yield connection


async def test_whatever_is_under_way_is_done_when_the_mark_is_set_or_not_at_all(schema: str) -> None:
    numbers, busy = itertools.count(), asyncio.Event()
    refused: list[str] = []

    async def begin(name: str, call: Callable[[str], Awaitable[object]]) -> None:
        while name not in refused:
            if (number := next(numbers)) == 300:
                busy.set()
            try:
                await call(f"{name}{number}")
            except StoreMoved:
                refused.append(name)

    async with opened_many(schema, 3) as [operator, first, second], connection_to(schema) as outside:
        calls: dict[str, Callable[[str], Awaitable[object]]] = {
            "plain": lambda _: first.enqueue([a_job("q")]),
            "rare": lambda _: second.enqueue([a_job("q")._replace(tenant="t")]),
            "keyed": lambda name: first.enqueue([a_job("q", unique=Unique(name))]),
            "claim": lambda _: second.claim(wanting(limit=2)),
            "chosen": lambda _: first.claim(wanting(limit=2, by_priority=True)),
            "kv": lambda name: second.kv_write(KvWrite(name.encode(), b"v")),
            "schedule": lambda name: first.write_schedule(a_schedule(name), expected=None),
            "pause": lambda name: second.set_paused(name, paused=True),
        }
        tasks = [asyncio.ensure_future(begin(name, call)) for name, call in calls.items() for _ in range(2)]
        await busy.wait()

        await operator.set_moved(AWAY)
        left = await outside.fetchrow(LEFT)

        await asyncio.wait_for(asyncio.gather(*tasks), 30)
        for name, call in calls.items():
            with pytest.raises(StoreMoved):
                await call(f"{name}-late")
        assert await outside.fetchrow(LEFT) == left


@pytest.mark.parametrize("job", [a_job("q"), a_job("q", unique=Unique("k"))], ids=["plain", "keyed"])
async def test_a_callers_transaction_that_has_enqueued_is_waited_for(
    store: Store, outside: "asyncpg.Connection[Any]", job: PreparedJob
) -> None:
    transaction = outside.transaction()
    await transaction.start()
    await store.join(borrow(outside)).enqueue([job])

    moving = asyncio.ensure_future(store.set_moved(AWAY))
    while await store.moved() is None:  # noqa: ASYNC110 - until its first step is committed
        await asyncio.sleep(0)
    # what another call begins now is refused, and it need not wait
    with pytest.raises(StoreMoved):
        await store.enqueue([a_job("q")])
    assert not moving.done()

    await transaction.commit()
    await moving
    assert [packed.id for packed in (await store.pack("q", limit=10)).jobs] == [job.id]


async def test_who_blocks_a_move_is_told_and_the_store_stays_marked(schema: str) -> None:
    async with opened(f"{schema}&timeout=0.6") as store, connection_to(schema) as outside:
        await outside.execute("set application_name = 'the report'")
        transaction = outside.transaction()
        await transaction.start()
        await outside.execute("delete from windlass_kv where false")

        with pytest.raises(StoreUnavailable, match="still open: process") as blocked:
            await store.set_moved(AWAY)

        pid = outside.get_server_pid()
        assert f"process {pid} (user postgres, application the report, idle in transaction" in str(blocked.value)
        assert blocked.value.retryable
        with pytest.raises(StoreMoved):
            await store.enqueue([a_job("q")])
        await transaction.rollback()
        await store.set_moved(AWAY)


async def test_transactions_that_began_later_are_not_waited_for() -> None:
    first = Beginner("3/7", 4711, "app", "shop", "active", None)
    prepared = Beginner("-1/99", None, None, None, None, None)

    later = [first._replace(name="3/8"), first._replace(name="4/1")]

    assert still_under_way([first], later) == []
    assert still_under_way([first], [*later, first]) == [first]
    # a prepared one has another name after a restart
    assert still_under_way([first], [*later, prepared]) == [prepared]
    assert "pg_prepared_xacts" in str(prepared)


@pytest.mark.parametrize("job", [a_job("q"), a_job("q", unique=Unique("k"))], ids=["plain", "keyed"])
@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_a_transaction_that_does_not_see_the_move_cannot_enqueue(
    store: Store, outside: "asyncpg.Connection[Any]", job: PreparedJob, isolation: Isolation
) -> None:
    transaction = outside.transaction(isolation=isolation)
    await transaction.start()
    assert await outside.fetchval("select count(*) from windlass_job") == 0
    await store.set_moved(AWAY)

    with pytest.raises(StoreUnavailable, match="another transaction was in the way") as refused:
        await store.join(borrow(outside)).enqueue([job])

    assert refused.value.retryable
    await transaction.rollback()
    async with outside.transaction(isolation=isolation):
        with pytest.raises(StoreMoved, match="redis://other"):
            await store.join(borrow(outside)).enqueue([job])


@pytest.mark.parametrize("isolation", ["read_committed", "repeatable_read"])
async def test_a_callers_transaction_goes_on_when_an_enqueue_is_refused(
    store: Store, outside: "asyncpg.Connection[Any]", isolation: Isolation
) -> None:
    await store.set_moved(AWAY)
    jobs = [a_job("q"), a_job("q", unique=Unique("k")), a_job("q", kv={b"k": b"v"})]

    async with outside.transaction(isolation=isolation):
        await outside.execute("create temp table mine (name text)")
        for job in jobs:
            with pytest.raises(StoreMoved):
                await store.join(borrow(outside)).enqueue([job])
        await outside.execute("insert into mine values ('effect')")

    assert await outside.fetchval("select name from mine") == "effect"
    assert list(await outside.fetchrow(LEFT) or ()) == [None] * 5


async def test_a_key_that_is_held_is_no_answer_of_a_store_that_was_moved(
    store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    again = a_job("q", unique=Unique("k", on_conflict="raise"))
    await store.enqueue([a_job("q", unique=Unique("k"))])
    with pytest.raises(UniqueConflict):
        await store.enqueue([again])
    await store.set_moved(AWAY)

    with pytest.raises(StoreMoved):
        await store.enqueue([again])
    async with outside.transaction():
        with pytest.raises(StoreMoved):
            await store.join(borrow(outside)).enqueue([again])


async def test_a_claim_is_settled_in_a_callers_transaction_after_the_move(
    store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    await store.enqueue([a_job("q")])
    [claim] = (await store.claim(wanting())).jobs
    await store.set_moved(AWAY)

    async with outside.transaction():
        await store.join(borrow(outside)).settle([settlement(claim, then=[a_job("q", unique=Unique("k"))])])

    [stats] = await store.stats("q")
    assert (stats.succeeded, stats.pending) == (1, 1)


async def test_an_enqueue_whose_reply_was_lost_before_the_move_has_its_answer(schema: str, store: Store) -> None:
    mover = Mover(schema)
    job, other = a_job("q"), a_job("q")
    await mover.do(lambda changes: insert_plain(changes, [job], "request-1"))
    await mover.do(set_moved, SetMoved(AWAY))

    def repeated(jobs: list[PreparedJob], request_id: str) -> Callable[[Changes], Work[list[Enqueued]]]:
        def again(changes: Changes) -> Work[list[Enqueued]]:
            changes.repeated = True
            return insert_plain(changes, jobs, request_id)

        return again

    done = await mover.run_once(repeated([job], "request-1"), lambda: inserted_before([job], "request-1"))
    with pytest.raises(StoreMoved):
        await mover.run_once(repeated([other], "request-2"), lambda: inserted_before([other], "request-2"))

    assert done == [Enqueued(job.id, created=True)]
    [stats] = await store.stats("q")
    assert stats.totals.enqueued == 1
    await mover.connections.close()


async def test_many_callers_of_one_statement_are_each_refused(store: Store) -> None:
    await store.set_moved(AWAY)

    ends = await asyncio.gather(*(store.enqueue([a_job("q")]) for _ in range(20)), return_exceptions=True)

    assert [type(end) for end in ends] == [StoreMoved] * 20


async def test_a_pause_does_not_wait_for_a_transaction_that_has_enqueued(
    store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    async with outside.transaction():
        await store.join(borrow(outside)).enqueue([a_job("q")])

        await asyncio.wait_for(store.set_paused("q", paused=True), timedelta(seconds=5).total_seconds())

    assert await store.paused(["q"]) == ["q"]
