"""The transactions that the store lends: what their users may do, and what is left of it."""

import asyncio
from contextlib import suppress
from typing import Any, Final

import asyncpg
import pytest
from psycopg import sql

import windlass
from proofs.children import eventually
from tests.postgres.cluster import cluster, dsn_of, schema_of
from windlass import Client, InvalidValue, StoreUnavailable
from windlass.core.store import Store


class Oops(Exception):
    """What a user fails by."""


async def run_in(store: Store, *statements: str, fall: bool = False, kill: bool = False) -> int:
    """Run statements in a lent transaction; return the process that serves it."""
    async with store.transaction() as connection:
        for statement in statements:
            await connection.execute(statement)
        pid: int = connection.get_server_pid()
        if fall:
            raise Oops
        if kill:
            cluster().run("select pg_terminate_backend(%s, 5000)", [pid])
        return pid


def names(mine: str) -> list[str]:
    schema, _, table = mine.partition(".")
    rows = cluster().run(sql.SQL("select name from {} order by name").format(sql.Identifier(schema, table)))
    return [name for (name,) in rows]


async def test_whoever_has_one_does_not_keep_the_store_from_its_work(schema: str) -> None:
    async with windlass.connect(f"{schema}&connections=1") as client:
        async with client.store.transaction():
            await asyncio.wait_for(client.enqueue("email"), 10)

        assert (await client.stats("email")).pending == 1


async def test_one_that_was_rolled_back_since_a_statement_failed_is_not_taken_for_committed(
    client: Client, mine: str
) -> None:
    async def careless() -> None:
        async with client.store.transaction() as connection:
            await connection.execute(f"insert into {mine} values ('lost')")
            with suppress(asyncpg.PostgresError):
                await connection.execute("select 1 / 0")

    with pytest.raises(InvalidValue, match="rolled back and not committed"):
        await careless()
    await run_in(client.store, f"insert into {mine} values ('kept')")

    assert names(mine) == ["kept"]


PLANNED: Final = (
    "plan_cache_mode",
    "jit",
    "max_parallel_workers_per_gather",
    "enable_seqscan",
    "enable_bitmapscan",
    "statement_timeout",
    "lock_timeout",
)


@pytest.fixture(params=["direct", "transaction", "pgbouncer"])
def near_or_pooled(request: pytest.FixtureRequest, schema: str) -> str:
    """A store by itself, one that takes itself to be behind a pooler, and one behind PgBouncer in transaction mode."""
    if request.param == "pgbouncer":
        url: str = request.getfixturevalue("pooled_schema")
        return url
    return schema if request.param == "direct" else f"{schema}&pooler=transaction"


async def settings_of(connection: Any) -> dict[str, str]:  # noqa: ANN401 - the pool's is another type
    return {name: await connection.fetchval("select current_setting($1)", name) for name in PLANNED}


async def test_it_is_planned_and_timed_as_the_users_own_transactions_are(near_or_pooled: str) -> None:
    own = await asyncpg.connect(dsn_of(near_or_pooled), statement_cache_size=0)
    wanted = await settings_of(own)
    await own.close()

    async with windlass.connect(near_or_pooled) as client, client.store.transaction() as connection:
        found = await settings_of(connection)

    assert found == wanted


async def test_what_the_role_has_set_holds_there_too(schema: str) -> None:
    given = "-cjit%3Doff%20-cenable_seqscan%3Doff%20-cplan_cache_mode%3Dforce_custom_plan%20-cstatement_timeout%3D7s"
    async with windlass.connect(f"{schema}&options={given}") as client, client.store.transaction() as connection:
        found = await settings_of(connection)

    assert (found["jit"], found["enable_seqscan"]) == ("off", "off")
    assert (found["plan_cache_mode"], found["statement_timeout"]) == ("force_custom_plan", "7s")


async def test_a_setting_that_the_user_puts_back_is_none_of_ours(client: Client) -> None:
    async with client.store.transaction() as connection:
        await connection.execute("set plan_cache_mode to default; set jit to default; reset statement_timeout")
        found = await settings_of(connection)

    assert (found["plan_cache_mode"], found["statement_timeout"]) == ("auto", "0")


async def test_the_tables_of_the_store_are_found_first_and_the_users_own_behind_them(
    client: Client, schema: str
) -> None:
    async with client.store.transaction() as connection:
        path = await connection.fetchval("select current_setting('search_path')")

    assert path == f'"{schema_of(schema)}", pg_temp, "$user", public'


async def test_what_a_user_leaves_behind_is_gone_for_the_next_one(schema: str) -> None:
    async with windlass.connect(f"{schema}&connections=1") as client:
        first = await run_in(
            client.store,
            "set session application_name = 'spoilt'",
            "set session search_path = pg_catalog",
            "create temporary table mine (n integer)",
            "select pg_advisory_lock(42)",
        )
        with pytest.raises(Oops):
            await run_in(client.store, "listen somewhere", fall=True)
        async with client.store.transaction() as connection:
            second = connection.get_server_pid()
            name = await connection.fetchval("select current_setting('application_name')")
            left = await connection.fetchval("select to_regclass('pg_temp.mine')")
            channels = await connection.fetch("select pg_listening_channels()")
            path = await connection.fetchval("select current_schema()")
    locks = cluster().run("select 1 from pg_locks where locktype = 'advisory' and objid = 42")

    assert first == second
    assert (name, left, channels, path, locks) == ("windlass", None, [], schema_of(schema), [])


async def test_what_was_for_the_transaction_alone_is_gone_behind_a_pooler_too(near_or_pooled: str) -> None:
    async with windlass.connect(f"{near_or_pooled}&connections=1") as client:
        await run_in(
            client.store,
            "set local work_mem = '123kB'",
            "set local app.tenant = 'spoilt'",
            "create temporary table mine (n integer) on commit drop",
            "select pg_advisory_xact_lock(43)",
        )
        async with client.store.transaction() as connection:
            memory = await connection.fetchval("select current_setting('work_mem')")
            tenant = await connection.fetchval("select current_setting('app.tenant', true)")
            left = await connection.fetchval("select to_regclass('pg_temp.mine')")
    locks = cluster().run("select 1 from pg_locks where locktype = 'advisory' and objid = 43")

    assert (memory == "123kB", tenant or None, left, locks) == (False, None, None, [])


async def test_a_user_who_commits_is_told_that_it_is_not_theirs(client: Client) -> None:
    with pytest.raises(InvalidValue, match="committed at the end of its block"):
        await run_in(client.store, "commit")

    await run_in(client.store, "select 1")


async def test_a_constraint_that_is_looked_at_in_the_end_is_the_users_own_error(client: Client, mine: str) -> None:
    with pytest.raises(asyncpg.UniqueViolationError):
        await run_in(
            client.store,
            f"alter table {mine} drop constraint mine_pkey",
            f"alter table {mine} add constraint once unique (name) deferrable initially deferred",
            f"insert into {mine} values ('twice'), ('twice')",
        )

    assert names(mine) == []


async def test_a_connection_that_ends_in_the_middle_rolls_back_and_the_next_one_is_another(
    client: Client, mine: str
) -> None:
    with pytest.raises(StoreUnavailable):
        await run_in(client.store, f"insert into {mine} values ('lost')", kill=True)

    await run_in(client.store, f"insert into {mine} values ('kept')")

    assert names(mine) == ["kept"]


def sleeps() -> bool:
    return cluster().run("select 1 from pg_stat_activity where query = 'select pg_sleep(60)'") != []


async def test_a_connection_that_ended_while_nobody_used_it_is_not_met_by_the_next_user(schema: str) -> None:
    async with windlass.connect(f"{schema}&connections=1") as client:
        first = await run_in(client.store, "select 1")
        # nothing else has run in this event loop since: it does not know yet
        cluster().run("select pg_terminate_backend(%s, 5000)", [first])

        assert await run_in(client.store, "select 1") != first


async def test_a_statement_that_is_cancelled_leaves_nothing_behind(schema: str, mine: str) -> None:
    async with windlass.connect(f"{schema}&connections=1") as client:
        waiting = asyncio.create_task(
            run_in(client.store, f"insert into {mine} values ('undone')", "select pg_sleep(60)")
        )
        assert await asyncio.to_thread(eventually, sleeps)
        waiting.cancel()
        await asyncio.wait({waiting})

        await asyncio.wait_for(run_in(client.store, f"insert into {mine} values ('kept')"), 10)

    assert waiting.cancelled()
    assert names(mine) == ["kept"]


async def test_a_user_who_keeps_the_connection_cannot_use_it_after_the_end(client: Client) -> None:
    async with client.store.transaction() as connection:
        kept = connection

    async with client.store.transaction():
        with pytest.raises(asyncpg.InterfaceError, match="has been released"):
            await kept.execute("select 1")


async def test_to_wait_for_a_turn_has_no_deadline(schema: str) -> None:
    async with windlass.connect(f"{schema}&connections=1&timeout=1") as client:
        async with client.store.transaction():
            waiting = asyncio.create_task(run_in(client.store, "select 1"))
            done, _ = await asyncio.wait({waiting}, timeout=1.3)

        assert not done
        assert await asyncio.wait_for(waiting, 10) > 0


async def test_many_that_want_one_at_once_go_one_after_the_other(schema: str, mine: str) -> None:
    async with windlass.connect(f"{schema}&connections=2") as client:
        await asyncio.gather(
            *(run_in(client.store, f"insert into {mine} values ('{number:02}')") for number in range(20))
        )

    assert len(names(mine)) == 20
