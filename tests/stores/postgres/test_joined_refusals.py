"""What `connection=` refuses, and how the caller's transaction is afterwards."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

import windlass
from proofs.children import eventually
from tests.postgres.cluster import cluster, dsn_of
from tests.stores.postgres.callers import BARE, Caller, a_store_by_search_path, calling, claimed
from tests.stores.postgres.racing import connection_to
from tests.stores.postgres.ways import psycopg2_connection, sqlalchemy_url
from windlass import (
    ClaimLost,
    Client,
    InvalidValue,
    NewJob,
    StoreUnavailable,
    Unique,
    UniqueConflict,
)
from windlass.borrow import borrow

KEY = Unique("key", on_conflict="raise")


@pytest.fixture(params=BARE)
async def caller(request: pytest.FixtureRequest, client: Client, schema: str) -> AsyncIterator[Caller]:  # noqa: ARG001
    async with calling(request.param, schema) as caller:
        yield caller


async def test_a_stale_claim_is_refused_and_the_transaction_stays_usable(
    client: Client, caller: Caller, mine: str
) -> None:
    await client.enqueue("email")
    claim = await client.claim("email", lease=0)
    assert claim is not None
    await client.rescue()
    await caller.run(f"insert into {mine} values ('first')")

    with pytest.raises(ClaimLost):
        await client.ack(claim, connection=caller.connection)
    await caller.run(f"insert into {mine} values ('second')")
    await caller.commit()

    await caller.begin()
    assert await caller.run(f"select name from {mine} order by name") == [("first",), ("second",)]
    assert (await client.stats("email")).pending == 1


async def test_a_conflict_leaves_the_transaction_usable(client: Client, caller: Caller, mine: str) -> None:
    await client.enqueue("email", b"holds", unique=KEY)
    await caller.run(f"insert into {mine} values ('first')")

    with pytest.raises(UniqueConflict):
        await client.enqueue_many(
            [NewJob("email", b"a", unique="another"), NewJob("email", b"b", unique=KEY)], connection=caller.connection
        )
    await caller.run(f"insert into {mine} values ('second')")
    await client.enqueue("email", b"beside", connection=caller.connection)
    await caller.commit()

    await caller.begin()
    assert await caller.run(f"select name from {mine} order by name") == [("first",), ("second",)]
    assert [job.payload for job in await client.jobs()] == [b"holds", b"beside"]
    assert (await client.stats("email")).pending == 2
    assert (await client.enqueue("email", unique="another")).created


async def test_waiting_for_a_key_of_another_transaction_ends(schema: str, mine: str) -> None:
    async with (
        windlass.connect(f"{schema}&timeout=1") as client,
        calling("asyncpg", schema) as holder,
        calling("psycopg async", schema) as second,
    ):
        await client.enqueue("email", unique="key", connection=holder.connection)
        await second.run(f"insert into {mine} values ('kept')")

        with pytest.raises(StoreUnavailable, match="gave up waiting") as caught:
            await client.enqueue("email", unique="key", connection=second.connection)
        await client.enqueue("email", b"beside", connection=second.connection)
        await second.commit()
        await holder.rollback()

        assert caught.value.retryable
        assert [job.payload for job in await client.jobs()] == [b"beside"]
        assert await second.run(f"select name from {mine}") == [("kept",)]


async def test_a_call_that_is_cancelled_leaves_the_transaction_usable(client: Client, schema: str) -> None:
    async with calling("asyncpg", schema) as holder, calling("asyncpg", schema) as second:
        await client.enqueue("email", unique="key", connection=holder.connection)
        waiting = asyncio.create_task(client.enqueue("email", unique="key", connection=second.connection))
        pid = second.connection.get_server_pid()
        assert await asyncio.to_thread(eventually, lambda: waits_for_a_lock(pid))

        waiting.cancel()
        await asyncio.wait({waiting})
        await client.enqueue("email", b"beside", connection=second.connection)
        await second.commit()

        assert waiting.cancelled()
        assert [job.payload for job in await client.jobs()] == [b"beside"]


def waits_for_a_lock(pid: int) -> bool:
    waits = "select 1 from pg_stat_activity where pid = %s and wait_event_type = 'Lock'"
    return cluster().run(waits, [pid]) != []


async def test_an_earlier_error_of_the_transaction_is_told(client: Client, caller: Caller) -> None:
    with pytest.raises(Exception, match="division by zero"):
        await caller.run("select 1/0")

    with pytest.raises(InvalidValue, match="an earlier statement of your transaction has failed"):
        await client.enqueue("email", connection=caller.connection)


async def test_a_transaction_that_only_reads_is_refused_and_must_be_rolled_back(client: Client, caller: Caller) -> None:
    await caller.run("set transaction read only")

    with pytest.raises(StoreUnavailable, match="can only be rolled back now"):
        await client.enqueue("email", connection=caller.connection)


async def test_a_transaction_that_sees_one_moment_is_told_to_begin_again_when_it_was_overtaken(
    client: Client, caller: Caller
) -> None:
    claim = await claimed(client)
    await caller.run("set transaction isolation level repeatable read")
    await caller.run("select 1")
    await client.ack(claim)

    with pytest.raises(StoreUnavailable, match=r"another transaction was in the way.*begin it again") as caught:
        await client.ack(windlass.Claim(claim.job, claim.token), connection=caller.connection)

    assert caught.value.retryable


async def test_a_connection_that_was_closed_is_refused(client: Client, schema: str) -> None:
    single = await asyncpg.connect(dsn_of(schema))
    await single.close()
    with psycopg.connect(dsn_of(schema)) as blocking:
        pass

    for connection in (single, blocking):
        with pytest.raises((InvalidValue, StoreUnavailable), match="closed"):
            await client.enqueue("email", connection=connection)


async def test_without_an_open_transaction_a_connection_is_refused(client: Client, schema: str) -> None:
    dsn = dsn_of(schema)
    single = await asyncpg.connect(dsn)
    slow = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
    engine = create_engine(sqlalchemy_url(schema, "psycopg"), isolation_level="AUTOCOMMIT")
    loops = create_async_engine(sqlalchemy_url(schema, "asyncpg"), isolation_level="AUTOCOMMIT")
    with psycopg.connect(dsn, autocommit=True) as blocking, psycopg2_connection(dsn) as older:
        older.autocommit = True
        with engine.connect() as core:
            async with AsyncSession(loops) as session:
                for connection in (single, slow, blocking, older, core, session):
                    with pytest.raises(InvalidValue, match="no transaction is open on connection="):
                        await client.enqueue("email", connection=connection)
    await single.close()
    await slow.close()
    engine.dispose()
    await loops.dispose()

    assert await client.jobs() == []


async def test_a_connection_to_another_store_is_refused_by_the_name_of_its_database(
    client: Client, caller: Caller, schema: str
) -> None:
    """Found by its own search path: the store here has no schema in its URL."""
    async with a_store_by_search_path(client, schema) as (by_path, path):
        await caller.run(f"set search_path to {path}")
        await caller.run("update windlass_meta set value = 'another' where name = 'store'")
        claim = await claimed(client)
        for call in calls(by_path, claim, caller.connection):
            with pytest.raises(
                InvalidValue, match=rf"open on the database 'of_.*where '{path}' holds the tables of another store"
            ):
                await call()

        await caller.run("select 1")


async def test_a_connection_to_a_database_without_a_store_is_refused(client: Client, schema: str) -> None:
    async with a_store_by_search_path(client, schema) as (by_path, _):
        for kind in BARE:
            async with calling(kind, schema) as caller:
                await caller.run("set local search_path to pg_catalog")
                with pytest.raises(InvalidValue, match="no tables of Windlass on its search path"):
                    await by_path.enqueue("email", connection=caller.connection)


def calls(client: Client, claim: windlass.Claim, connection: object) -> list[Callable[[], Coroutine[Any, Any, object]]]:
    return [
        lambda: client.enqueue("email", connection=connection),
        lambda: client.enqueue("email", unique="key", connection=connection),
        lambda: client.ack(claim, connection=connection),
    ]


async def test_connections_of_an_event_loop_are_refused_by_the_blocking_client(schema: str) -> None:
    single = await asyncpg.connect(dsn_of(schema))
    slow = await psycopg.AsyncConnection.connect(dsn_of(schema))

    def enqueue(connection: object) -> None:
        with windlass.connect_sync(schema) as client:
            client.enqueue("email", connection=connection)

    for connection in (single, slow, AsyncSession()):
        with pytest.raises(InvalidValue, match="belongs to an event loop"):
            await asyncio.to_thread(enqueue, connection)
    await single.close()
    await slow.close()


async def test_connections_to_another_kind_of_database_are_refused(client: Client, schema: str, tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "jobs.db")) as file,
        pytest.raises(InvalidValue, match=r"goes through sqlite3\.Connection, and the jobs are in Postgres"),
    ):
        await client.enqueue("email", connection=file)
    async with windlass.connect(f"sqlite:///{tmp_path}/jobs.db") as on_file:
        for kind in BARE:
            async with calling(kind, schema) as caller:
                with pytest.raises(InvalidValue, match="and the jobs are in SQLite"):
                    await on_file.enqueue("email", connection=caller.connection)


@pytest.mark.parametrize("limit", ["0", "300ms"], ids=["ours", "the caller's own"])
async def test_a_locked_job_and_an_id_of_an_open_transaction_are_not_waited_for_without_end(
    schema: str, caller: Caller, limit: str
) -> None:
    async with (
        windlass.connect(f"{schema}&timeout=1") as client,
        connection_to(schema) as other,
        other.transaction(),
    ):
        claim = await claimed(client)
        await other.execute("select 1 from windlass_job where id = $1 for update", claim.job.id)
        taken = await client.enqueue("email", connection=other)
        calls: list[Callable[[], Coroutine[Any, Any, object]]] = [
            lambda: client.ack(claim, connection=caller.connection),
            lambda: client.store.join(borrow(caller.connection)).fence([(claim.job.id, claim.token)]),
            lambda: client.enqueue("email", id=taken.id, connection=caller.connection),
        ]
        for call in calls:
            await caller.run(f"set lock_timeout = '{limit}'")
            async with asyncio.timeout(20):
                with pytest.raises(StoreUnavailable) as raised:
                    await call()
            assert raised.value.retryable
            await caller.rollback()
            await caller.begin()

    await caller.run("select 1")


@pytest.mark.parametrize("unique", [None, "key"], ids=["plain", "keyed"])
async def test_a_connection_in_pipeline_mode_is_refused_and_nothing_is_sent(
    client: Client, schema: str, unique: str | None
) -> None:
    refused = pytest.raises(InvalidValue, match="is in pipeline mode")
    with psycopg.connect(dsn_of(schema)) as blocking, blocking.pipeline(), refused:
        await client.enqueue("email", unique=unique, connection=blocking)
    slow = await psycopg.AsyncConnection.connect(dsn_of(schema))
    async with slow, slow.pipeline():
        with pytest.raises(InvalidValue, match="is in pipeline mode"):
            await client.enqueue("email", unique=unique, connection=slow)

    assert await client.jobs() == []
