"""The Postgres of a test run: one cluster for all tests, a database for each process, a schema for each test.

It is the one at `WINDLASS_TEST_POSTGRES` when that is set, where there is one database for all. Else it is started,
from the wheel or from the programs in the folder `WINDLASS_TEST_POSTGRES_BIN`, and ends with the run.

Stores that are ready belong to a role that has no rights but those that the docs list. In a given server each process
makes such a role and drops it in the end; where it may not, and through PgBouncer, the one of the URL is taken.
"""

import atexit
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, LiteralString
from urllib.parse import parse_qs, urlsplit

import psycopg
from psycopg import sql

from tests.postgres import binaries
from tests.postgres.roles import RUN, as_role, let_in, make_role_in_given, make_roles, user_of
from tests.postgres.server import QUICK, command, free_port, make_data, wait_until_it_answers
from tests.servers import run

GIVEN: Final = os.environ.get("WINDLASS_TEST_POSTGRES")


@dataclass(frozen=True)
class Cluster:
    """A running Postgres; `url` leads to a database of it, as who owns what is made there, and names no schema.

    `programs` and `log` are None where only the URL is known. `runs_as` is the login of the role that works in stores
    which another has made; None where there is no such role.
    """

    url: str
    programs: Path | None = None
    log: Path | None = None
    runs_as: str | None = None

    @property
    def version(self) -> int:
        """Which Postgres it is: 15, 18."""
        return _connection(self.url, os.getpid()).info.server_version // 10_000

    def new_schema(self) -> str:
        """Make an empty schema, and return the URL of the store that is not there yet."""
        name = f"test_{secrets.token_hex(6)}"
        self.run(sql.SQL("create schema {}").format(sql.Identifier(name)))
        return f"{self.url}{'&' if '?' in self.url else '?'}schema={name}"

    def drop_schema(self, url: str) -> None:
        """Drop the schema that `url` leads to, with all that is in it."""
        self.run(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema_of(url))))

    def run(
        self,
        statement: LiteralString | bytes | sql.SQL | sql.Composed,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
    ) -> list[tuple[Any, ...]]:
        """Run a statement, or without parameters several as one transaction, and return the rows of the first."""
        connection = _connection(self.url, os.getpid())
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else []

    def sessions(self) -> set[int]:
        """Return the processes that serve other sessions than this object's in this database, but for PgBouncer's."""
        rows = self.run(
            "select pid from pg_stat_activity where backend_type = 'client backend' and usename in (current_user, %s)"
            " and datname = current_database() and pid <> pg_backend_pid()",
            [user_of(self.runs_as or "")],
        )
        return {pid for (pid,) in rows}

    def busy_sessions(self) -> set[int]:
        """Return those in a transaction or with a statement under way, also of PgBouncer's."""
        rows = self.run(
            "select pid from pg_stat_activity where backend_type = 'client backend' and state <> 'idle'"
            " and datname = current_database() and pid <> pg_backend_pid()"
        )
        return {pid for (pid,) in rows}


@cache
def cluster() -> Cluster:
    """Return the cluster of this run, with a database of its own for this process where it is not a given one."""
    if GIVEN:
        return Cluster(GIVEN, runs_as=make_role_in_given(GIVEN))
    programs, port, log = run.shared("postgres", _start).splitlines()
    server = Cluster(f"postgres://postgres@127.0.0.1:{port}/postgres", Path(programs), Path(log))
    database = f"of_{os.getpid()}_{secrets.token_hex(4)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(database)))
    here = Cluster(f"postgres://postgres@127.0.0.1:{port}/{database}", server.programs, server.log, RUN)
    let_in(here.url)
    return here


def as_owner(url: str) -> str:
    """Return the URL of a store for who owns its tables, where it is one for the role that works."""
    here = cluster()
    if here.runs_as is None or user_of(url) != user_of(here.runs_as):
        return url
    return as_role(url, urlsplit(here.url).netloc.rpartition("@")[0])


def schema_of(url: str) -> str:
    """Return the name of the schema that a store URL leads to."""
    [name] = parse_qs(urlsplit(url).query)["schema"]
    return name


def dsn_of(url: str) -> str:
    """Return a store URL as drivers read it, which know of no schema."""
    return url.partition("?")[0]


def _start(folder: Path) -> str:
    given = os.environ.get("WINDLASS_TEST_POSTGRES_BIN")
    programs = Path(given) if given else binaries.of_the_wheel(folder)
    home = folder / "home"
    home.mkdir()
    data, port, log = make_data(programs, home), free_port(), folder / "log"
    alive = run.live_in(folder, command(programs, data, port, QUICK), log=log)
    url = f"postgres://postgres@127.0.0.1:{port}/postgres"
    wait_until_it_answers(url, log, alive=alive)
    make_roles(url)
    return f"{programs}\n{port}\n{log}"


@cache
def _connection(url: str, process: int) -> psycopg.Connection:
    # one that waits for a lock of somebody who never ends says so, instead of standing still
    connection = psycopg.connect(url, autocommit=True, options="-c lock_timeout=10s")
    atexit.register(_close, connection, process)
    return connection


def _close(connection: psycopg.Connection, process: int) -> None:
    # a child that was forked has a copy, and must not end a session that is not its own
    if os.getpid() == process:
        connection.close()
