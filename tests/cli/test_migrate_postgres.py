"""`windlass migrate` on Postgres; what it prints for people who run SQL by hand does the same."""

import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.cli.conftest import Ended, Run
from tests.postgres.cluster import cluster, dsn_of, schema_of
from tests.stores.postgres.migrating import meta, relations, rows
from tests.stores.postgres.next_migrations import LATER, TWO_MORE
from tests.stores.postgres.schema_dump import dump
from windlass.stores.postgres import migrator
from windlass.stores.postgres.migrate import OURS, SCHEMA

CURRENT = f"the schema is current: version {SCHEMA} of {SCHEMA}\n"


@pytest.fixture
def _later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this be a later release, which has two migrations more."""
    monkeypatch.setattr(migrator, "OURS", TWO_MORE)


def test_a_schema_is_made_where_there_is_none(run: Run, schema: str) -> None:
    done = run("migrate", "--url", schema)

    assert (done.code, done.out) == (0, f"{applied(range(1, SCHEMA + 1))}{CURRENT}")
    assert meta(schema) == {"schema": str(SCHEMA)}
    assert run("enqueue", "--queue", "email", "--payload", "x", "--url", f"{schema}&create=no").code == 0


def applied(numbers: range) -> str:
    return "".join(f"migration {number} is applied\n" for number in numbers)


def test_a_current_schema_is_left_as_it_is(run: Run, schema: str) -> None:
    run("migrate", "--url", schema)

    assert run("migrate", "--url", schema).out == CURRENT
    assert run("migrate", "--json", "--url", schema).document == {
        "schema": f"version {SCHEMA} of {SCHEMA}",
        "applied": [],
    }


def test_the_plan_tells_what_would_be_done_and_does_nothing(
    run: Run, schema: str, request: pytest.FixtureRequest
) -> None:
    nothing = run("migrate", "--plan", "--url", schema)
    assert (nothing.code, meta(schema)) == (1, {})
    run("migrate", "--url", schema)
    current = run("migrate", "--plan", "--url", schema)
    request.getfixturevalue("_later")

    later = run("migrate", "--plan", "--url", schema)
    told = run("migrate", "--plan", "--json", "--url", schema)

    assert (current.code, current.out) == (0, CURRENT)
    assert later.code == told.code == 1
    assert later.out.splitlines() == [
        f"migration {number} would be applied to {told.document['place']}" for number in LATER
    ]
    assert schema_of(schema) in told.document["place"]
    assert told.document["pending"] == [SCHEMA + 1, SCHEMA + 2]
    assert meta(schema) == {"schema": str(SCHEMA)}


def test_the_status_tells_what_is_there_and_what_is_needed(
    run: Run, schema: str, request: pytest.FixtureRequest
) -> None:
    nothing = run("migrate", "--status", "--url", schema)
    run("migrate", "--url", schema)
    current = run("migrate", "--status", "--url", schema)
    request.getfixturevalue("_later")
    older = run("migrate", "--status", "--url", schema)
    run("migrate", "--url", schema)
    request.getfixturevalue("monkeypatch").undo()
    newer = run("migrate", "--status", "--url", schema)

    assert nothing.code == current.code == older.code == newer.code == 0
    parts = urlsplit(schema)
    place = f"database {parts.path[1:]} at {parts.netloc.rpartition('@')[2]}, schema {schema_of(schema)}"
    assert nothing.out == f"no schema in {place}; this release works with version {SCHEMA}\n"
    assert current.out == f"version {SCHEMA} of {SCHEMA} in {place}\n"
    assert older.out == f"version {SCHEMA} of {SCHEMA + 2} in {place}\n"
    assert newer.out == f"version {SCHEMA + 2} in {place}, newer than this release knows ({SCHEMA})\n"


@pytest.mark.usefixtures("_later")
def test_a_newer_schema_is_refused_by_every_question_but_the_status(
    run: Run, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("migrate", "--url", schema)
    monkeypatch.setattr(migrator, "OURS", OURS)

    for words in ([], ["--plan"], ["--sql"]):
        refused = run("migrate", *words, "--url", schema)

        assert refused.code == 5
        assert f"schema version {SCHEMA + 2} and this release knows {SCHEMA}" in refused.err
    assert meta(schema) == {"schema": str(SCHEMA + 2)}


def test_a_url_that_forbids_it_is_obeyed(run: Run, schema: str, request: pytest.FixtureRequest) -> None:
    refused = run("migrate", "--url", f"{schema}&create=no")
    assert (refused.code, meta(schema)) == (5, {})
    run("migrate", "--url", schema)
    request.getfixturevalue("_later")

    refused = run("migrate", "--url", f"{schema}&migrate=no")

    assert refused.code == 5
    assert meta(schema) == {"schema": str(SCHEMA)}


def test_a_server_that_is_not_there_is_told(run: Run) -> None:
    refused = run("migrate", "--status", "--url", "postgres://ann:canary@127.0.0.1:1/shop?timeout=1")

    assert refused.code == 5
    assert refused.err.startswith("error: ")
    assert "canary" not in refused.err


@pytest.fixture
def by_psql(tmp_path: Path) -> "Psql":
    return Psql(tmp_path / "script.sql")


class Psql:
    """Runs a script as a person would."""

    def __init__(self, place: Path) -> None:
        self._place = place
        programs = cluster().programs
        found = None if programs is None else programs / "psql"
        self._program = found if found is not None and found.exists() else shutil.which("psql")

    def __call__(self, script: Ended, url: str) -> "subprocess.CompletedProcess[str]":
        if self._program is None:
            pytest.skip("psql is not here")
        assert script.code == 0
        self._place.write_text(script.out)
        database = urlsplit(url)._replace(query="").geturl()
        command = [self._program, "-X", "-v", "ON_ERROR_STOP=1", "-f", self._place, database]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


@pytest.mark.usefixtures("_later")
def test_the_sql_makes_by_hand_what_the_command_makes(run: Run, schema: str, by_psql: Psql) -> None:
    other = cluster().new_schema()
    cluster().drop_schema(other)
    run("migrate", "--url", schema)

    done = by_psql(run("migrate", "--sql", "--from", "0", "--url", other), other)
    standing = run("migrate", "--status", "--json", "--url", other).document
    theirs, made = dump(schema_of(schema)), dump(schema_of(other))
    cluster().drop_schema(other)

    assert (done.returncode, "ERROR" in done.stderr) == (0, False), done.stderr
    assert (standing["found"], standing["pending"]) == (SCHEMA + 2, [])
    assert made == theirs


def test_the_sql_begins_where_the_schema_stands(
    run: Run, schema: str, by_psql: Psql, request: pytest.FixtureRequest
) -> None:
    run("migrate", "--url", schema)
    request.getfixturevalue("_later")

    script = run("migrate", "--sql", "--url", schema)
    done = by_psql(script, schema)
    again = by_psql(script, schema)

    assert "create table windlass_job (" not in script.out
    assert (done.returncode, "ERROR" in done.stderr) == (0, False), done.stderr
    assert run("migrate", "--plan", "--url", schema).code == 0
    assert run("migrate", "--sql", "--url", schema).out.startswith("-- The schema is current")
    assert again.returncode == 3
    assert f"this step is for a schema of version {SCHEMA}" in again.stderr
    assert rows(schema, "select n from {}.windlass_next") == [(1,)]


def test_sql_for_an_empty_schema_refuses_one_that_is_not(run: Run, schema: str, by_psql: Psql) -> None:
    run("migrate", "--url", schema)
    before = relations(schema)

    done = by_psql(run("migrate", "--sql", "--from", "0", "--url", schema), schema)

    assert done.returncode == 3
    assert relations(schema) == before


@pytest.mark.slow
def test_sql_by_hand_does_not_wait_without_end_for_whoever_has_the_turn(run: Run, schema: str, by_psql: Psql) -> None:
    script = run("migrate", "--sql", "--url", schema)
    with psycopg.connect(dsn_of(schema)) as holder:
        holder.execute(
            "select pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"windlass migrate {schema_of(schema)}"]
        )

        put_off = by_psql(script, schema)
        holder.rollback()
        done = by_psql(script, schema)

    assert put_off.returncode == 3
    assert "lock timeout" in put_off.stderr
    assert (done.returncode, meta(schema)) == (0, {"schema": str(SCHEMA)})


def test_the_sql_from_a_version_needs_no_server(run: Run) -> None:
    done = run("migrate", "--sql", "--from", "0", "--url", "postgres://nowhere.invalid/shop")

    assert done.code == 0
    assert "search_path" not in done.out
    assert run("migrate", "--sql", "--json", "--from", "0", "--url", "postgres://nowhere.invalid/shop").document == {
        "sql": done.out
    }


def test_a_version_that_nobody_knows_is_refused(run: Run) -> None:
    done = run("migrate", "--sql", "--from", str(SCHEMA + 1), "--url", "postgres://nowhere.invalid/shop")

    assert done.code == 2
    assert f"0 (no schema) to {SCHEMA}" in done.err
