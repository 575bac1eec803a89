"""A migration that is killed at any statement goes on where it stopped, and keeps no turn."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, LiteralString

import asyncpg
import psycopg
import pytest
from psycopg import sql

from proofs.children import eventually
from tests.parent.given import clean_environment
from tests.postgres.cluster import cluster, dsn_of, schema_of
from tests.stores.postgres.migrating import (
    bring_up,
    connected,
    meta,
    options_of,
    relations,
    rows,
    run_migrator,
    sessions,
    stopped_migrator,
)
from tests.stores.postgres.next_migrations import ONE_MORE, TWO_MORE, up_to
from windlass.core.failpoint import arm, disarm
from windlass.stores.postgres import migration_waits
from windlass.stores.postgres.migrate import AFTER_MIGRATION, AFTER_STATEMENT, OURS, SCHEMA, Migrations
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
TURN_HOLDERS = """
with turn as (select hashtextextended(%s, 0) as key)
select pid from pg_locks, turn
where locktype = 'advisory' and granted and objsubid = 1
    and (classid::bigint << 32 | objid::bigint) = key
    and database = (select oid from pg_database where datname = current_database())
"""
BROKEN = """
select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
where c.relnamespace = '{}'::regnamespace and not i.indisvalid
"""
BLOCKED = "select pid from pg_stat_activity where %s = any(pg_blocking_pids(pid))"
AT_ONCE: Final = 2.0
SPARE: Final = 5.0
"""Seconds for a machine that has much else to do."""


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


def end_session(url: str, _: int) -> None:
    cluster().run("select pg_terminate_backend(pid, 5000) from unnest(%s::int[]) as pid", [turn_holders(url)])


def kill_process(_: str, pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def turn_holders(url: str) -> list[int]:
    """Return the processes of the server that have the turn to bring this schema up."""
    return [pid for (pid,) in cluster().run(TURN_HOLDERS, [f"windlass migrate {schema_of(url)}"])]


@pytest.mark.parametrize("end", [end_session, kill_process])
@pytest.mark.parametrize(
    "step",
    [(None, OURS, 3), (OURS, ONE_MORE, 1), (ONE_MORE, TWO_MORE, 1)],
    ids=["the making", "in a transaction", "outside of one"],
)
async def test_others_go_on_at_once_when_who_has_the_turn_ends(
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
    step: tuple[Migrations | None, Migrations, int],
    end: Callable[[str, int], None],
) -> None:
    """A lock is never held by who is gone."""
    before, wanted, nth = step
    if before is not None:
        await bring_up(schema, before)
    waiting = asyncio.Semaphore(0)

    def tell(*_: object) -> None:
        waiting.release()

    monkeypatch.setattr(migration_waits.logger, "info", tell)
    with stopped_migrator(schema, wanted, AFTER_STATEMENT, nth) as pid:
        assert len(turn_holders(schema)) == 1
        others = [asyncio.create_task(bring_up(schema, wanted)) for _ in range(3)]
        for _ in others:
            await waiting.acquire()

        began = time.monotonic()
        end(schema, pid)
        await asyncio.gather(*others)
        took = time.monotonic() - began

    assert took < AT_ONCE + SPARE
    assert meta(schema) == {"schema": str(wanted.known)}
    assert turn_holders(schema) == []


@pytest.mark.parametrize(
    "version, in_the_way",
    [(0, "create table {}.windlass_job ()"), (1, "create table {}.windlass_parcel ()"), (2, "select 1")],
    ids=["the making", "in a transaction", "outside of one"],
)
async def test_a_migrator_that_is_asked_to_end_does_and_a_second_one_completes_it(
    schema: str, tmp_path: Path, version: int, in_the_way: LiteralString
) -> None:
    """SIGTERM, while it waits for somebody else who goes on holding what it needs."""
    if version:
        await bring_up(schema, up_to(version))
    before = meta(schema)
    with psycopg.connect(dsn_of(schema)) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute(sql.SQL(in_the_way).format(sql.Identifier(schema_of(schema))))

        def blocked() -> list[tuple[int]]:
            return cluster().run(BLOCKED, [holder.info.backend_pid])

        with command(tmp_path, schema) as migrator:
            assert eventually(blocked)

            sent_at = time.monotonic()
            migrator.terminate()

            assert migrator.wait(AT_ONCE + SPARE) == -signal.SIGTERM
            assert eventually(lambda: not blocked(), AT_ONCE + SPARE)
            assert time.monotonic() - sent_at < AT_ONCE + SPARE
        assert meta(schema) == before
        assert turn_holders(schema) == []
        holder.rollback()
    with command(tmp_path, schema) as again:
        assert again.wait(60) == 0

    assert meta(schema) == {"schema": str(SCHEMA)}
    assert rows(schema, BROKEN) == []


def command(folder: Path, url: str) -> "subprocess.Popen[bytes]":
    """Start `windlass migrate`."""
    words = [sys.executable, "-m", "windlass", "migrate", "--url", url]
    return subprocess.Popen(words, cwd=folder, env=clean_environment(), stdout=subprocess.DEVNULL)


def assert_brought_up(url: str) -> None:
    assert meta(url) == {"schema": str(SCHEMA + 2)}
    assert rows(url, "select n from {}.windlass_next") == [(1,)]
    assert rows(url, VALID) == [(True,)]
