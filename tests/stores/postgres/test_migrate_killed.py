"""F55: a migration that is killed at any statement goes on where it stopped."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

import asyncpg
import pytest

from proofs.children import eventually
from tests.postgres.cluster import cluster, schema_of
from tests.stores.postgres.migrating import (
    bring_up,
    connected,
    meta,
    options_of,
    relations,
    rows,
    run_migrator,
    sessions,
)
from tests.stores.postgres.next_migrations import ONE_MORE, TWO_MORE
from windlass.core.failpoint import arm, disarm
from windlass.stores.postgres.migrate import AFTER_MIGRATION, AFTER_STATEMENT, OURS, SCHEMA
from windlass.stores.postgres.script import statements
from windlass.testing.failpoints import Fault

STEPS = {number: len(list(statements(TWO_MORE.text(number)))) for number in range(1, SCHEMA + 3)}
"""How many statements each migration has."""
CUT_OFF = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)
VALID = """
select i.indisvalid from pg_index i join pg_class c on c.oid = i.indexrelid
where c.relname = 'windlass_colour' and c.relnamespace = '{}'::regnamespace
"""
BUILDERS = """
select pg_terminate_backend(l.pid, 5000) from pg_locks l join pg_class c on c.oid = l.relation
where c.relname = 'windlass_job' and c.relnamespace = to_regnamespace(quote_ident(%s))
    and l.mode = 'ShareUpdateExclusiveLock'
"""


@contextmanager
def cut_off(url: str, point: str, nth: int) -> Generator[None]:
    """Let the server end the session of the migration when it comes to `point` for the `nth` time."""

    def end() -> None:
        [pid] = sessions(url)
        cluster().run("select pg_terminate_backend(%s, 5000)", [pid])

    fault = Fault(point, end, lambda reached: reached == nth)
    arm(point, fault)
    try:
        yield
    finally:
        disarm(point)
        assert fault.fired == 1


async def test_a_making_that_is_cut_off_at_any_statement_leaves_nothing_and_is_made_anew(schema: str) -> None:
    for nth in range(1, STEPS[1] + 1):
        with pytest.raises(CUT_OFF), cut_off(schema, AFTER_STATEMENT, nth):
            await bring_up(schema, OURS)

        assert relations(schema) == set(), nth

    await bring_up(schema, OURS)
    assert meta(schema) == {"schema": str(SCHEMA)}


async def test_a_making_that_is_cut_off_between_migrations_goes_on_after_the_last_one(schema: str) -> None:
    with pytest.raises(CUT_OFF), cut_off(schema, AFTER_MIGRATION, 1):
        await bring_up(schema, TWO_MORE)
    assert meta(schema) == {"making": "1"}

    await bring_up(schema, TWO_MORE)

    assert_brought_up(schema)


@pytest.mark.parametrize("nth", range(1, STEPS[SCHEMA + 1] + STEPS[SCHEMA + 2] + 1))
async def test_a_migrator_that_is_killed_at_any_statement_is_taken_up_by_the_next(schema: str, nth: int) -> None:
    await bring_up(schema, OURS)
    before = relations(schema)

    await killed_migrator(schema, f"{AFTER_STATEMENT}=kill;nth={nth}")
    between = (meta(schema), relations(schema))
    await bring_up(schema, TWO_MORE)

    if nth <= STEPS[SCHEMA + 1]:
        assert between == ({"schema": str(SCHEMA)}, before)
    else:
        assert between[0] == {"schema": str(SCHEMA + 1)}
    assert_brought_up(schema)


async def test_a_migrator_that_is_killed_between_two_steps_is_taken_up_by_the_next(schema: str) -> None:
    await bring_up(schema, OURS)

    await killed_migrator(schema, f"{AFTER_MIGRATION}=kill;once")
    assert meta(schema) == {"schema": str(SCHEMA + 1)}
    await bring_up(schema, TWO_MORE)

    assert_brought_up(schema)


async def killed_migrator(url: str, failpoint: str) -> None:
    """Bring the schema up in a process of its own, which kills itself at the failpoint."""
    ended = await asyncio.to_thread(run_migrator, url, TWO_MORE, failpoint)
    assert ended.returncode == -9, ended.stderr.decode()
    # the server has to notice first
    assert await asyncio.to_thread(eventually, lambda: not sessions(url))


async def test_an_index_whose_building_was_cut_off_is_built_anew(schema: str) -> None:
    """A session that ends while it builds leaves an index that nobody may use."""
    await bring_up(schema, ONE_MORE)
    options = options_of(schema)
    # whoever has an older snapshot keeps the building waiting
    async with connected(options) as reader, reader.transaction(isolation="repeatable_read"):
        await reader.execute("select 1")
        building = asyncio.create_task(bring_up(schema, TWO_MORE))
        assert await asyncio.to_thread(eventually, lambda: "windlass_colour" in relations(schema))
        cluster().run(BUILDERS, [schema_of(schema)])
        with pytest.raises(CUT_OFF):
            await building
    assert rows(schema, VALID) == [(False,)]

    await bring_up(schema, TWO_MORE)

    assert_brought_up(schema)


def assert_brought_up(url: str) -> None:
    assert meta(url) == {"schema": str(SCHEMA + 2)}
    assert rows(url, "select n from {}.windlass_next") == [(1,)]
    assert rows(url, VALID) == [(True,)]
