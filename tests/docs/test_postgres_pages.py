"""What the pages on Postgres say, tried on a server."""

import asyncio
import inspect
import re
import shlex
import textwrap
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg import sql
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

import windlass
from proofs.children import eventually
from tests.cli.conftest import Run, run
from tests.docs.pages import DOCS, TERMINAL, text_of
from tests.postgres.cluster import cluster, dsn_of, schema_of
from windlass import App, Client, Context, Server
from windlass.connect import open_store
from windlass.stores.postgres.statements import migration

__all__ = ["run"]

POOLER = text_of("howto/use-pgbouncer.md")
SHARING = text_of("howto/share-a-database-between-apps.md")
SIZES = text_of("howto/size-connections-on-postgres.md")
JOINING = text_of("howto/enqueue-inside-your-postgres-transaction.md")
TEXT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SQL = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
URLS = sorted(
    {
        url.rstrip("`'.,")
        for page in DOCS.rglob("*.md")
        for url in re.findall(r"postgres://[^\s|)\"]+", page.read_text(encoding="utf-8"))
        if not url.startswith("postgres://`") and "..." not in url and "***" not in url and "shema" not in url
    }
)


class Base(DeclarativeBase):
    """The tables of a page's reader."""


class Order(Base):
    """An order."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    total: Mapped[int]


@pytest.fixture
async def client(schema: str) -> AsyncIterator[Client]:
    async with windlass.connect(schema) as client:
        yield client


@pytest.fixture
def reader() -> Iterator[str]:
    """The URL of the reader's own tables, as drivers take it; they are in another schema than the jobs."""
    url = cluster().new_schema()
    make_table(url, "orders")
    yield f"{dsn_of(url)}?options=-csearch_path%3D{schema_of(url)}"
    cluster().drop_schema(url)


def make_table(url: str, name: str) -> None:
    place = sql.Identifier(schema_of(url), name)
    cluster().run(sql.SQL("create table {} (id bigint, total bigint)").format(place))


def block(page: str, part: str) -> str:
    """Return the one block of code of a page that has `part` in it."""
    found: list[str] = [text for text in TEXT.findall(page) if part in text]
    assert len(found) == 1, part
    return found[0]


async def follow(text: str, **names: object) -> dict[str, Any]:
    """Run a block of code that may await, and return the names that it leaves."""
    inner = textwrap.indent(f"{text}\nreturn locals()", "    ")
    names |= {"windlass": windlass, "Context": Context}
    exec(f"async def block():\n{inner}", names)  # noqa: S102 - code of our own pages
    work = names["block"]
    assert inspect.iscoroutinefunction(work)
    left: dict[str, Any] = await work()
    return left


def rows_of(dsn: str, table: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            sql.SQL("select id, total from {}").format(sql.Identifier(*table.split(".")))
        ).fetchall()


@pytest.mark.parametrize("url", URLS)
def test_every_url_of_every_page_can_be_read(url: str) -> None:
    open_store(url)


def test_the_page_on_how_it_works_knows_every_table() -> None:
    made = re.findall(r"^create table (\w+)", migration(1), re.MULTILINE)

    for name in made:
        assert f"`{name}`" in text_of("explanation/how-postgres-works-here.md")
    assert len(made) > 10


def test_nothing_is_made_that_a_managed_database_might_refuse() -> None:
    kinds = set(re.findall(r"^create (?:unique )?(\w+)", migration(1), re.MULTILINE))

    assert kinds == {"table", "index", "sequence"}


def test_the_doctor_tells_of_the_pooler_as_the_page_says(run: Run, pooled_schema: str) -> None:
    [shown] = TERMINAL.findall(POOLER)
    run("migrate", "--url", pooled_schema)

    done = run("doctor", "--url", pooled_schema)

    said = [" ".join(line.split()) for line in done.out.splitlines()]
    wanted = [" ".join(line.split()) for line in shown.splitlines() if line[0] not in ".$"]
    assert len(wanted) == 2
    assert [line for line in said if line in wanted] == wanted


async def test_an_enqueue_through_a_pooler_wakes_who_listens_directly(schema: str, pooled_schema: str) -> None:
    async with windlass.connect(schema, poll_interval=600) as direct, windlass.connect(pooled_schema) as pooled:
        waiting = asyncio.create_task(direct.claim("email", wait=60))
        await asyncio.to_thread(eventually, lambda: "listen" in last_statements(), 10)

        await pooled.enqueue("email", b"hello")

        claim = await asyncio.wait_for(waiting, 10)
        assert claim is not None


def last_statements() -> str:
    rows = cluster().run("select lower(query) from pg_stat_activity where datname = current_database()")
    return " ".join(text for (text,) in rows)


def test_two_apps_share_a_database_as_the_page_says(run: Run) -> None:
    [shown] = TERMINAL.findall(SHARING)
    parts = re.findall(r"^\$ windlass (.*)\n((?:[^$].*\n)*)", shown, re.MULTILINE)
    urls = [cluster().new_schema() for _ in parts]
    assert len(parts) == 2
    for (command, answer), url in zip(parts, urls, strict=True):
        *words, _ = shlex.split(command)

        assert run(*words, url).out == answer

        cluster().drop_schema(url)


async def test_one_transaction_enqueues_to_two_stores(schema: str, reader: str) -> None:
    other = cluster().new_schema()
    async with windlass.connect(schema) as shop, windlass.connect(other) as mail:
        async with asyncpg.create_pool(reader, min_size=1, max_size=1) as pool:
            await follow(block(SHARING, "newsletters"), pool=pool, shop=shop, mail=mail)

        assert [(await store.stats()).pending for store in (shop, mail)] == [1, 1]
    assert rows_of(reader, "orders") == [(1, 42)]
    cluster().drop_schema(other)


async def by_psycopg(client: Client, dsn: str) -> None:
    await follow(block(JOINING, "AsyncConnection.connect"), client=client, psycopg=psycopg, DATABASE=dsn)


async def by_asyncpg(client: Client, dsn: str) -> None:
    async with asyncpg.create_pool(dsn, min_size=1, max_size=1) as pool:
        await follow(block(JOINING, "pool.acquire"), client=client, pool=pool)


async def by_sqlalchemy(client: Client, dsn: str) -> None:
    engine = create_async_engine(dsn.replace("postgres://", "postgresql+psycopg://"))
    names = {"client": client, "engine": engine, "Order": Order, "AsyncSession": AsyncSession}
    await follow(block(JOINING, "session.add"), **names)
    await engine.dispose()


@pytest.mark.parametrize("way", [by_psycopg, by_asyncpg, by_sqlalchemy])
async def test_a_job_is_enqueued_in_a_transaction_as_the_page_says(
    client: Client, reader: str, way: Callable[[Client, str], Coroutine[Any, Any, None]]
) -> None:
    await way(client, reader)

    assert (await client.stats("receipts")).pending == 1
    assert rows_of(reader, "orders") == [(1, 42)]


@pytest.mark.parametrize("form", ["async def book", "\ndef book"])
async def test_a_handler_books_in_a_transaction_as_the_page_says(schema: str, form: str) -> None:
    make_table(schema, "bookings")
    app = App(schema)
    book = (await follow(block(JOINING, form), app=app))["book"]

    async with app, Server(app):
        handle = await book.enqueue(1, 42)
        await handle.wait(timeout=30)

        job = await handle.job()
    assert job.state == "succeeded"
    assert rows_of(dsn_of(schema), f"{schema_of(schema)}.bookings") == [(1, 42)]


async def test_the_statements_for_monitoring_can_be_run(client: Client, schema: str) -> None:
    await client.enqueue("email", b"hello")
    [text] = SQL.findall(SIZES)
    statements = [part for part in text.replace("'jobs'", f"'{schema_of(schema)}'").split(";") if part.strip()]

    with psycopg.connect(dsn_of(schema), autocommit=True) as connection:
        _, tables, sessions = [connection.execute(one.encode()).fetchall() for one in statements]

    assert "windlass_job" in {row[0] for row in tables}
    assert "windlass" in {row[0] for row in sessions}


async def test_a_server_has_no_more_connections_than_the_page_counts(schema: str) -> None:
    """With `?connections=2`: 2 for calls, 1 that listens, 1 for renewals, 2 for transactions of handlers."""
    app = App(f"{schema}&connections=2&application_name=counted")
    begun, go = asyncio.Semaphore(0), asyncio.Event()

    @app.job
    async def busy(ctx: Context = windlass.given()) -> None:
        async with ctx.transaction() as connection:
            await connection.execute("select 1")
            begun.release()
            await go.wait()

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app)
        await stack.enter_async_context(Server(app))
        handles = [await busy.enqueue() for _ in range(6)]
        for _ in range(2):
            await asyncio.wait_for(begun.acquire(), 30)
        await asyncio.gather(*(app.client.stats() for _ in range(20)))

        assert sessions() == 6

        go.set()
        for handle in handles:
            await handle.wait(timeout=30)
    assert await asyncio.to_thread(eventually, lambda: sessions() == 0, 10)


def sessions() -> int:
    [(count,)] = cluster().run("select count(*) from pg_stat_activity where application_name = 'counted'")
    return int(count)
