"""What the page on migrations says of roles: its rights are enough, and a role without them is told so."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import psycopg
import pytest
from psycopg import sql

import windlass
from tests.postgres.cluster import cluster, dsn_of, schema_of
from tests.postgres.rights import GRANT_ON_TABLES, GRANT_ONCE, MAKE_ROLES, SHOW_SESSIONS, renamed
from tests.postgres.roles import as_role
from tests.stores.postgres.migrating import bring_up, meta
from tests.stores.postgres.next_migrations import ONE_MORE
from windlass import Client, NewJob, StoreUnavailable, Unique
from windlass.client.checkup import checkup
from windlass.stores import postgres
from windlass.stores.postgres.migrate import OURS, SCHEMA
from windlass.stores.postgres.script import statements
from windlass.stores.postgres.statements import statement as statement_of

STATEMENTS = Path(postgres.__file__).parent / "sql"
OF_MIGRATIONS = {"forget_making"}
PARAMETER = re.compile(r"\$(\d+)")
COMMENT = re.compile(r"--[^\n]*")
PLANNED = re.compile(r"\s*(select|with|insert|update|delete)\b")


@dataclass(frozen=True)
class Roles:
    """The URLs of a schema for the two roles of the page, and what the page calls them."""

    migrate: str
    run: str
    names: dict[str, str]

    def do(self, block: str) -> None:
        """Run a block of the page as an administrator, with the names of this test."""
        with psycopg.connect(dsn_of(cluster().url), autocommit=True) as administrator:
            administrator.execute(renamed(block, {**self.names, "shop": administrator.info.dbname}).encode())


@pytest.fixture
def roles(schema: str) -> Iterator[Roles]:
    """Two roles as the page makes them, and nothing migrated yet."""
    cluster().drop_schema(schema)
    names = {name: f"{schema_of(schema)}_{name}" for name in ("windlass_migrate", "windlass_run")}
    migrate, run = (as_role(schema, role) for role in names.values())
    there = Roles(migrate, run, {**names, "jobs": schema_of(schema)})
    there.do(MAKE_ROLES)
    yield there
    for role in map(sql.Identifier, names.values()):
        cluster().run(sql.SQL("drop owned by {} cascade").format(role))
        cluster().run(sql.SQL("drop role {}").format(role))


async def test_a_role_that_cannot_make_tables_works_on_those_that_another_made(roles: Roles) -> None:
    await bring_up(roles.migrate, OURS)
    roles.do(GRANT_ON_TABLES)

    async with windlass.connect(f"{roles.run}&create=no") as client:
        await do_everything(client)


async def do_everything(client: Client) -> None:
    """Do what clients, servers and people do, so that every table is written to."""
    woken = asyncio.create_task(client.claim("email", wait=60))
    await client.enqueue("email", b"first")
    first = await woken
    assert first is not None
    await client.renew(first)
    await client.ack(first, result=b"done")
    await client.enqueue_many([NewJob("email", delay=0.001), NewJob("email", delay=3600)])
    await client.enqueue("email", unique=Unique("k", until="finished"))
    [claim] = await client.claim_many("email", wait=60)
    await client.nack(claim, "not now", delay=3600)
    await client.pause("email")
    assert await client.claim("email") is None
    await client.resume("email")
    await client.promote()
    await client.rescue(force=True)
    async with client.lock("l", 5):
        await client.kv.put("k", b"v")
    await client.schedules.put("s", 60, NewJob("email"))
    await client.schedules.run_now("s")
    assert await client.prune(keep_succeeded=0) == 1
    assert (await client.stats("email")).totals.enqueued == 5
    assert [each for each in await checkup(client.store) if each.level == "error"] == []


async def test_every_statement_is_allowed_to_the_role_that_works(roles: Roles) -> None:
    await bring_up(roles.migrate, OURS)
    roles.do(GRANT_ON_TABLES)

    with psycopg.connect(dsn_of(roles.run), autocommit=True) as connection:
        connection.execute("select set_config('search_path', %s, false)", [f'"{schema_of(roles.run)}", pg_temp'])
        for path in sorted(path for path in STATEMENTS.glob("*.sql") if path.stem not in OF_MIGRATIONS):
            for statement in statements(statement_of(path.stem).text):
                try:
                    check_allowed(connection, COMMENT.sub("", statement))
                except psycopg.Error as error:
                    error.add_note(path.name)
                    raise


def check_allowed(connection: "psycopg.Connection", statement: str) -> None:
    """Have a statement planned, which looks at the rights; what has no plan and locks a table is done."""
    if PLANNED.match(statement):
        nulls = ", ".join(["null"] * max(map(int, PARAMETER.findall(statement)), default=0))
        connection.execute(f"prepare this as {statement}".encode())
        connection.execute(f"explain execute this{f'({nulls})' if nulls else ''}".encode())
        connection.execute("deallocate this")
    elif statement.strip().startswith("lock table"):
        with connection.transaction():
            connection.execute(statement.encode())


async def test_rights_that_were_granted_once_hold_for_later_tables(roles: Roles) -> None:
    roles.do(GRANT_ONCE)
    await bring_up(roles.migrate, OURS)
    async with windlass.connect(f"{roles.run}&create=no") as client:
        await do_everything(client)

    await bring_up(roles.migrate, ONE_MORE)

    with psycopg.connect(dsn_of(roles.run)) as connection:
        table = sql.Identifier(schema_of(roles.run), "windlass_next")
        assert connection.execute(sql.SQL("select n from {}").format(table)).fetchall() == [(1,)]


async def test_a_role_without_the_rights_on_tables_is_told_so_and_works_when_it_has_them(roles: Roles) -> None:
    await bring_up(roles.migrate, OURS)
    with pytest.raises(StoreUnavailable, match=r"permission denied for table windlass_meta.*migrate-a-store\.md"):
        await windlass.connect(f"{roles.run}&create=no").open()

    roles.do(GRANT_ON_TABLES)

    async with windlass.connect(f"{roles.run}&create=no") as client:
        await do_everything(client)


async def test_the_role_that_works_makes_nothing(roles: Roles) -> None:
    with pytest.raises(StoreUnavailable, match="permission denied"):
        await windlass.connect(roles.run).open()
    with pytest.raises(windlass.SchemaMissing):
        await windlass.connect(f"{roles.run}&create=no").open()

    assert meta(roles.run) == {}


async def test_a_role_that_may_not_use_the_schema_makes_no_temporary_tables_in_its_place(roles: Roles) -> None:
    """The search path ends with pg_temp, where every role may make tables unless it was forbidden."""
    roles.do("revoke usage on schema jobs from windlass_run; grant temporary on database shop to windlass_run")

    for url in (roles.run, f"{roles.run}&create=no"):
        with pytest.raises(StoreUnavailable, match="permission denied for schema"):
            await windlass.connect(url).open()


async def test_the_role_that_works_cannot_bring_the_schema_up(roles: Roles) -> None:
    await bring_up(roles.migrate, OURS)

    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await bring_up(roles.run, ONE_MORE)

    assert meta(roles.run) == {"schema": str(SCHEMA)}


async def test_the_right_to_see_other_sessions_can_be_given(roles: Roles) -> None:
    roles.do(SHOW_SESSIONS)

    rows = cluster().run("select pg_has_role(%s, 'pg_read_all_stats', 'member')", [roles.names["windlass_run"]])

    assert rows == [(True,)]


async def test_what_somebody_puts_into_another_schema_is_not_taken_for_ours(schema: str) -> None:
    """The search path is the schema of the URL, and then our own temporary tables."""
    decoys = ("windlass_meta (name text, value text)", "windlass_job (seq bigint)", "windlass_gate (nothing integer)")
    try:
        for decoy in decoys:
            cluster().run(sql.SQL(f"create table public.{decoy}"))
        cluster().run("insert into public.windlass_meta values ('schema', '99')")

        async with windlass.connect(schema) as client:
            await do_everything(client)

        assert cluster().run("select value from public.windlass_meta") == [("99",)]
        assert cluster().run("select count(*) from public.windlass_job") == [(0,)]
    finally:
        for decoy in decoys:
            cluster().run(sql.SQL(f"drop table public.{decoy.partition(' ')[0]}"))
