"""What the tests of sessions, connections and the runner share: small statements on a small table."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import psycopg
import pytest

from tests.postgres.cluster import Cluster, as_owner, dsn_of, schema_of
from windlass.core.topics import Hub
from windlass.stores.postgres.connections import Connections
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.runner import Runner
from windlass.stores.postgres.statements import CompiledStatement, compile_statement, statement
from windlass.stores.postgres.work import Changes, Statement, Work
from windlass.system import SystemClock

STATEMENTS: Final = {
    "create": "create table if not exists number (number int primary key)",
    "insert": "insert into number values (:number::int) returning number",
    "receive": "insert into windlass_receipt values (:request_id::text, clock_timestamp(), :reply::text)",
    "received": "select reply from windlass_receipt where request_id = :request_id::text",
    "numbers": "select number from number order by number",
    "pid": "select pg_backend_pid()",
    "sleep": "select pg_sleep(:seconds::float8)",
    "divide": "select 1 / :by::int",
    "setting": "select current_setting(:name::text)",
    "missing": "select * from windlass_nothing",
    "echo": "select :text::text",
    "isolation": "select current_setting('transaction_isolation'), current_setting('transaction_read_only')",
    "lock_row": "select number from number where number = :number::int for update",
}


def use_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sessions know the statements of these tests beside the store's own."""

    def of_tests(name: str) -> CompiledStatement:
        return compile_statement(STATEMENTS[name]) if name in STATEMENTS else statement(name)

    monkeypatch.setattr("windlass.stores.postgres.session.statement", of_tests)


def options_of(url: str, **given: object) -> Options:
    """Return the options of a test's URL."""
    schema = schema_of(url) if "schema=" in url else None
    return Options(dsn_of(url), schema=schema, **given)  # type: ignore[arg-type]


def runner_of(connections: Connections, options: Options, hub: Hub | None = None) -> Runner:
    """Return a runner that tells nobody."""
    return Runner(connections, hub or Hub(), None, SystemClock(), options)


def numbers(_: Changes) -> Work[list[int]]:
    rows = yield Statement("numbers")
    return [row[0] for row in rows]


@contextmanager
def blocking(url: str) -> Generator[psycopg.Connection]:
    """A connection of somebody else, who may do everything, in the schema of the test."""
    with psycopg.connect(dsn_of(as_owner(url)), options=f"-c search_path={schema_of(url)}") as connection:
        yield connection


def end_sessions(cluster: Cluster, pids: set[int]) -> None:
    """End these sessions of the server, and return when they are gone."""
    cluster.run("select pg_terminate_backend(pid) from unnest(%s::int[]) as pid", [list(pids)])
    until = time.monotonic() + 20
    while cluster.sessions() & pids:
        assert time.monotonic() < until, "sessions do not end"
        time.sleep(0.005)
