"""The schema that all migrations make, dumped beside them; and every statement has a use."""

import re
from pathlib import Path

import pytest

import windlass
from tests.postgres.cluster import schema_of
from tests.stores.postgres.migrating import bring_up, connected, meta, options_of
from tests.stores.postgres.next_migrations import up_to
from tests.stores.postgres.schema_dump import dump
from windlass.stores import postgres
from windlass.stores.postgres.migrate import OURS, SCHEMA
from windlass.stores.postgres.script import is_outside, statements
from windlass.stores.postgres.statements import migration, new_migration
from windlass.stores.postgres.statements import statement as compiled

HERE = Path(postgres.__file__).parent


async def test_the_dumped_schema_is_what_the_migrations_make(schema: str) -> None:
    await bring_up(schema, up_to(1))
    await bring_up(schema, OURS)

    assert (HERE / "schema.sql").read_text() == dump(schema_of(schema))


async def test_a_new_store_has_the_dumped_schema(schema: str) -> None:
    async with windlass.connect(schema) as client:
        await client.enqueue("email")

    assert (HERE / "schema.sql").read_text() == dump(schema_of(schema))
    assert meta(schema) == {"schema": str(SCHEMA)}


def test_migrations_are_numbered_without_a_gap() -> None:
    files = sorted(path.name for path in (HERE / "migrations").iterdir() if path.suffix == ".sql")

    outside = [number for number in range(1, SCHEMA + 1) if is_outside(migration(number))]
    new = [f"{number:04}_new.sql" for number in outside]
    assert files == sorted([*(f"{number:04}.sql" for number in range(1, SCHEMA + 1)), *new])


def test_a_store_is_made_in_transactions_which_a_pooler_bears() -> None:
    assert [number for number in range(1, SCHEMA + 1) if is_outside(new_migration(number))] == []


@pytest.mark.parametrize("number", range(1, SCHEMA + 1))
def test_a_migration_names_no_schema_and_builds_indexes_of_old_tables_while_work_goes_on(number: int) -> None:
    text = migration(number)
    made = set(re.findall(r"create table (\w+)", text))
    for statement in statements(text):
        if found := re.search(r"\bcreate (?:unique )?index (concurrently )?(?:if not exists )?\w+ on (\w+)", statement):
            assert found[1] or found[2] in made, statement

    assert not re.search(r"\b(public|search_path)\b", text)
    assert is_outside(text) == ("concurrently" in text)


def test_every_statement_has_a_use() -> None:
    source = "".join(path.read_text() for path in HERE.rglob("*.py"))
    named = set(re.findall(r'"(\w+)"', source))

    parts = set(re.findall(r"\{(\w+)\}", "".join(path.read_text() for path in (HERE / "sql").rglob("*.sql"))))

    unused = [path.name for path in (HERE / "sql").glob("*.sql") if path.stem not in named]
    unused += [path.name for path in (HERE / "sql" / "parts").iterdir() if path.stem not in parts]

    assert unused == []


async def test_every_statement_can_be_prepared(schema: str) -> None:
    await bring_up(schema, OURS)
    options = options_of(schema)
    async with connected(options) as connection:
        await connection.execute(f'set search_path to "{options.schema}", pg_temp')
        for path in sorted((HERE / "sql").glob("*.sql")):
            for statement in statements(compiled(path.stem).text):
                try:
                    await connection.prepare(statement)
                except Exception as error:
                    error.add_note(path.name)
                    raise


def test_no_statement_reads_the_time_of_its_transaction() -> None:
    """What becomes ready is marked with the moment of its writing: decision 0013 rests on it."""
    stale = re.compile(r"\b(now\(\)|current_timestamp|transaction_timestamp|statement_timestamp|localtimestamp)")

    assert [path.name for path in (HERE / "sql").rglob("*.sql") if stale.search(path.read_text())] == []
