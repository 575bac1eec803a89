"""Every way to a transaction of one's own: a row, and a job of the same name that is enqueued or settled with it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import asyncpg
import django
import psycopg
import psycopg2
from django.conf import settings
from django.db import connections, transaction
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import windlass
from tests.postgres.cluster import dsn_of, schema_of
from windlass import Client

Transact = Callable[[str, bool], Awaitable[None]]
"""Write a row of this name and do the deed, and commit or roll back."""

WAYS: Final = (
    "psycopg",
    "psycopg block",
    "psycopg async",
    "psycopg2",
    "asyncpg",
    "asyncpg pool",
    "core psycopg",
    "core psycopg2",
    "orm psycopg",
    "orm psycopg2",
    "async core psycopg",
    "async core asyncpg",
    "async orm psycopg",
    "async orm asyncpg",
    "django",
)


class Undone(Exception):
    """Makes a block roll back."""


class Deed(Protocol):
    """What is done in the transaction, by the asynchronous client and by the blocking one."""

    def __call__(self, client: Any, name: str, connection: object) -> Any:  # noqa: ANN401 - an awaitable of the former
        """Do it to the job of this name."""
        ...


def enqueue(client: Any, name: str, connection: object) -> Any:  # noqa: ANN401 - as above
    return client.enqueue("email", name.encode(), connection=connection)


class Settle:
    """Settles the claims on jobs, each by the verb that its name asks for."""

    def __init__(self, claims: Mapping[str, windlass.Claim], verb_of: Callable[[str], str]) -> None:
        self._claims = claims
        self._verb_of = verb_of

    def __call__(self, client: Any, name: str, connection: object) -> Any:  # noqa: ANN401 - as above
        match self._verb_of(name):
            case "ack":
                return client.ack(self._claims[name], connection=connection)
            case "nack":
                return client.nack(self._claims[name], "again", delay=3600, connection=connection)
            case _:
                return client.dead_letter(self._claims[name], "never", connection=connection)


@asynccontextmanager
async def way(kind: str, client: Client, url: str, deed: Deed = enqueue) -> AsyncGenerator[Transact]:
    """Open whatever `kind` needs."""
    dsn, table = dsn_of(url), f"{schema_of(url)}.mine"
    match kind.split():
        case ["psycopg"]:
            with psycopg.connect(dsn) as connection:
                yield by_dbapi(client, connection, table, deed)
        case ["psycopg", "block"]:
            with psycopg.connect(dsn, autocommit=True) as connection:
                yield by_block(client, connection, table, deed)
        case ["psycopg", "async"]:
            async with await psycopg.AsyncConnection.connect(dsn) as slow:
                yield by_async_psycopg(client, slow, table, deed)
        case ["psycopg2"]:
            with psycopg2_connection(dsn) as older:
                yield by_dbapi(client, older, table, deed)
        case ["asyncpg"]:
            single = await asyncpg.connect(dsn)
            yield by_asyncpg(client, single, table, deed)
            await single.close()
        case ["asyncpg", "pool"]:
            async with asyncpg.create_pool(dsn, min_size=1, max_size=1) as pool, pool.acquire() as proxy:
                yield by_asyncpg(client, proxy, table, deed)
        case ["core" | "orm" as layer, driver]:
            engine = create_engine(sqlalchemy_url(url, driver))
            yield (by_core if layer == "core" else by_orm)(client, engine, table, deed)
            engine.dispose()
        case ["async", "core" | "orm" as layer, driver]:
            loops = create_async_engine(sqlalchemy_url(url, driver))
            yield (by_async_core if layer == "core" else by_async_orm)(client, loops, table, deed)
            await loops.dispose()
        case ["django"]:
            async with by_django(url, table, deed) as transact:
                yield transact
        case _:
            raise ValueError(kind)


def sqlalchemy_url(url: str, driver: str) -> str:
    return f"postgresql+{driver}://{dsn_of(url).partition('://')[2]}"


@contextmanager
def psycopg2_connection(dsn: str, **options: Any) -> Generator[Any]:  # noqa: ANN401 - as psycopg2 takes them
    connection = psycopg2.connect(dsn, **options)
    try:
        yield connection
    finally:
        connection.close()


def by_dbapi(client: Client, connection: Any, table: str, deed: Deed) -> Transact:  # noqa: ANN401 - psycopg's and psycopg2's
    async def transact(name: str, commit: bool) -> None:  # noqa: FBT001 - one of the two ends, here and below
        with connection.cursor() as cursor:
            cursor.execute(f"insert into {table} values (%s)", [name])
        await deed(client, name, connection)
        connection.commit() if commit else connection.rollback()

    return transact


def by_block(client: Client, connection: "psycopg.Connection[Any]", table: str, deed: Deed) -> Transact:
    async def transact(name: str, commit: bool) -> None:  # noqa: FBT001
        with connection.transaction(force_rollback=not commit):
            await deed(client, name, connection)
            connection.execute(f"insert into {table} values (%s)".encode(), [name])

    return transact


def by_async_psycopg(client: Client, connection: "psycopg.AsyncConnection[Any]", table: str, deed: Deed) -> Transact:
    async def transact(name: str, commit: bool) -> None:  # noqa: FBT001
        await deed(client, name, connection)
        await connection.execute(f"insert into {table} values (%s)".encode(), [name])
        await (connection.commit() if commit else connection.rollback())

    return transact


def by_asyncpg(client: Client, connection: Any, table: str, deed: Deed) -> Transact:  # noqa: ANN401 - the pool's is another type
    async def transact(name: str, commit: bool) -> None:  # noqa: FBT001
        block = connection.transaction()
        await block.start()
        await connection.execute(f"insert into {table} values ($1)", name)
        await deed(client, name, connection)
        await (block.commit() if commit else block.rollback())

    return transact


def by_core(client: Client, engine: Any, table: str, deed: Deed) -> Transact:  # noqa: ANN401 - the same below for both kinds
    async def transact(name: str, commit: bool) -> None:  # noqa: FBT001
        with engine.connect() as connection:
            await deed(client, name, connection)
            connection.execute(text(f"insert into {table} values (:name)"), {"name": name})
            connection.commit() if commit else connection.rollback()

    return transact


def by_orm(client: Client, engine: Any, table: str, deed: Deed) -> Transact:  # noqa: ANN401
    async def transact(name: str, commit: bool) -> None:  # noqa: FBT001
        with Session(engine) as session:
            session.execute(text(f"insert into {table} values (:name)"), {"name": name})
            await deed(client, name, session)
            session.commit() if commit else session.rollback()

    return transact


def by_async_core(client: Client, engine: Any, table: str, deed: Deed) -> Transact:  # noqa: ANN401
    async def transact(name: str, commit: bool) -> None:  # noqa: FBT001
        async with engine.connect() as connection:
            # the first statement is ours: SQLAlchemy itself has begun nothing at the server yet
            await deed(client, name, connection)
            await connection.execute(text(f"insert into {table} values (:name)"), {"name": name})
            await (connection.commit() if commit else connection.rollback())

    return transact


def by_async_orm(client: Client, engine: Any, table: str, deed: Deed) -> Transact:  # noqa: ANN401
    async def transact(name: str, commit: bool) -> None:  # noqa: FBT001
        async with AsyncSession(engine) as session:
            await deed(client, name, session)
            await session.execute(text(f"insert into {table} values (:name)"), {"name": name})
            await (session.commit() if commit else session.rollback())

    return transact


@asynccontextmanager
async def by_django(url: str, table: str, deed: Deed) -> AsyncGenerator[Transact]:
    """In one thread, as a view runs in one, with the blocking client."""

    def write(name: str, commit: bool) -> None:  # noqa: FBT001
        with transaction.atomic(using=alias):
            with connections[alias].cursor() as cursor:
                cursor.execute(f"insert into {table} values (%s)", [name])
            deed(client, name, connections[alias])
            if not commit:
                transaction.set_rollback(True, using=alias)

    async def transact(name: str, commit: bool) -> None:  # noqa: FBT001
        await asyncio.get_running_loop().run_in_executor(thread, write, name, commit)

    with django_database(url) as alias, ThreadPoolExecutor(1) as thread, windlass.connect_sync(url) as client:
        yield transact
        await asyncio.get_running_loop().run_in_executor(thread, _close, alias)


def _close(alias: str) -> None:
    connections[alias].close()


@contextmanager
def django_database(url: str, **options: object) -> Generator[str]:
    """Give the alias of a database of Django's."""
    if not settings.configured:
        settings.configure(DATABASES={}, USE_TZ=False)
        django.setup()
    parts = urlsplit(url)
    alias = schema_of(url)
    connections.databases[alias] = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path[1:],
        "USER": parts.username,
        "PASSWORD": parts.password or "",
        "HOST": parts.hostname,
        "PORT": parts.port,
        "ATOMIC_REQUESTS": False,
        "AUTOCOMMIT": True,
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": False,
        "TIME_ZONE": None,
        "OPTIONS": options,
        "TEST": {"MIRROR": None},
    }
    yield alias
    del connections.databases[alias]
