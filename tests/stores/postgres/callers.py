"""Callers with a transaction of their own on a bare connection, the same to use for every driver."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
import psycopg

import windlass
from tests.postgres.cluster import dsn_of, schema_of
from tests.stores.postgres.ways import psycopg2_connection
from windlass import Client

BARE: Final = ("psycopg", "psycopg async", "psycopg2", "asyncpg")


class Caller:
    """One bare connection in a transaction, the same to use for every driver."""

    def __init__(self, connection: Any) -> None:  # noqa: ANN401 - of one driver or another
        self.connection = connection
        self._begins = not hasattr(connection, "commit")
        self._transaction: Any = None

    async def begin(self) -> None:
        if self._begins:
            self._transaction = self.connection.transaction()
            await self._transaction.start()

    async def run(self, statement: str) -> list[Any]:
        if self._begins:
            return [tuple(row) for row in await self.connection.fetch(statement)]
        cursor = self.connection.cursor()
        await _done(cursor.execute(statement))
        return await _done(cursor.fetchall()) if cursor.description else []

    async def commit(self) -> None:
        await _done((self._transaction or self.connection).commit())

    async def rollback(self) -> None:
        await _done((self._transaction or self.connection).rollback())


async def _done(value: Any) -> Any:  # noqa: ANN401
    return await value if asyncio.iscoroutine(value) else value


@asynccontextmanager
async def calling(kind: str, url: str) -> AsyncGenerator[Caller]:
    dsn = dsn_of(url)
    match kind:
        case "psycopg":
            with psycopg.connect(dsn) as connection:
                yield Caller(connection)
        case "psycopg async":
            async with await psycopg.AsyncConnection.connect(dsn) as slow:
                yield Caller(slow)
        case "psycopg2":
            with psycopg2_connection(dsn) as older:
                yield Caller(older)
        case _:
            single = await asyncpg.connect(dsn)
            caller = Caller(single)
            await caller.begin()
            yield caller
            await single.close()


async def claimed(client: Client, **options: Any) -> windlass.Claim:  # noqa: ANN401
    await client.enqueue("email", **options)
    claim = await client.claim("email")
    assert claim is not None
    return claim


@asynccontextmanager
async def a_store_by_search_path(client: Client, schema: str) -> AsyncGenerator[tuple[Client, str]]:  # noqa: ARG001
    """Give a client on the same tables whose URL names no schema."""
    path = schema_of(schema)
    async with windlass.connect(f"{dsn_of(schema)}?options=-csearch_path%3D{path}") as by_path:
        yield by_path, path
