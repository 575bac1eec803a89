"""What the tests of races share: stores and connections, each a door of its own to the same jobs."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any, Final

import asyncpg

from tests.postgres.cluster import dsn_of, schema_of
from windlass.connect import open_store
from windlass.core.job import Claim
from windlass.core.requests import ClaimRequest, Settlement
from windlass.core.store import Store
from windlass.core.verdict import ToSucceeded, Verdict

MINUTE: Final = timedelta(minutes=1)


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Store]:
    """Give an open store."""
    store = open_store(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def opened_many(url: str, count: int) -> AsyncGenerator[list[Store]]:
    """Give stores that share nothing but the database, as processes do."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(opened(url)) for _ in range(count)]


@asynccontextmanager
async def connection_to(url: str) -> AsyncGenerator["asyncpg.Connection[Any]"]:
    """Give a connection of somebody else, in the schema of the test."""
    connection = await asyncpg.connect(dsn_of(url), server_settings={"search_path": schema_of(url)})
    try:
        yield connection
    finally:
        await connection.close()


def wanting(*queues: str, limit: int = 1, lease: timedelta = MINUTE, **options: Any) -> ClaimRequest:  # noqa: ANN401
    """Return a request for jobs of `queues`."""
    return ClaimRequest(queues or ("q",), limit, lease, **options)


def settlement(claim: Claim, verdict: Verdict | None = None, **options: Any) -> Settlement:  # noqa: ANN401
    """Return how a claim ended, by default well."""
    return Settlement(claim.job.id, claim.token, verdict or ToSucceeded(), **options)
