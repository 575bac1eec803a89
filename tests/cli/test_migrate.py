import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from windlass.stores.sqlite.database import SCHEMA, statements
from windlass.stores.sqlite.statements import migration


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
    refused = run("schedules", "--url", "sqlite:///old.db")

    assert refused.code == 5
    assert "windlass migrate" in refused.err


@pytest.mark.usefixtures("old_file")
def test_an_old_store_is_brought_up_and_works_then(run: Run) -> None:
    done = run("migrate", "--url", "sqlite:///old.db")

    assert (done.code, done.out) == (0, f"the schema is current: version {SCHEMA} of {SCHEMA}\n")
    assert run("enqueue", "--queue", "email", "--payload", "x", "--url", "sqlite:///old.db").code == 0


@pytest.mark.usefixtures("old_file")
def test_a_current_store_is_left_as_it_is(run: Run) -> None:
    run("migrate", "--url", "sqlite:///old.db")

    again = run("migrate", "--json", "--url", "sqlite:///old.db")

    assert again.document == {"schema": f"version {SCHEMA} of {SCHEMA}"}


def test_a_store_that_is_not_there_is_not_made(run: Run) -> None:
    done = run("migrate", "--url", "sqlite:///none.db")

    assert done.code == 5
    assert not Path("none.db").exists()


@pytest.mark.usefixtures("old_file")
def test_a_url_that_forbids_it_is_obeyed(run: Run) -> None:
    done = run("migrate", "--url", "sqlite:///old.db?migrate=no")

    assert done.code == 5
    assert "schema version 1" in done.err
