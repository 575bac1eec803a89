"""`ctx.transaction()` on Postgres: effects and the settlement of the claim in one transaction."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any

import asyncpg
import psycopg
import pytest
from django.db import connections, transaction
from psycopg import sql
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tests.postgres.cluster import cluster, dsn_of, schema_of
from tests.stores.postgres.ways import django_database, psycopg2_connection, sqlalchemy_url
from windlass import App, ClaimLost, Client, Context, Fixed, InvalidValue, Job, Server, ServerConfig, State


class Oops(Exception):
    """What a handler fails by."""


@pytest.fixture
async def app(schema: str, client: Client) -> AsyncIterator[App]:  # noqa: ARG001 - whose store makes the schema
    app = App(schema, retry=Fixed(0))
    async with app:
        yield app


def names(mine: str) -> list[str]:
    schema, _, table = mine.partition(".")
    rows = cluster().run(sql.SQL("select name from {} order by name").format(sql.Identifier(schema, table)))
    return [name for (name,) in rows]


async def served(app: App, handler: Callable[..., Any]) -> Job:
    """Return the job of one call of `handler` after its end."""
    work = app.job(handler)
    async with Server(app):
        handle = await work.enqueue()
        await asyncio.wait_for(handle.wait(timeout=30), 30)
        job: Job = await handle.job()
        return job


async def test_a_handler_writes_by_the_stores_own_connection(app: App, mine: str) -> None:
    async def work(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(f"insert into {mine} values ($1)", f"attempt {ctx.attempt}")
            async with connection.transaction():
                await connection.execute(f"insert into {mine} values ('nested')")
            if ctx.attempt == 1:
                raise Oops

    job = await served(app, work)

    assert (job.state, job.attempt) == (State.SUCCEEDED, 2)
    assert names(mine) == ["attempt 2", "nested"]


async def test_a_handler_in_a_thread_writes_by_the_stores_own_connection(app: App, mine: str) -> None:
    threads: list[int] = []

    def work(ctx: Context) -> None:
        threads.append(threading.get_ident())
        with ctx.transaction() as connection:
            connection.execute(f"insert into {mine} values ($1)", f"attempt {ctx.attempt}")
            connection.executemany(f"insert into {mine} values ($1)", [("many",), ("more",)])
            with suppress(Oops), connection.transaction():
                connection.execute(f"insert into {mine} values ('undone')")
                raise Oops
            with connection.transaction():
                assert connection.fetchval(f"select count(*) from {mine}") == 3
            assert [row["name"] for row in connection.fetch(f"select name from {mine} order by name")][1:] == [
                "many",
                "more",
            ]
            assert connection.fetchrow("select 1, 2")[1] == 2
            if ctx.attempt == 1:
                raise Oops

    job = await served(app, work)

    assert (job.state, job.attempt) == (State.SUCCEEDED, 2)
    assert names(mine) == ["attempt 2", "many", "more"]
    assert threading.get_ident() not in threads


async def test_a_handler_enqueues_by_the_stores_own_connection(app: App, client: Client) -> None:
    @app.job(queue="next")
    async def follow() -> None: ...

    async def work(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await follow.options(connection=connection).enqueue()
            if ctx.attempt == 1:
                raise Oops

    def work_in_a_thread(ctx: Context) -> None:
        with ctx.transaction() as connection:
            follow.options(connection=connection).enqueue_sync()
            if ctx.attempt == 1:
                raise Oops

    handlers = [app.job(work), app.job(work_in_a_thread)]
    async with Server(app, ServerConfig(queues=["default"])):
        for handler in handlers:
            handle = await handler.enqueue()
            await asyncio.wait_for(handle.wait(timeout=30), 30)

    assert (await client.stats("next")).pending == 2


@asynccontextmanager
async def opened(kind: str, url: str) -> AsyncGenerator[Callable[[str], Any]]:
    """Give what runs `insert` in a transaction of the caller's own library, for a handler of the fitting shape."""
    dsn = dsn_of(url)
    match kind:
        case "asyncpg":
            async with asyncpg.create_pool(dsn, min_size=1, max_size=2) as pool:
                yield lambda insert: asyncpg_handler(pool, insert)
        case "psycopg async":
            yield lambda insert: async_psycopg_handler(dsn, insert, autocommit=False)
        case "psycopg async autocommit":
            yield lambda insert: async_psycopg_handler(dsn, insert, autocommit=True)
        case "async orm":
            loops = create_async_engine(sqlalchemy_url(url, "asyncpg"))
            yield lambda insert: async_session_handler(loops, insert)
            await loops.dispose()
        case "psycopg":
            yield lambda insert: psycopg_handler(dsn, insert, autocommit=False)
        case "psycopg autocommit":
            yield lambda insert: psycopg_handler(dsn, insert, autocommit=True)
        case "psycopg2":
            yield lambda insert: psycopg2_handler(dsn, insert)
        case "orm":
            engine = create_engine(sqlalchemy_url(url, "psycopg"))
            yield lambda insert: session_handler(engine, insert)
            engine.dispose()
        case "django":
            with django_database(url) as alias:
                yield lambda insert: django_handler(alias, insert)
        case _:
            raise ValueError(kind)


def asyncpg_handler(pool: Any, insert: str) -> Callable[..., Any]:  # noqa: ANN401
    async def work(ctx: Context) -> None:
        async with pool.acquire() as connection, ctx.transaction(connection):
            await connection.execute(insert.replace("%s", f"'{ctx.attempt}'"))
            if ctx.attempt == 1:
                raise Oops

    return work


def async_psycopg_handler(dsn: str, insert: str, *, autocommit: bool) -> Callable[..., Any]:
    async def work(ctx: Context) -> None:
        async with (
            await psycopg.AsyncConnection.connect(dsn, autocommit=autocommit) as connection,
            ctx.transaction(connection),
        ):
            await connection.execute(insert.encode(), [str(ctx.attempt)])
            if ctx.attempt == 1:
                raise Oops

    return work


def async_session_handler(engine: Any, insert: str) -> Callable[..., Any]:  # noqa: ANN401
    async def work(ctx: Context) -> None:
        async with AsyncSession(engine) as session, ctx.transaction(session):
            await session.execute(text(insert.replace("%s", ":name")), {"name": str(ctx.attempt)})
            if ctx.attempt == 1:
                raise Oops

    return work


def psycopg_handler(dsn: str, insert: str, *, autocommit: bool) -> Callable[..., Any]:
    def work(ctx: Context) -> None:
        with psycopg.connect(dsn, autocommit=autocommit) as connection, ctx.transaction(connection):
            connection.execute(insert.encode(), [str(ctx.attempt)])
            if ctx.attempt == 1:
                raise Oops

    return work


def psycopg2_handler(dsn: str, insert: str) -> Callable[..., Any]:
    def work(ctx: Context) -> None:
        with psycopg2_connection(dsn) as connection, ctx.transaction(connection):
            with connection.cursor() as cursor:
                cursor.execute(insert, [str(ctx.attempt)])
            if ctx.attempt == 1:
                raise Oops

    return work


def session_handler(engine: Any, insert: str) -> Callable[..., Any]:  # noqa: ANN401
    def work(ctx: Context) -> None:
        with Session(engine) as session, ctx.transaction(session):
            session.execute(text(insert.replace("%s", ":name")), {"name": str(ctx.attempt)})
            if ctx.attempt == 1:
                raise Oops

    return work


def django_handler(alias: str, insert: str) -> Callable[..., Any]:
    def work(ctx: Context) -> None:
        with ExitStack() as stack:
            # each thread has a connection of its own
            stack.callback(connections[alias].close)
            with ctx.transaction(connections[alias]), connections[alias].cursor() as cursor:
                cursor.execute(insert, [str(ctx.attempt)])
                if ctx.attempt == 1:
                    raise Oops

    return work


@pytest.mark.parametrize(
    "kind",
    [
        "asyncpg",
        "psycopg async",
        "psycopg async autocommit",
        "async orm",
        "psycopg",
        "psycopg autocommit",
        "psycopg2",
        "orm",
        "django",
    ],
)
async def test_a_handler_writes_by_a_connection_of_its_own(app: App, schema: str, mine: str, kind: str) -> None:
    async with opened(kind, schema) as handler_for:
        job = await served(app, handler_for(f"insert into {mine} values (%s)"))

    assert (job.state, job.attempt, job.last_error) == (State.SUCCEEDED, 2, "Oops: ")
    assert names(mine) == ["2"]


async def test_a_connection_that_is_in_a_transaction_of_its_own_is_refused(app: App, schema: str) -> None:
    refusals: list[str] = []

    async def by_asyncpg(ctx: Context) -> None:
        connection = await asyncpg.connect(dsn_of(schema))
        try:
            async with connection.transaction(), ctx.transaction(connection):
                raise AssertionError
        except InvalidValue as error:
            refusals.append(str(error))
        finally:
            await connection.close()

    def by_psycopg(ctx: Context) -> None:
        with psycopg.connect(dsn_of(schema), autocommit=True) as connection:
            try:
                with connection.transaction(), ctx.transaction(connection):
                    raise AssertionError
            except InvalidValue as error:
                refusals.append(str(error))

    def by_django(ctx: Context) -> None:
        try:
            with transaction.atomic(using=alias), ctx.transaction(connections[alias]):
                raise AssertionError
        except InvalidValue as error:
            refusals.append(str(error))
        finally:
            connections[alias].close()

    with django_database(schema) as alias:
        for handler in (by_asyncpg, by_psycopg, by_django):
            assert (await served(app, handler)).state is State.SUCCEEDED

    assert len(refusals) == 3
    assert all("open on this connection already" in refusal for refusal in refusals)


async def test_an_attempt_that_lost_its_job_writes_nothing(app: App, client: Client, mine: str) -> None:
    refused: list[type[Exception]] = []

    async def work(ctx: Context) -> None:
        if ctx.delivery == 1:
            await client.rescue(force=True)
        try:
            async with ctx.transaction() as connection:
                await connection.execute(f"insert into {mine} values ($1)", str(ctx.delivery))
        except ClaimLost as error:
            refused.append(type(error))
            raise

    await served(app, work)

    assert refused == [ClaimLost]
    assert names(mine) == ["2"]


async def test_an_error_of_postgres_fails_the_attempt_whether_it_is_caught_or_not(app: App, mine: str) -> None:
    async def work(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(f"insert into {mine} values ($1)", f"attempt {ctx.attempt}")
            if ctx.attempt == 1:
                await connection.execute("select 1/0")
            if ctx.attempt == 2:
                with pytest.raises(asyncpg.DivisionByZeroError):
                    await connection.execute("select 1/0")

    job = await served(app, work)

    assert (job.state, job.attempt) == (State.SUCCEEDED, 3)
    assert names(mine) == ["attempt 3"]


async def test_increments_happen_exactly_once(app: App, schema: str) -> None:
    total = sql.Identifier(schema_of(schema), "total")
    cluster().run(sql.SQL("create table {} (n integer)").format(total))
    cluster().run(sql.SQL("insert into {} values (0)").format(total))
    add = f"update {schema_of(schema)}.total set n = n + 1"

    @app.job
    async def here(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(add)
            if ctx.attempt == 1 and ctx.job.seq % 3 == 0:
                raise Oops
        if ctx.job.seq % 2:
            raise Oops("changes nothing any more")

    @app.job
    def thread(ctx: Context) -> None:
        with ctx.transaction() as connection:
            connection.execute(add)
            if ctx.attempt == 1 and ctx.job.seq % 3 == 0:
                raise Oops

    async with Server(app):
        handles = [await work.enqueue() for _ in range(50) for work in (here, thread)]
        for handle in handles:
            await asyncio.wait_for(handle.wait(timeout=60), 60)

    assert cluster().run(sql.SQL("select n from {}").format(total)) == [(100,)]
