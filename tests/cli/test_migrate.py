import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from windlass.stores.sqlite.database import SCHEMA, statements
from windlass.stores.sqlite.statements import migration

URL_OLD = "sqlite:///old.db"
CURRENT = f"the schema is current: version {SCHEMA} of {SCHEMA}\n"


@pytest.fixture
def old_file() -> Path:
    """Return a file as the first release made it."""
    path = Path("old.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode = wal")
        for statement in statements(migration(1)):
            connection.execute(statement)
        connection.execute("insert into windlass_meta (name, value) values ('schema', 1)")
        connection.commit()
    return path


@pytest.mark.usefixtures("old_file")
def test_an_old_store_is_refused_with_the_command_that_brings_it_up(run: Run) -> None:
    refused = run("schedules", "--url", URL_OLD)

    assert refused.code == 5
    assert "windlass migrate" in refused.err


@pytest.mark.usefixtures("old_file")
def test_an_old_store_is_brought_up_and_works_then(run: Run) -> None:
    done = run("migrate", "--url", URL_OLD)

    applied = "".join(f"migration {number} is applied\n" for number in range(2, SCHEMA + 1))
    assert (done.code, done.out) == (0, f"{applied}{CURRENT}")
    assert run("enqueue", "--queue", "email", "--payload", "x", "--url", URL_OLD).code == 0


@pytest.mark.usefixtures("old_file")
def test_a_current_store_is_left_as_it_is(run: Run) -> None:
    run("migrate", "--url", URL_OLD)

    again = run("migrate", "--json", "--url", URL_OLD)

    assert again.document == {"schema": f"version {SCHEMA} of {SCHEMA}", "applied": []}
    assert run("migrate", "--url", URL_OLD).out == CURRENT


@pytest.mark.parametrize("words", [[], ["--plan"], ["--status"], ["--sql"]])
def test_a_store_that_is_not_there_is_not_made(run: Run, words: list[str]) -> None:
    done = run("migrate", *words, "--url", "sqlite:///none.db")

    assert done.code == 5
    assert "look at the URL" in done.err
    assert not Path("none.db").exists()


@pytest.mark.parametrize("words", [[], ["--plan"], ["--status"], ["--sql"]])
def test_a_file_without_a_store_is_left_as_it_is(run: Run, words: list[str]) -> None:
    with closing(sqlite3.connect("mine.db")) as connection:
        connection.execute("create table mine (n integer)")
    before = Path("mine.db").read_bytes()

    done = run("migrate", *words, "--url", "sqlite:///mine.db")

    assert done.code == 5
    assert Path("mine.db").read_bytes() == before


def test_what_is_no_database_is_refused(run: Run) -> None:
    Path("text.db").write_text("This is no database, but it is long enough to be taken for one. " * 20)

    done = run("migrate", "--status", "--url", "sqlite:///text.db")

    assert done.code == 5
    assert "not a SQLite database" in done.err


def test_the_plan_tells_what_would_be_done_and_does_nothing(run: Run, old_file: Path) -> None:
    before = old_file.read_bytes()

    told = run("migrate", "--plan", "--url", URL_OLD)
    document = run("migrate", "--plan", "--json", "--url", URL_OLD).document

    lines = [f"migration {number} would be applied to old.db\n" for number in range(2, SCHEMA + 1)]
    assert (told.code, told.out) == (1, "".join(lines))
    assert document == {"place": "old.db", "found": 1, "known": SCHEMA, "pending": list(range(2, SCHEMA + 1))}
    assert old_file.read_bytes() == before
    assert (run("migrate", "--url", URL_OLD).code, run("migrate", "--plan", "--url", URL_OLD).code) == (0, 0)


@pytest.mark.usefixtures("old_file")
def test_the_status_tells_what_is_there_and_what_is_needed(run: Run) -> None:
    older = run("migrate", "--status", "--url", URL_OLD)
    run("migrate", "--url", URL_OLD)
    current = run("migrate", "--status", "--url", URL_OLD)

    assert (older.code, older.out) == (0, f"version 1 of {SCHEMA} in old.db\n")
    assert (current.code, current.out) == (0, f"version {SCHEMA} of {SCHEMA} in old.db\n")


def test_the_sql_brings_a_file_up_by_hand(run: Run, old_file: Path) -> None:
    script = run("migrate", "--sql", "--url", URL_OLD)

    with closing(sqlite3.connect(old_file)) as connection:
        connection.executescript(script.out)

    assert run("migrate", "--plan", "--url", URL_OLD).out == CURRENT
    assert run("migrate", "--sql", "--url", URL_OLD).out.startswith("-- The schema is current")
    assert run("enqueue", "--queue", "email", "--payload", "x", "--url", f"{URL_OLD}?create=no").code == 0


def test_the_sql_makes_a_file_by_hand(run: Run) -> None:
    script = run("migrate", "--sql", "--from", "0", "--json", "--url", "sqlite:///new.db").document["sql"]

    with closing(sqlite3.connect("new.db")) as connection:
        connection.executescript(script)

    assert run("enqueue", "--queue", "email", "--payload", "x", "--url", "sqlite:///new.db?create=no").code == 0


def test_a_version_that_nobody_knows_is_refused(run: Run) -> None:
    done = run("migrate", "--sql", "--from", str(SCHEMA + 1), "--url", "sqlite:///new.db")

    assert done.code == 2
    assert f"0 (no schema) to {SCHEMA}" in done.err


@pytest.mark.parametrize("words", [[], ["--plan"], ["--status"], ["--sql"]])
def test_a_store_in_memory_has_nothing_to_migrate(run: Run, words: list[str]) -> None:
    done = run("migrate", *words, "--url", "memory://")

    assert (done.code, done.out) == (0, "this store has no schema: there is nothing to migrate\n")
    assert run("migrate", *words, "--json", "--url", "memory://").document["pending"] == []


@pytest.mark.usefixtures("old_file")
def test_the_store_of_an_app_is_brought_up(run: Run) -> None:
    Path("tasks.py").write_text('import windlass\napp = windlass.App("sqlite:///old.db")\n')

    assert run("migrate", "--app", "tasks:app").code == 0
    assert run("migrate", "--plan", "--app", "tasks:app").out == CURRENT


def test_an_app_with_a_store_of_its_own_has_nothing_to_migrate(run: Run) -> None:
    Path("tasks.py").write_text(
        "import windlass\nfrom windlass.connect import open_store\napp = windlass.App(open_store('memory://'))\n"
    )

    done = run("migrate", "--app", "tasks:app")

    assert (done.code, done.out) == (0, "this store has no schema: there is nothing to migrate\n")


@pytest.mark.parametrize(
    "words,said",
    [
        (["--plan", "--status"], "one at a time"),
        (["--status", "--sql"], "one at a time"),
        (["--from", "0"], "goes with --sql"),
        (["--sql", "--from", "-1"], "--from"),
        ([], "no store is named"),
    ],
)
def test_wrong_usage_is_told(run: Run, words: list[str], said: str) -> None:
    done = run("migrate", *words)

    assert done.code == 2
    assert said in done.err


@pytest.mark.usefixtures("old_file")
def test_a_url_that_forbids_it_is_obeyed(run: Run) -> None:
    done = run("migrate", "--url", "sqlite:///old.db?migrate=no")

    assert done.code == 5
    assert "schema version 1" in done.err
