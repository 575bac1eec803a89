"""The schema is made, brought up or refused; whoever is killed in the middle has done a whole step or none."""

import asyncio
import logging
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

import windlass
from tests.postgres.cluster import cluster, dsn_of, schema_of
from tests.stores.postgres.migrating import bring_up, connected, meta, options_of, relations, rows, run_migrator
from tests.stores.postgres.next_migrations import ONE_MORE, TWO_MORE, up_to
from windlass import SchemaMissing, SchemaTooNew, SchemaTooOld, StoreUnavailable
from windlass.core.errors import StoreCorrupt
from windlass.core.failpoint import arm, disarm
from windlass.core.migrating import Standing
from windlass.stores.postgres import migrate, migration_waits
from windlass.stores.postgres.migrate import OURS, SCHEMA, plan, prepare
from windlass.testing.failpoints import Fault

CURRENT = {"schema": str(SCHEMA)}
JOBS_OF_THE_FIRST_VERSION: LiteralString = """
insert into {0}.windlass_job (
    id, queue, payload, codec, priority, state, max_attempts, created_at, run_at, finished_at, unique_key, hold,
    hold_until
) values
    (
        '01900000-0000-7000-8000-000000000001', 'email', 'hello', 'raw', 1000, 'pending', 3, now(), now(), null,
        'k', 'queue||email|k', 'finished'
    ),
    (
        '01900000-0000-7000-8000-000000000002', 'email', 'no', 'raw', 1000, 'dead', 3, now(), now(), now(),
        null, null, null
    );
insert into {0}.windlass_hold (name, job_id, digest)
values ('queue||email|k', '01900000-0000-7000-8000-000000000001', '');
insert into {0}.windlass_count (minute, queue, kind, pending, dead, enqueued_total)
values ('infinity', 'email', '', 1, 1, 2);
"""
TURN = "pg_advisory_xact_lock(hashtextextended('windlass migrate ' || $1::text, 0))"


@pytest.fixture
def no_schema(schema: str) -> str:
    """The URL of a schema that is not there."""
    cluster().drop_schema(schema)
    return schema


async def test_a_schema_that_is_not_there_is_made_with_its_tables(no_schema: str) -> None:
    options = options_of(no_schema)

    async with connected(options) as connection:
        before = await plan(connection, options)
        await prepare(connection, options)
        after = await plan(connection, options)

    assert (before.found, before.pending) == (None, tuple(range(1, SCHEMA + 1)))
    assert (after.found, after.known, after.pending) == (SCHEMA, SCHEMA, ())
    assert meta(no_schema) == CURRENT


async def test_tables_are_made_in_a_schema_that_is_there_by_a_role_that_may_not_make_schemas(schema: str) -> None:
    role = f"{schema_of(schema)}_role"
    name, role_name = sql.Identifier(schema_of(schema)), sql.Identifier(role)
    cluster().run(sql.SQL("create role {} login").format(role_name))
    try:
        cluster().run(sql.SQL("grant create, usage on schema {} to {}").format(name, role_name))
        options = options_of(schema.replace("postgres@", f"{role}@"))

        async with connected(options) as connection:
            await prepare(connection, options)

        assert meta(schema) == CURRENT
    finally:
        cluster().run(sql.SQL("drop owned by {} cascade").format(role_name))
        cluster().run(sql.SQL("drop role {}").format(role_name))


async def test_nothing_is_made_where_the_url_forbids_it(no_schema: str) -> None:
    options = options_of(f"{no_schema}&create=no")

    async with connected(options) as connection:
        with pytest.raises(SchemaMissing, match=r"\?create=no forbids.*windlass migrate"):
            await prepare(connection, options)

    assert cluster().run("select to_regnamespace(quote_ident(%s))", [schema_of(no_schema)]) == [(None,)]


async def test_an_older_schema_is_refused_and_left_as_it_is(schema: str) -> None:
    await bring_up(schema, OURS)
    before = relations(schema)
    options = options_of(schema)

    async with connected(options) as connection:
        with pytest.raises(SchemaTooOld, match=rf"version {SCHEMA}, .* {SCHEMA + 2}: run `windlass migrate`"):
            await prepare(connection, options, migrations=TWO_MORE)

    assert (relations(schema), meta(schema)) == (before, CURRENT)


async def test_an_older_schema_is_brought_up_step_by_step_or_at_once(schema: str) -> None:
    await bring_up(schema, OURS)
    await bring_up(schema, ONE_MORE)
    assert meta(schema) == {"schema": str(SCHEMA + 1)}
    await bring_up(schema, TWO_MORE)

    assert meta(schema) == {"schema": str(SCHEMA + 2)}
    assert {"windlass_next", "windlass_colour"} <= relations(schema)
    assert rows(schema, "select n from {}.windlass_next") == [(1,)]


async def test_a_store_of_the_first_version_is_brought_up_with_all_that_is_in_it(schema: str) -> None:
    await bring_up(schema, up_to(1))
    rows(schema, JOBS_OF_THE_FIRST_VERSION)

    with pytest.raises(SchemaTooOld):
        await windlass.connect(schema).open()
    async with windlass.connect(f"{schema}&migrate=yes") as client:
        claim = await client.claim("email")
        again = await client.enqueue("email", unique=windlass.Unique("k", until="finished"))
        stats = await client.stats("email")
        page = await client.store.newest(windlass.JobFilter(), before=None, limit=10, most=10)
        moved = await client.store.moved()

    assert claim is not None
    assert (claim.job.payload, again.id, again.created) == (b"hello", claim.job.id, False)
    assert (stats.running, stats.dead, stats.totals.enqueued) == (1, 1, 2)
    assert [str(job.state) for job in page.jobs] == ["dead", "running"]
    assert moved is None


@pytest.mark.parametrize("options", ["", "&migrate=yes", "&migrate=yes&create=no"])
async def test_a_newer_schema_is_refused_and_left_as_it_is(schema: str, options: str) -> None:
    """A release before it neither works on it nor writes its own version over it."""
    await bring_up(schema, ONE_MORE)
    before = relations(schema)

    with pytest.raises(SchemaTooNew) as refused:
        await windlass.connect(schema + options).open()

    assert (refused.value.found, refused.value.known) == (SCHEMA + 1, SCHEMA)
    assert (relations(schema), meta(schema)) == (before, {"schema": str(SCHEMA + 1)})


async def test_a_current_schema_is_left_as_it_is(schema: str) -> None:
    await bring_up(schema, ONE_MORE)
    await bring_up(schema, ONE_MORE)

    assert rows(schema, "select n from {}.windlass_next") == [(1,)]


async def test_a_half_made_schema_is_none_and_is_made_to_its_end(schema: str) -> None:
    await half_make(schema)
    looking = options_of(f"{schema}&create=no")
    making = options_of(schema)

    async with connected(looking) as connection:
        standing = await plan(connection, looking, migrations=TWO_MORE)
        with pytest.raises(SchemaMissing):
            await prepare(connection, looking, migrations=TWO_MORE)
        # without ?migrate=yes: nobody has worked with it yet
        await prepare(connection, making, migrations=TWO_MORE)

    assert standing == Standing(looking.where, None, SCHEMA + 2, (SCHEMA + 2,))
    assert meta(schema) == {"schema": str(SCHEMA + 2)}


async def test_what_a_newer_release_has_half_made_is_not_finished_by_an_older_one(schema: str) -> None:
    await half_make(schema)

    with pytest.raises(SchemaTooNew):
        await bring_up(schema, ONE_MORE)
    with pytest.raises(SchemaTooNew):
        await bring_up(schema, OURS)


async def half_make(url: str) -> None:
    """Leave what a release leaves that is killed before its last migration."""
    await bring_up(url, ONE_MORE)
    rows(url, "update {}.windlass_meta set name = 'making' where name = 'schema'")


async def test_a_version_that_is_no_number_is_refused(schema: str) -> None:
    await bring_up(schema, OURS)
    rows(schema, "update {}.windlass_meta set value = 'two' where name = 'schema'")

    with pytest.raises(StoreCorrupt, match="no number"):
        await bring_up(schema, OURS)


@pytest.mark.parametrize("url", ["schema", "pooled_schema"])
async def test_of_ten_migrators_at_once_one_applies_and_the_others_wait(
    url: str, request: pytest.FixtureRequest, schema: str
) -> None:
    """Directly and through a pooler."""
    url = request.getfixturevalue(url)
    await asyncio.gather(*(bring_up(url, ONE_MORE) for _ in range(10)))

    assert meta(schema) == {"schema": str(SCHEMA + 1)}
    assert rows(schema, "select n from {}.windlass_next") == [(1,)]


async def test_ten_migrators_at_once_build_an_index_while_work_goes_on_without_a_deadlock(schema: str) -> None:
    await bring_up(schema, ONE_MORE)

    await asyncio.gather(*(bring_up(schema, TWO_MORE) for _ in range(10)))

    assert meta(schema) == {"schema": str(SCHEMA + 2)}
    assert "windlass_colour" in relations(schema)


@pytest.mark.parametrize("url", ["no_schema", "schema"])
async def test_whoever_has_waited_for_a_turn_finds_what_is_done(url: str, request: pytest.FixtureRequest) -> None:
    """A session remembers what it did not find; what another one has made since then counts."""
    url = request.getfixturevalue(url)
    others: list[int] = []
    with psycopg.connect(dsn_of(url)) as holder:
        holder.execute(f"select {TURN.replace('$1', '%s')}", [schema_of(url)])

        def let_another_do_it() -> None:
            if turns.reached == 3:
                holder.rollback()
                others.append(run_migrator(url, ONE_MORE).returncode)

        turns = Fault(migrate.BEFORE_TURN, let_another_do_it, lambda _: True)
        arm(turns.point, turns)
        options = options_of(url, migrate=True)
        async with connected(options, cached=True) as connection:
            await prepare(connection, options, migrations=ONE_MORE)
        disarm()

    assert others == [0]
    assert rows(url, "select n from {}.windlass_next") == [(1,)]


async def test_ten_stores_that_are_opened_at_once_make_one_schema(no_schema: str) -> None:
    async def use() -> None:
        async with windlass.connect(no_schema) as client:
            await client.enqueue("email")

    await asyncio.gather(*(use() for _ in range(10)))

    assert meta(no_schema) == CURRENT
    assert rows(no_schema, "select count(*) from {}.windlass_job") == [(10,)]


async def test_migrators_of_two_schemas_do_not_wait_for_each_other(schema: str) -> None:
    other = cluster().new_schema()
    try:
        async with connected(options_of(other)) as connection, connection.transaction():
            await connection.execute(f"select {TURN}", schema_of(other))

            await asyncio.wait_for(bring_up(schema, OURS), 30)
    finally:
        cluster().drop_schema(other)


async def test_whoever_waits_too_long_for_another_migrator_is_told(schema: str) -> None:
    options = options_of(schema)
    async with connected(options) as holder, connected(options) as connection, holder.transaction():
        await holder.execute(f"select {TURN}", schema_of(schema))

        with pytest.raises(StoreUnavailable, match="another process") as refused:
            await prepare(connection, options, patience=0.2)

    assert refused.value.retryable


@pytest.fixture
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT", "50ms")
    monkeypatch.setattr(migration_waits, "PAUSE", 0.01)


@pytest.mark.usefixtures("_hasty")
async def test_a_migration_that_cannot_have_its_lock_lets_others_pass_and_names_the_holder(
    schema: str, caplog: pytest.LogCaptureFixture
) -> None:
    await bring_up(schema, OURS)
    options = options_of(schema)
    async with connected(options) as holder, holder.transaction():
        await holder.execute("select set_config('application_name', 'report', false)")
        await holder.execute(f'lock table "{schema_of(schema)}".windlass_job in access share mode')
        pid = await holder.fetchval("select pg_backend_pid()")

        with caplog.at_level(logging.WARNING), pytest.raises(StoreUnavailable) as refused:
            await bring_up(schema, ONE_MORE)

    assert refused.value.retryable
    assert f"process {pid} (user postgres, application report, idle in transaction since 20" in str(refused.value)
    assert f"process {pid}" in caplog.text
    assert meta(schema) == CURRENT
    assert "windlass_next" not in relations(schema)


@pytest.mark.usefixtures("_hasty")
async def test_a_migration_goes_on_when_the_lock_is_free(schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await bring_up(schema, OURS)
    monkeypatch.setattr(migration_waits, "TRIES", 10_000)
    async with connected(options_of(schema)) as holder:
        transaction = holder.transaction()
        await transaction.start()
        await holder.execute(f'lock table "{schema_of(schema)}".windlass_job in access share mode')
        put_off = asyncio.Event()

        def tell(*_: object) -> None:
            put_off.set()

        monkeypatch.setattr(migration_waits.logger, "warning", tell)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(bring_up(schema, ONE_MORE))
            await put_off.wait()
            await transaction.rollback()

    assert meta(schema) == {"schema": str(SCHEMA + 1)}


async def test_an_index_cannot_be_built_through_a_pooler_and_that_is_said(pooled_schema: str, schema: str) -> None:
    await bring_up(pooled_schema, ONE_MORE)

    with pytest.raises(StoreUnavailable, match="through a pooler: run `windlass migrate` with a URL that leads"):
        await bring_up(pooled_schema, TWO_MORE)

    assert meta(schema) == {"schema": str(SCHEMA + 1)}


async def test_a_connection_is_as_it_was_after_a_migration(schema: str) -> None:
    options = options_of(schema, migrate=True)
    settings = "select array_agg(name || '=' || setting order by name) from pg_settings"
    async with connected(options) as connection:
        before = await connection.fetchval(settings)
        await prepare(connection, options, migrations=TWO_MORE)

        assert await connection.fetchval(settings) == before
        # others work in databases of their own on the same server
        locks = "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
        assert await connection.fetchval(locks) == 0


async def test_work_goes_on_through_migrations(schema: str) -> None:
    """A store of this release works on while a later one adds a column, a table and an index."""
    await bring_up(schema, OURS)
    worked, stop = asyncio.Event(), asyncio.Event()
    async with windlass.connect(schema) as client, asyncio.TaskGroup() as tasks:
        workers = [tasks.create_task(work(client, worked, stop)) for _ in range(3)]
        for known in (SCHEMA + 1, SCHEMA + 2):
            await worked.wait()
            await bring_up(schema, up_to(known))
            worked.clear()
        await worked.wait()
        stop.set()
        done = sum([await worker for worker in workers])
        stats = await client.stats("email")

    assert (stats.pending, stats.running, stats.totals.succeeded) == (0, 0, done)
    assert stats.totals.retried == stats.totals.rescued == 0
    assert meta(schema) == {"schema": str(SCHEMA + 2)}


async def work(client: windlass.Client, worked: asyncio.Event, stop: asyncio.Event) -> int:
    """Enqueue, claim and settle until it is enough."""
    done = 0
    while not stop.is_set():
        await client.enqueue("email", b"hello")
        # another may have taken it, and what that one leaves came after this one looked
        while (claim := await client.claim("email")) is None:  # noqa: ASYNC110 - the next look finds it
            await asyncio.sleep(0)
        await client.ack(claim)
        done += 1
        worked.set()
    return done
