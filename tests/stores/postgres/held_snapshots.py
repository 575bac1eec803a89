"""An old snapshot that keeps every row that is gone from being removed, and how many pages a statement reads then."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from tests.postgres.cluster import dsn_of
from windlass.stores.postgres.statements import statement
from windlass.stores.postgres.work import Parameters


@asynccontextmanager
async def held_snapshot(url: str) -> AsyncGenerator[None]:
    """Hold what a long report does: a transaction that has read something."""
    holder = await asyncpg.connect(dsn_of(url))
    try:
        async with holder.transaction(isolation="repeatable_read"):
            await holder.fetchval("select count(*) from pg_class")
            yield
    finally:
        await holder.close()


async def pages_read(
    connection: "asyncpg.Connection[Any]", name: str, parameters: Parameters, index: str, *, keep: bool = False
) -> int:
    """Run `sql/<name>.sql` and return how many pages its looks by `index` touch; it is undone unless `keep`."""
    look = connection.transaction()
    await look.start()
    text, values = statement(name)
    plan = await connection.fetchval("explain (analyze, buffers, format json) " + text, *values(parameters))
    await (look.commit() if keep else look.rollback())
    found = [node for node in _nodes(json.loads(plan)[0]["Plan"]) if node.get("Index Name") == index]
    assert found, f"{name} does not look at {index}"
    return sum(node["Shared Hit Blocks"] + node["Shared Read Blocks"] for node in found)


def _nodes(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node, *(below for child in node.get("Plans", []) for below in _nodes(child))]
