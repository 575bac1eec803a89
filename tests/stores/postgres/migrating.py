"""What tests of migrations share: a connection by URL, and what the schema holds."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any, LiteralString

import asyncpg
from psycopg import sql

from proofs.children import eventually, state_of
from tests.postgres.cluster import cluster, schema_of
from tests.stores.postgres.next_migrations import up_to
from windlass.store_url import parse
from windlass.stores.postgres.address import read_address
from windlass.stores.postgres.migrate import Migrations, prepare
from windlass.stores.postgres.options import Options
from windlass.testing.failpoints import VARIABLE, arm_from_environment


def options_of(url: str, **others: Any) -> Options:  # noqa: ANN401 - whatever the options have
    """Return the options that a store URL says, and `others` over them."""
    parts = parse(url, ["postgres"])
    return replace(read_address(parts.host, parts.path, parts.options), **others)


@asynccontextmanager
async def connected(options: Options, *, cached: bool = False) -> AsyncGenerator["asyncpg.Connection[Any]"]:
    """Connect as a stranger would, without any of our settings; the session goes by the name of the schema.

    With `cached` it keeps its statements prepared, which no pooler would bear.
    """
    name = {"application_name": str(options.schema)}
    size = 100 if cached else 0
    connection = await asyncpg.connect(options.dsn, statement_cache_size=size, server_settings=name)
    try:
        yield connection
    finally:
        connection.terminate()


async def bring_up(url: str, migrations: Migrations) -> None:
    """Do what a store does that is opened with ?migrate=yes."""
    options = options_of(url, migrate=True)
    async with connected(options) as connection:
        await prepare(connection, options, migrations=migrations)


def run_migrator(url: str, migrations: Migrations, failpoint: str = "") -> "subprocess.CompletedProcess[bytes]":
    """Bring the schema up in a process of its own."""
    command, environ = _migrator(url, migrations, failpoint)
    return subprocess.run(command, env=environ, check=False, capture_output=True, timeout=60)


@contextmanager
def stopped_migrator(url: str, migrations: Migrations, point: str, nth: int = 1) -> Generator[int]:
    """Give the number of a process that brings the schema up, and stands still where it came to `point` that often."""
    command, environ = _migrator(url, migrations, f"{point}=stop;nth={nth}")
    with subprocess.Popen(command, env=environ) as process:
        try:
            assert eventually(lambda: state_of(process.pid) in "TZX")
            assert process.poll() is None
            yield process.pid
        finally:
            process.kill()


def _migrator(url: str, migrations: Migrations, failpoint: str) -> tuple[list[str], dict[str, str]]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.stores.postgres.migrating", url, str(migrations.known)]
    return command, {**os.environ, VARIABLE: failpoint}


def sessions(url: str) -> list[int]:
    """Return the processes of the server that serve whoever was `connected` to the schema of `url`."""
    statement = "select pid from pg_stat_activity where application_name = %s and pid <> pg_backend_pid()"
    return [pid for (pid,) in cluster().run(statement, [schema_of(url)])]


def rows(url: str, statement: LiteralString) -> list[tuple[Any, ...]]:
    """Run a statement in which {} stands for the schema of `url`."""
    return cluster().run(sql.SQL(statement).format(sql.Identifier(schema_of(url))))


def meta(url: str) -> dict[str, str]:
    """Return what windlass_meta says of the schema; nothing where there is no such table."""
    if "windlass_meta" not in relations(url):
        return {}
    return dict(rows(url, "select name, value from {}.windlass_meta where name in ('schema', 'making')"))


def relations(url: str) -> set[str]:
    """Return the names of all tables, indexes and sequences in the schema of `url`; of an index that is broken too."""
    statement = "select relname from pg_class where relnamespace = to_regnamespace(quote_ident(%s)) and relkind <> 't'"
    return {name for (name,) in cluster().run(statement, [schema_of(url)])}


async def _main(url: str, known: str) -> None:
    arm_from_environment()
    await bring_up(url, up_to(int(known)))


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
