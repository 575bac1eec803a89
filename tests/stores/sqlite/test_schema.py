"""The schema that all migrations make, dumped beside them; and every statement has a use."""

import re
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

import windlass
from tests.stores.sqlite.parameters import some_parameters
from windlass import Client, SchemaTooOld, State
from windlass.core.failpoint import arm, disarm
from windlass.core.moving import Moved
from windlass.core.retention import KEEP_ALL
from windlass.core.schedule import FireOutcome, Firing
from windlass.core.stats import TimingCount
from windlass.stores import sqlite
from windlass.stores.sqlite import database
from windlass.stores.sqlite.database import SCHEMA
from windlass.stores.sqlite.statements import migration, sql
from windlass.testing.conformance.given import a_job, a_schedule, written
from windlass.testing.failpoints import Fault, Faulted

AWAY = Moved("redis://other", "move-1")
START = datetime(2026, 1, 1, tzinfo=UTC)
HERE = Path(sqlite.__file__).parent
# Tables first, each followed by its indexes.
DUMP = """
select sql from sqlite_master where sql is not null order by tbl_name, type desc, name
"""


def dump(connection: sqlite3.Connection) -> str:
    statements = [f"{row[0]};" for row in connection.execute(DUMP)]
    return "-- What all migrations make, in one piece: to be read, not to be run.\n\n" + "\n\n".join(statements) + "\n"


def test_the_dumped_schema_is_what_the_migrations_make(migrated: sqlite3.Connection) -> None:
    assert (HERE / "schema.sql").read_text() == dump(migrated)


async def test_a_new_store_has_the_dumped_schema(client: Client, path: Path) -> None:
    await client.enqueue("email")

    with closing(sqlite3.connect(path)) as connection:
        assert (HERE / "schema.sql").read_text() == dump(connection)
        assert connection.execute("select value from windlass_meta where name = 'schema'").fetchone() == (SCHEMA,)


def test_migrations_are_numbered_without_a_gap() -> None:
    files = sorted(path.name for path in (HERE / "migrations").iterdir() if path.suffix == ".sql")

    assert files == [f"{number:04}.sql" for number in range(1, SCHEMA + 1)]


def test_every_statement_has_a_use() -> None:
    source = "".join(path.read_text() for path in HERE.rglob("*.py"))
    named = set(re.findall(r'"(\w+)"', source))
    parts = set(re.findall(r"\{(\w+)\}", "".join(path.read_text() for path in (HERE / "sql").glob("*.sql"))))

    unused = [path.name for path in (HERE / "sql").glob("*.sql") if path.stem not in named]
    unused += [path.name for path in (HERE / "sql" / "parts").iterdir() if path.stem not in parts]

    assert unused == []


def test_every_statement_can_be_prepared(migrated: sqlite3.Connection) -> None:
    for path in (HERE / "sql").glob("*.sql"):
        statement = sql(path.stem)

        assert migrated.execute(f"explain {statement}", some_parameters(statement)).fetchall(), path.name


async def test_a_making_that_fails_leaves_a_file_that_can_be_made_anew(path: Path, url: str) -> None:
    def fail() -> None:
        message = "in the middle"
        raise Faulted(message)

    arm("sqlite.migrate.after_statement", fail)
    with pytest.raises(Faulted):
        async with windlass.connect(url):
            pass
    disarm()
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("select count(*) from sqlite_master").fetchone()

    async with windlass.connect(url) as client:
        await client.enqueue("email")

    assert tables == (0,)


async def test_a_making_that_fails_between_two_migrations_leaves_nothing_of_the_first(path: Path, url: str) -> None:
    def fail() -> None:
        message = "in the second"
        raise Faulted(message)

    first = len(list(database.statements(migration(1))))
    fault = Fault("sqlite.migrate.after_statement", fail, lambda reached: reached > first)
    arm(fault.point, fault)
    with pytest.raises(Faulted):
        async with windlass.connect(url):
            pass
    disarm()

    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select count(*) from sqlite_master").fetchone() == (0,)
    assert fault.reached == first + 1


@asynccontextmanager
async def of_schema(version: int, url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Client]:
    """Open a store as the release did whose schema this was."""
    with monkeypatch.context() as older:
        older.setattr(database, "SCHEMA", version)
        client = windlass.connect(url)
        await client.open()
    async with client:
        yield client


@pytest.mark.parametrize("end", ["ack", "cancel", "prune", "delete"])
async def test_no_delivery_is_left_of_a_job_that_was_retried_before_its_first_claim(
    path: Path, url: str, end: str
) -> None:
    async with windlass.connect(url, keep_succeeded=0, keep_cancelled=0 if end == "cancel" else 60) as client:
        done = await client.enqueue("email")
        await client.store.cancel([done.id], KEEP_ALL)
        assert await client.retry(done.id) == 1
        if end == "ack":
            [claim] = await client.claim_many("email")
            await client.ack(claim)
        else:
            await client.cancel(done.id)
        if end == "prune":
            await client.prune(keep_cancelled=0)
        if end == "delete":
            await client.delete(done.id)

    left = "select 1 from windlass_job union all select 1 from windlass_delivery"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(left).fetchall() == []


async def test_a_store_of_the_first_schema_is_refused_without_a_migration(
    path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with of_schema(1, url, monkeypatch) as client:
        await client.enqueue("email")
    before = path.read_bytes()

    with pytest.raises(SchemaTooOld, match=r"version 1.*\?migrate=yes"):
        async with windlass.connect(url):
            pass

    assert path.read_bytes() == before


@pytest.mark.parametrize("version", range(1, SCHEMA))
async def test_a_store_of_an_older_schema_is_brought_up_with_its_jobs(
    path: Path, url: str, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    async with of_schema(version, url, monkeypatch) as client:
        done = await client.enqueue("email", b"hello")
        await client.enqueue("email", delay=60)
        running = await client.claim("email", lease=3_600)
        assert running is not None
        await client.kv.put("k", b"v")

    async with windlass.connect(f"{url}?migrate=yes") as client:
        await client.ack(running)
        job = await client.get(done.id)
        stats = await client.stats("email")
        value = await client.kv.get("k")
        schedule = await written(client.store, a_schedule("s", START))
        fired = await client.store.fire(Firing("s", schedule.revision, [a_job("email")], schedule.next_run_at))
        await client.store.write_timings([TimingCount(START, "email", "", "ran", 1, 1)])
        await client.store.set_moved(AWAY)
        packed = await client.store.pack("email", limit=10)

    assert (job and (job.state, job.payload), value) == ((State.SUCCEEDED, b"hello"), b"v")
    assert (stats.scheduled, stats.pending, stats.running, stats.succeeded) == (1, 0, 0, 1)
    assert (schedule.revision, fired.outcome) == (1, FireOutcome.DONE)
    assert [job.state for job in packed.jobs] == [State.SCHEDULED, State.PENDING]
    with closing(sqlite3.connect(path)) as connection:
        assert (HERE / "schema.sql").read_text() == dump(connection)


async def test_a_process_of_the_previous_release_goes_on_while_others_bring_the_store_up(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with of_schema(SCHEMA - 1, url, monkeypatch) as older:
        first = await older.enqueue("email")
        async with windlass.connect(f"{url}?migrate=yes") as newer:
            second = await newer.enqueue("email")
            claims = [await older.claim("email"), await newer.claim("email")]
            third = await older.enqueue("email")

            assert [claim and claim.job.id for claim in claims] == [first.id, second.id]
            for client, claim in zip([newer, older], claims, strict=True):
                assert claim is not None
                await client.ack(claim)
            assert (await newer.stats("email")).totals.succeeded == 2
            assert (await older.get(third.id)) == await newer.get(third.id)


def next_migration(number: int) -> str:
    assert number == SCHEMA + 1
    return "create table windlass_next (n integer) strict;\n"


async def test_an_older_store_is_brought_up_by_a_migration(
    path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with windlass.connect(url) as client:
        await client.enqueue("email")
    monkeypatch.setattr(database, "SCHEMA", SCHEMA + 1)
    monkeypatch.setattr(database, "migration", next_migration)

    async with windlass.connect(f"{url}?migrate=yes") as client:
        pending = (await client.stats("email")).pending

    with closing(sqlite3.connect(path)) as connection:
        version = connection.execute("select value from windlass_meta where name = 'schema'").fetchone()
        assert connection.execute("select count(*) from windlass_next").fetchone() == (0,)
    assert (pending, version) == (1, (SCHEMA + 1,))
