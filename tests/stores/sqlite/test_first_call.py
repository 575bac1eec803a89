"""The first call of a process, in a transaction of the caller that holds the write lock: it never waits for itself."""

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import django
import pytest
from django.conf import settings
from django.db import connections, transaction
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import windlass
from proofs.children import Children, eventually
from proofs.ledger import Ledger
from tests.stores.sqlite.test_turns import turn_of_another
from windlass import (
    InvalidValue,
    NewJob,
    SchemaMissing,
    SchemaTooNew,
    SchemaTooOld,
    State,
    StoreCorrupt,
    StoreUnavailable,
)
from windlass.stores.sqlite import database
from windlass.stores.sqlite.database import SCHEMA, Options

TABLE: Final = "create table if not exists mine (name text)"
INSERT: Final = "insert into mine values ('with the job')"
FILES: Final = ("new", "of the program", "of the program, with a log", "a store")
WAYS: Final = ("sqlite3", "core", "orm", "django")
ASYNC_WAYS: Final = ("async core", "async orm")


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for himself gives up in a second."""
    for module in ("database", "joined", "writer", "turns"):
        monkeypatch.setattr(f"windlass.stores.sqlite.{module}.GIVE_UP_AFTER", 1.0)


@pytest.fixture(params=FILES)
def file(request: pytest.FixtureRequest, path: Path, url: str) -> str:
    """What is at the path before the first call."""
    kind: str = request.param
    if kind.startswith("of the program"):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(TABLE)
            if kind.endswith("log"):
                connection.execute("pragma journal_mode = wal")
    if kind == "a store":
        make_store(url)
    return kind


def make_store(url: str) -> None:
    with windlass.connect_sync(url) as client:
        client.open()


@contextmanager
def by_sqlite3(path: Path, *, commit: bool = True) -> Generator[sqlite3.Connection]:
    """A transaction that has the write lock."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("begin immediate")
        connection.execute(TABLE)
        connection.execute(INSERT)
        yield connection
        connection.execute("commit" if commit else "rollback")


@contextmanager
def by_core(path: Path) -> Generator[object]:
    with create_engine(f"sqlite:///{path}", poolclass=NullPool).begin() as connection:
        connection.execute(text(TABLE))
        connection.execute(text(INSERT))
        yield connection


@contextmanager
def by_orm(path: Path) -> Generator[object]:
    with Session(create_engine(f"sqlite:///{path}", poolclass=NullPool)) as session, session.begin():
        session.execute(text(TABLE))
        session.execute(text(INSERT))
        session.flush()
        yield session


@contextmanager
def by_django(path: Path) -> Generator[object]:
    if not settings.configured:
        settings.configure(DATABASES={}, USE_TZ=False)
        django.setup()
    alias = str(path)
    connections.databases[alias] = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": alias,
        "ATOMIC_REQUESTS": False,
        "AUTOCOMMIT": True,
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": False,
        "TIME_ZONE": None,
        "OPTIONS": {"transaction_mode": "IMMEDIATE"},
        "TEST": {"MIRROR": None},
    }
    try:
        with transaction.atomic(using=alias):
            with connections[alias].cursor() as cursor:
                cursor.execute(TABLE)
                cursor.execute(INSERT)
            yield connections[alias]
    finally:
        connections[alias].close()
        del connections.databases[alias]


@asynccontextmanager
async def by_async_core(path: Path) -> AsyncGenerator[object]:
    async with create_async_engine(f"sqlite+aiosqlite:///{path}", poolclass=NullPool).begin() as connection:
        await connection.execute(text(TABLE))
        await connection.execute(text(INSERT))
        yield connection


@asynccontextmanager
async def by_async_orm(path: Path) -> AsyncGenerator[object]:
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}", poolclass=NullPool)
    async with AsyncSession(engine) as session, session.begin():
        await session.execute(text(TABLE))
        await session.execute(text(INSERT))
        yield session


BLOCKING: Final[dict[str, Callable[[Path], AbstractContextManager[object]]]] = {
    "sqlite3": by_sqlite3,
    "core": by_core,
    "orm": by_orm,
    "django": by_django,
}


@asynccontextmanager
async def by(way: str, path: Path) -> AsyncGenerator[object]:
    if way in ASYNC_WAYS:
        async with (by_async_core if way == "async core" else by_async_orm)(path) as connection:
            yield connection
    else:
        with BLOCKING[way](path) as connection:
            yield connection


def mine_of(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("select name from mine").fetchall()


def journal_mode_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("pragma journal_mode").fetchone()[0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("file")
def test_the_blocking_client_enqueues_at_once(path: Path, url: str, way: str) -> None:
    client = windlass.connect_sync(url)
    with BLOCKING[way](path) as connection:
        client.enqueue("email", b"one", connection=connection)
        client.enqueue_many([NewJob("email", b"two")], connection=connection)
    pending = [job.payload for job in client.jobs()]
    client.close()

    assert journal_mode_of(path) == "wal"
    assert pending == [b"one", b"two"]
    assert mine_of(path) == [("with the job",)]


@pytest.mark.parametrize("way", [way for way in WAYS if way != "django"] + list(ASYNC_WAYS))
@pytest.mark.usefixtures("file")
async def test_the_client_enqueues_at_once(path: Path, url: str, way: str) -> None:
    client = windlass.connect(url)
    async with by(way, path) as connection:
        await client.enqueue("email", b"one", connection=connection)
        await client.enqueue("email", b"two", connection=connection)
    pending = [job.payload for job in await client.jobs()]
    await client.close()

    assert pending == [b"one", b"two"]
    assert mine_of(path) == [("with the job",)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("file")
def test_an_app_enqueues_at_once(path: Path, url: str, way: str) -> None:
    app = windlass.App(url)

    @app.job
    def send(number: int) -> None: ...

    with BLOCKING[way](path) as connection:
        handle = app.enqueue_sync(send.call(7), connection=connection)

    job = handle.job()
    app.close_sync()
    assert job is not None
    assert job.state is State.PENDING


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("file")
def test_services_that_run_beside_the_client_start_with_a_later_call(path: Path, url: str, way: str) -> None:
    client = windlass.connect_sync(url, services=True)
    with BLOCKING[way](path) as connection:
        client.enqueue("email", connection=connection)
    pending = client.stats().pending
    client.close()

    assert pending == 1


@pytest.mark.usefixtures("file")
async def test_what_is_rolled_back_leaves_nothing(path: Path, url: str) -> None:
    before = tables_of(path)
    client = windlass.connect(url)
    with by_sqlite3(path, commit=False) as connection:
        await client.enqueue("email", b"rolled back", connection=connection)
    after = tables_of(path)

    with by_sqlite3(path) as connection:
        await client.enqueue("email", b"kept", connection=connection)

    assert after == before
    assert [job.payload for job in await client.jobs()] == [b"kept"]
    await client.close()


def tables_of(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute("select name from sqlite_master")}


async def test_a_claim_of_another_client_is_settled_at_once(path: Path, url: str) -> None:
    async with windlass.connect(url) as claiming:
        await claiming.enqueue("email")
        claim = await claiming.claim("email")
        assert claim is not None
    client = windlass.connect(url)

    with by_sqlite3(path) as connection:
        await client.ack(claim, "sent", connection=connection)

    job = await client.get(claim.job.id)
    await client.close()
    assert job is not None
    assert (job.state, job.result) == (State.SUCCEEDED, b'"sent"')


async def test_a_store_opens_while_another_connection_writes(path: Path, url: str) -> None:
    make_store(url)

    with by_sqlite3(path):
        async with windlass.connect(url) as client, windlass.connect(url) as second:
            assert (await client.stats()).pending == (await second.stats()).pending == 0


async def test_a_store_opens_while_a_stopped_process_has_the_turn(path: Path, url: str) -> None:
    make_store(url)
    client = windlass.connect(url)

    with turn_of_another(path):
        pending = (await client.stats()).pending

    await client.close()
    assert pending == 0


async def test_a_file_is_made_a_store_when_another_writer_has_ended(path: Path, url: str) -> None:
    client = windlass.connect(url)
    with by_sqlite3(path):
        opening = asyncio.create_task(client.open())
        assert await asyncio.to_thread(eventually, path.with_name("jobs.db-turn").exists)

    await opening

    assert (await client.stats()).pending == 0
    await client.close()
    assert mine_of(path) == [("with the job",)]


async def test_a_file_that_cannot_be_made_a_store_says_who_is_in_the_way(
    path: Path, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(database, "GIVE_UP_AFTER", 0.1)
    monkeypatch.setattr(database, "WARN_AFTER", 0.05)
    client = windlass.connect(url)

    with (
        by_sqlite3(path),
        pytest.raises(StoreUnavailable, match=r"your own that was left open.*connection=") as refused,
    ):
        await client.open()

    assert refused.value.retryable
    assert "to be made a store" in caplog.text


async def test_an_opening_that_waits_for_a_transaction_does_not_keep_it_from_its_end(path: Path, url: str) -> None:
    client = windlass.connect(url)
    with by_sqlite3(path) as connection:
        looking = asyncio.create_task(client.stats())
        await asyncio.sleep(0)
        await client.enqueue("email", connection=connection)

    assert (await looking).pending == 1
    await client.close()


async def enqueue_in_transactions(ledger: Ledger, url: str, path: Path) -> None:
    client = windlass.connect(url)
    ledger.write("started")
    for _ in range(5):
        with by_sqlite3(path) as connection:
            await client.enqueue("email", connection=connection)
    await client.close()


@pytest.mark.slow
def test_several_processes_begin_at_once_on_a_new_file(path: Path, url: str) -> None:
    began = time.monotonic()
    with Children(path.with_name("ledger")) as children:
        for number in range(4):
            children.start(f"process {number}", enqueue_in_transactions, url, path)
        failed = children.wait(60)

    with windlass.connect_sync(url) as client:
        stats = client.stats()
    assert failed == []
    assert (stats.pending, stats.totals.enqueued, len(mine_of(path))) == (20, 20, 20)
    # they wait by the patience of the product, not of this test
    assert time.monotonic() - began < 25


@pytest.mark.parametrize("version, error", [(99, SchemaTooNew), (1, SchemaTooOld)])
async def test_another_schema_is_refused_at_once(path: Path, url: str, version: int, error: type[Exception]) -> None:
    make_store(url)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update windlass_meta set value = ? where name = 'schema'", (version,))
    client = windlass.connect(url)

    with by_sqlite3(path) as connection, pytest.raises(error):
        await client.enqueue("email", connection=connection)

    assert mine_of(path) == [("with the job",)]


async def test_an_older_schema_is_brought_up_in_the_transaction(
    path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(database, "SCHEMA", 1)
        await (opened := windlass.connect(url)).open()
        await opened.close()
    client = windlass.connect(f"{url}?migrate=yes")
    with by_sqlite3(path, commit=False) as connection:
        await client.enqueue("email", b"rolled back", connection=connection)
    after_rollback = schema_of(path)

    with by_sqlite3(path) as connection:
        await client.enqueue("email", b"kept", connection=connection)

    assert (after_rollback, schema_of(path)) == (1, SCHEMA)
    assert [job.payload for job in await client.jobs()] == [b"kept"]
    await client.close()


def schema_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return database.schema_of(connection)


async def test_create_no_makes_nothing_in_the_transaction(path: Path, url: str) -> None:
    client = windlass.connect(f"{url}?create=no")

    with by_sqlite3(path) as connection, pytest.raises(SchemaMissing, match="create=no forbids"):
        await client.enqueue("email", connection=connection)

    assert tables_of(path) == {"mine"}


async def test_an_emptied_store_is_not_made_anew_in_a_transaction(path: Path, url: str) -> None:
    make_store(url)
    os.truncate(path, 0)
    client = windlass.connect(url)

    with by_sqlite3(path, commit=False) as connection, pytest.raises(StoreCorrupt, match="a store has been here"):
        await client.enqueue("email", connection=connection)

    assert path.stat().st_size == 0


async def test_a_connection_to_another_file_is_refused_and_no_file_is_made(path: Path, url: str) -> None:
    client = windlass.connect(url)
    other = path.with_name("other.db")

    with by_sqlite3(other) as connection, pytest.raises(InvalidValue, match=r"other\.db.* the store is"):
        await client.enqueue("email", connection=connection)

    assert [each.name for each in path.parent.iterdir()] == ["other.db"]
    assert tables_of(other) == {"mine"}


async def test_a_closed_client_refuses(path: Path, url: str) -> None:
    client = windlass.connect(url)
    await client.close()

    with by_sqlite3(path) as connection, pytest.raises(windlass.ClientClosed):
        await client.enqueue("email", connection=connection)

    assert tables_of(path) == {"mine"}


async def test_a_transaction_that_has_read_nothing_waits_for_a_writer_who_commits(path: Path, url: str) -> None:
    """Django begins so, without `transaction_mode`."""
    client = windlass.connect(url)
    await client.open()
    with closing(sqlite3.connect(path, isolation_level=None)) as mine:
        mine.execute("begin")
        with by_sqlite3(path):
            waiting = asyncio.create_task(client.enqueue("email", connection=mine))
            await asyncio.sleep(0.1)
            assert not waiting.done()
        await waiting
        mine.execute("commit")

    assert (await client.stats()).pending == 1
    await client.close()


@pytest.mark.parametrize("isolation_level", [None, "DEFERRED"])
async def test_a_call_that_waits_for_another_writer_does_not_hold_up_the_event_loop(
    path: Path, url: str, isolation_level: Literal["DEFERRED"] | None
) -> None:
    client = windlass.connect(url)
    await client.open()
    with closing(sqlite3.connect(path, timeout=5, isolation_level=isolation_level)) as mine:
        if isolation_level is None:
            mine.execute("begin")
        began = time.monotonic()
        with by_sqlite3(path, commit=False):
            waiting = asyncio.create_task(client.enqueue("email", connection=mine))
            await asyncio.sleep(0.2)
        await waiting
        took = time.monotonic() - began
        mine.commit()

        assert mine.execute("pragma busy_timeout").fetchone() == (5000,)
    await client.close()
    assert took < 3


def test_the_umask_is_not_changed_while_a_lock_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    umask = os.umask

    def noted(mask: int) -> int:
        calls.append(mask)
        return umask(mask)

    monkeypatch.setattr(database, "GIVE_UP_AFTER", 5.0)
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("begin exclusive")
        monkeypatch.setattr(os, "umask", noted)
        connecting = threading.Thread(target=lambda: database.connect(path, Options()).close())
        connecting.start()
        restored = eventually(lambda: len(calls) == 2, 2)
        waits = connecting.is_alive()
        holder.execute("rollback")
        connecting.join()

    assert restored
    assert waits
