"""What `connection=` writes, what it leaves as it was, and what it costs."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import asyncpg
import psycopg
import psycopg2.extras
import pytest
from psycopg.rows import dict_row
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

import windlass
from tests.postgres.cluster import dsn_of
from tests.stores.postgres.callers import BARE, Caller, a_store_by_search_path, calling, claimed
from tests.stores.postgres.ways import psycopg2_connection, sqlalchemy_url
from windlass import (
    Client,
    Completed,
    NewJob,
    State,
    Unique,
    UniqueConflict,
)
from windlass.borrow import borrow
from windlass.borrow.loan import Loan
from windlass.core.requests import Settlement
from windlass.core.verdict import ToSucceeded

KEY = Unique("key", on_conflict="raise")


@pytest.fixture(params=BARE)
async def caller(request: pytest.FixtureRequest, client: Client, schema: str) -> AsyncIterator[Caller]:  # noqa: ARG001
    async with calling(request.param, schema) as caller:
        yield caller


async def test_a_claim_is_settled_with_the_transaction(client: Client, caller: Caller, mine: str) -> None:
    claim = await claimed(client)
    await client.ack(claim, connection=caller.connection)
    await caller.rollback()
    after_rollback = await client.get(claim.job.id)

    await caller.begin()
    await caller.run(f"insert into {mine} values ('effect')")
    await client.ack(claim, "sent", then=[NewJob("next")], kv={"key": b"value"}, connection=caller.connection)
    await caller.commit()

    after_commit = await client.get(claim.job.id)
    assert after_rollback is not None
    assert after_rollback.state is State.RUNNING
    assert after_commit is not None
    assert (after_commit.state, after_commit.result) == (State.SUCCEEDED, b'"sent"')
    assert (await client.stats("next")).pending == 1
    assert await client.kv.get("key") == b"value"


@pytest.mark.parametrize("verb", ["nack", "dead_letter"])
async def test_a_failure_is_settled_with_the_transaction(client: Client, caller: Caller, verb: str) -> None:
    claim = await claimed(client, max_attempts=1)

    await getattr(client, verb)(claim, "broken", connection=caller.connection)
    await caller.commit()

    job = await client.get(claim.job.id)
    assert job is not None
    assert (job.state, job.last_error) == (State.DEAD, "broken")


async def test_a_job_that_is_to_be_tried_again_waits_after_the_commit(client: Client, caller: Caller) -> None:
    claim = await claimed(client)

    await client.nack(claim, "broken", delay=0, connection=caller.connection)
    before = (await client.stats("email")).running
    await caller.commit()

    assert before == 1
    again = await client.claim("email")
    assert again is not None
    assert (again.job.id, again.job.attempt, again.job.last_error) == (claim.job.id, 2, "broken")


async def test_whoever_waits_for_a_job_hears_of_its_end_in_a_transaction(client: Client, caller: Caller) -> None:
    claim = await claimed(client)
    waiting = asyncio.create_task(client.wait(claim.job.id, timeout=30))
    await asyncio.sleep(0)

    await client.ack(claim, connection=caller.connection)
    await caller.commit()

    assert isinstance(await asyncio.wait_for(waiting, 5), Completed)


async def test_keys_ids_and_all_that_a_job_can_have_are_written(client: Client, caller: Caller) -> None:
    first = await client.enqueue(
        "email", b"\x00\xff", kind="mail", priority=3, delay=60, headers={"a": "é"}, tenant="t", unique="key",
        kv={"key": b"\x00"}, connection=caller.connection,
    )  # fmt: skip
    again = await client.enqueue("email", id=first.id, kind="mail", tenant="t", connection=caller.connection)
    kept = await client.enqueue("email", tenant="t", unique="key", connection=caller.connection)
    replaced = await client.enqueue(
        "email", b"newer", tenant="t", unique=Unique("key", on_conflict="replace"), connection=caller.connection
    )
    await caller.commit()

    assert [each.created for each in (first, again, kept, replaced)] == [True, False, False, False]
    job = await client.get(first.id)
    assert job is not None
    assert (job.payload, job.kind, job.priority, job.headers, job.tenant, job.unique_key, job.state) == (
        b"newer", "mail", 3, {"a": "é"}, "t", "key", State.PENDING,
    )  # fmt: skip
    assert await client.kv.get("key") == b"\x00"
    assert (await client.stats("email")).pending == 1


async def test_many_jobs_are_enqueued_in_their_order(client: Client, caller: Caller) -> None:
    jobs = [NewJob("email", b"%d" % number, delay=None if number % 2 else 60) for number in range(300)]

    done = await client.enqueue_many(jobs, connection=caller.connection)
    await caller.commit()

    listed = await client.jobs(limit=500)
    assert [job.payload for job in listed] == [job.payload for job in jobs]
    assert [each.id for each in done] == [job.id for job in listed]
    stats = await client.stats("email")
    assert (stats.pending, stats.scheduled) == (150, 150)


async def test_the_callers_settings_are_as_they_were(client: Client, caller: Caller) -> None:
    await client.enqueue("email", unique=KEY)
    settings = "select current_setting('search_path'), current_setting('lock_timeout')"
    before = await caller.run(settings)

    await client.enqueue("email", connection=caller.connection)
    plain = await caller.run(settings)
    await client.enqueue("email", unique="other", connection=caller.connection)
    keyed = await caller.run(settings)
    with pytest.raises(UniqueConflict):
        await client.enqueue("email", unique=KEY, connection=caller.connection)
    refused = await caller.run(settings)
    await client.ack(await claimed(client), connection=caller.connection)
    settled = await caller.run(settings)

    assert [plain, keyed, refused, settled] == [before] * 4


async def test_savepoints_of_the_caller_work_around_it(client: Client, caller: Caller) -> None:
    await client.enqueue("email", b"outer", connection=caller.connection)
    await caller.run("savepoint inner_one")
    await client.enqueue("email", b"inner", unique="key", connection=caller.connection)
    await caller.run("rollback to inner_one")
    await caller.commit()

    assert [job.payload for job in await client.jobs()] == [b"outer"]
    assert (await client.stats("email")).pending == 1


def counted(loan: Loan, statements: list[str], monkeypatch: pytest.MonkeyPatch) -> Loan:
    """Note the statements that go through a loan."""
    execute = loan.execute

    async def noted(sql: str, parameters: Sequence[object] = ()) -> Sequence[Sequence[Any]]:
        statements.append(sql)
        return await execute(sql, parameters)

    monkeypatch.setattr(loan, "execute", noted)
    return loan


async def test_plain_jobs_cost_one_statement(
    client: Client, caller: Caller, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    async with a_store_by_search_path(client, schema) as (by_path, path):
        await caller.run(f"set search_path to {path}")
        loan = counted(borrow(caller.connection), statements, monkeypatch)
        jobs = by_path.preparer.prepare([NewJob("email"), NewJob("other", delay=5)])

        await by_path.store.join(loan).enqueue(jobs)
        await caller.commit()

    assert len(statements) == 1
    assert (await client.stats("email")).pending == 1


@pytest.mark.parametrize("notify", ["on", "off"])
async def test_a_url_without_notification_sends_none(schema: str, notify: str, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []
    async with windlass.connect(f"{schema}&notify={notify}") as client, calling("psycopg", schema) as caller:
        loan = counted(borrow(caller.connection), statements, monkeypatch)
        claim = await claimed(client)

        await client.store.join(loan).settle([Settlement(claim.job.id, claim.token, ToSucceeded())])

    assert any("pg_notify" in statement for statement in statements) is (notify == "on")


class ByName(asyncpg.Record):
    """A row that is a mapping: to go over it gives the names."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())


async def test_how_the_caller_reads_rows_disturbs_nothing(client: Client, schema: str) -> None:
    dsn = dsn_of(schema)
    until_finished = Unique("key", until="finished")
    by_name: Any = dict_row
    single = await asyncpg.connect(dsn, record_class=ByName)
    with (
        psycopg.Connection[Any].connect(dsn, row_factory=by_name) as blocking,
        psycopg2_connection(dsn, cursor_factory=psycopg2.extras.RealDictCursor) as older,
    ):
        for connection in (blocking, older, single):
            caller = Caller(connection)
            await caller.begin()
            claim = await claimed(client, unique=until_finished)
            await client.nack(claim, "again", delay=0, connection=connection)
            repeated = await client.enqueue("email", id=claim.job.id, connection=connection)
            unique = await client.enqueue("email", unique=until_finished, connection=connection)
            await caller.rollback()

            assert (repeated.created, unique.created) == (False, False)
            await client.ack(claim)
        assert blocking.row_factory is by_name
    await single.close()


def test_the_blocking_client_writes_in_a_transaction_of_its_callers_thread(schema: str) -> None:
    engine = create_engine(sqlalchemy_url(schema, "psycopg"))
    with (
        windlass.connect_sync(schema) as client,
        psycopg.connect(dsn_of(schema)) as newer,
        psycopg2_connection(dsn_of(schema)) as older,
        Session(engine) as session,
    ):
        connections: tuple[Any, ...] = (newer, older, session)
        for connection in connections:
            client.enqueue("email", b"rolled back", connection=connection)
            connection.rollback()
            client.enqueue("email", b"committed", connection=connection)
            connection.commit()
        jobs = [job.payload for job in client.jobs()]
    engine.dispose()

    assert jobs == [b"committed"] * 3


async def test_a_session_in_the_transaction_of_a_connection_is_committed_with_it(
    client: Client, schema: str, mine: str
) -> None:
    engine = create_engine(sqlalchemy_url(schema, "psycopg"))
    waiting = asyncio.create_task(client.claim("email", wait=30))
    with engine.connect() as connection:
        with Session(connection) as session:
            session.execute(text(f"insert into {mine} values ('mine')"))
            await client.enqueue("email", connection=session)
            session.commit()
        connection.commit()

    assert await asyncio.wait_for(waiting, 10) is not None
    engine.dispose()


async def test_a_job_of_a_long_transaction_is_not_passed_over(client: Client, schema: str) -> None:
    async with calling("psycopg async", schema) as caller:
        await client.enqueue("email", b"late", connection=caller.connection)
        for _ in range(30):
            await client.enqueue("email", b"early")
            claim = await client.claim("email")
            assert claim is not None
            await client.ack(claim)
        waiting = asyncio.create_task(client.claim("email", wait=30))
        await caller.commit()

        late = await asyncio.wait_for(waiting, 10)

    assert late is not None
    assert late.job.payload == b"late"


async def test_it_works_through_a_pooler(pooled_schema: str) -> None:
    dsn = dsn_of(pooled_schema)
    single = await asyncpg.connect(dsn, statement_cache_size=0)
    async with (
        windlass.connect(pooled_schema) as client,
        await psycopg.AsyncConnection.connect(dsn, prepare_threshold=None) as slow,
    ):
        for connection in (single, slow) * 5:
            caller = Caller(connection)
            for payload in (b"rolled back", b"committed"):
                await caller.begin()
                await client.enqueue("email", payload, connection=connection)
                await client.enqueue("email", payload, unique="key", connection=connection)
                await (caller.commit() if payload == b"committed" else caller.rollback())

        assert [job.payload for job in await client.jobs()] == [b"committed"] * 11
    await single.close()
