"""A store of its own for each test, in a schema."""

from collections.abc import AsyncIterator

import pytest
from psycopg import sql

import windlass
from tests.postgres.cluster import cluster, schema_of
from windlass import Client


@pytest.fixture
async def client(schema: str) -> AsyncIterator[Client]:
    async with windlass.connect(schema) as client:
        yield client


@pytest.fixture
def mine(client: Client, schema: str) -> str:  # noqa: ARG001 - whose store makes the schema
    """A table of the caller's own, by its full name."""
    name = sql.Identifier(schema_of(schema), "mine")
    cluster().run(sql.SQL("create table {} (name text primary key)").format(name))
    return f"{schema_of(schema)}.mine"
