"""A store of its own for each test, in a schema; servers that ask for a password."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from psycopg import sql

import windlass
from tests.postgres.cluster import cluster, schema_of
from tests.postgres.guarded import GuardedCluster, skip_without_tls
from tests.servers.certificates import Certificate, make_certificate, make_root
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


@pytest.fixture
def nothing_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variables of libpq, and none of the files that a home may hold."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(scope="session")
def guarded() -> Iterator[GuardedCluster]:
    """A Postgres that asks for a password, and cannot encrypt."""
    with GuardedCluster() as server:
        yield server


class Encrypted(NamedTuple):
    """A Postgres that lets nobody in whose connection is not encrypted, and who signs the certificates there."""

    server: GuardedCluster
    root: Certificate
    folder: Path


@pytest.fixture(scope="session")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    """One that goes by the name localhost."""
    skip_without_tls()
    folder = tmp_path_factory.mktemp("certificates")
    root = make_root(folder, "root")
    with GuardedCluster(make_certificate(folder, "localhost", root), root) as server:
        yield Encrypted(server, root, folder)
