"""`connection=`: a job in the caller's own transaction, by every way to a connection, with its edges."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, NullPool, create_engine, event, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import windlass
from proofs.children import Children, eventually
from proofs.ledger import Ledger, Tail
from proofs.readers import sqlite as reader
from windlass import (
    ClaimLost,
    Client,
    Completed,
    InvalidValue,
    NewJob,
    State,
    StoreFull,
    StoreUnavailable,
    Unique,
    UniqueConflict,
)

Transact = Callable[[Client, str, bool], Awaitable[None]]
"""Write a row of one's own and enqueue a job, both named alike, and commit or roll back."""
INSERT = "insert into mine (name) values (:name)"
WAYS = ["sqlite3", "core", "orm", "async core", "async orm"]


class Base(DeclarativeBase):
    pass


class Mine(Base):
    __tablename__ = "mine"
    name: Mapped[str] = mapped_column(primary_key=True)


@pytest.fixture(autouse=True)
def table(client: Client, path: Path) -> None:  # noqa: ARG001 - it makes the file
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table mine (name text primary key)")


@pytest.fixture
def mine(client: Client, path: Path) -> Iterator[sqlite3.Connection]:  # noqa: ARG001 - it makes the file
    with closing(sqlite3.connect(path)) as connection:
        yield connection


@pytest.fixture(params=WAYS)
async def transact(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[Transact]:
    match request.param:
        case "sqlite3":
            with closing(sqlite3.connect(path)) as connection:
                yield by_sqlite3(connection)
        case "core" | "orm":
            engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
            yield by_core(engine) if request.param == "core" else by_orm(engine)
        case _:
            slow = create_async_engine(f"sqlite+aiosqlite:///{path}", poolclass=NullPool)
            yield by_async_core(slow) if request.param == "async core" else by_async_orm(slow)
            await slow.dispose()


def by_sqlite3(connection: sqlite3.Connection) -> Transact:
    async def transact(client: Client, name: str, commit: bool) -> None:  # noqa: FBT001 - one of the two ends
        connection.execute(INSERT, {"name": name})
        await client.enqueue("email", name.encode(), connection=connection)
        connection.commit() if commit else connection.rollback()

    return transact


def by_core(engine: Any) -> Transact:  # noqa: ANN401 - the same below for both kinds of engine
    async def transact(client: Client, name: str, commit: bool) -> None:  # noqa: FBT001
        with engine.connect() as connection:
            connection.execute(text(INSERT), {"name": name})
            await client.enqueue("email", name.encode(), connection=connection)
            connection.commit() if commit else connection.rollback()

    return transact


def by_orm(engine: Any) -> Transact:  # noqa: ANN401
    async def transact(client: Client, name: str, commit: bool) -> None:  # noqa: FBT001
        with Session(engine) as session:
            session.add(Mine(name=name))
            await client.enqueue("email", name.encode(), connection=session)
            session.commit() if commit else session.rollback()

    return transact


def by_async_core(engine: Any) -> Transact:  # noqa: ANN401
    async def transact(client: Client, name: str, commit: bool) -> None:  # noqa: FBT001
        async with engine.connect() as connection:
            await connection.execute(text(INSERT), {"name": name})
            await client.enqueue("email", name.encode(), connection=connection)
            await (connection.commit() if commit else connection.rollback())

    return transact


def by_async_orm(engine: Any) -> Transact:  # noqa: ANN401
    async def transact(client: Client, name: str, commit: bool) -> None:  # noqa: FBT001
        async with AsyncSession(engine) as session:
            session.add(Mine(name=name))
            await client.enqueue("email", name.encode(), connection=session)
            await (session.commit() if commit else session.rollback())

    return transact


async def test_jobs_exist_if_and_only_if_the_transaction_commits(
    client: Client, path: Path, transact: Transact
) -> None:
    for number in range(50):
        await transact(client, f"committed {number}", True)  # noqa: FBT003
        await transact(client, f"rolled back {number}", False)  # noqa: FBT003

    expected = {f"committed {number}" for number in range(50)}
    assert {row.payload.decode() for row in reader.jobs(path).values()} == expected
    assert {row[0] for row in reader.dump(path)["mine"]} == expected
    assert (await client.stats("email")).totals.enqueued == 50
    assert reader.counts_off(path) == []


async def consume(ledger: Ledger, url: str) -> None:
    """Claim what comes, as news tell of it and never by the clock."""
    async with windlass.connect(url, poll_interval=600) as client:
        ledger.write("started")
        while (claim := await client.claim("email", wait=60)) is not None and claim.job.payload != b"stop":
            await client.ack(claim)
            ledger.write("effect", claim.job.id, note=claim.job.payload.decode())


async def test_a_commit_wakes_a_waiter_in_another_process(
    client: Client, url: str, path: Path, transact: Transact
) -> None:
    ledger = path.with_name("ledger")
    tail = Tail(ledger)

    def seen(count: int) -> bool:
        tail.look()
        return len(tail.entries) >= count

    with Children(ledger) as children:
        children.start("consumer", consume, url)
        assert await asyncio.to_thread(eventually, lambda: seen(1))
        for number in range(5):
            await transact(client, f"rolled back {number}", False)  # noqa: FBT003
            await transact(client, f"committed {number}", True)  # noqa: FBT003
            assert await asyncio.to_thread(eventually, lambda: seen(number + 2), 5)  # noqa: B023 - called at once
        await client.enqueue("email", b"stop")
        assert await asyncio.to_thread(children.wait, 30) == []

    tail.look()
    assert Counter(entry.note for entry in tail.entries if entry.event == "effect") == Counter(
        f"committed {number}" for number in range(5)
    )


def test_the_blocking_client_writes_in_a_transaction_of_its_callers_thread(url: str, mine: sqlite3.Connection) -> None:
    with windlass.connect_sync(url) as client:
        client.enqueue("email", b"rolled back", connection=mine)
        mine.rollback()
        client.enqueue("email", b"committed", connection=mine)
        mine.commit()
        jobs = [job.payload for job in client.jobs()]

    assert jobs == [b"committed"]


async def test_a_connection_to_another_file_is_refused(client: Client, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        with pytest.raises(InvalidValue, match=r"other\.db.* the store is"):
            await client.enqueue("email", connection=other)
        tables = other.execute("select count(*) from sqlite_master").fetchone()

    assert tables == (0,)


async def test_a_connection_to_memory_is_refused(client: Client) -> None:
    with closing(sqlite3.connect(":memory:")) as other, pytest.raises(InvalidValue, match="a database in memory"):
        await client.enqueue("email", connection=other)


async def test_a_connection_by_a_link_is_the_same_file(client: Client, path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    with closing(sqlite3.connect(link)) as connection:
        await client.enqueue("email", connection=connection)
        connection.commit()

    assert (await client.stats("email")).pending == 1


async def test_without_an_open_transaction_an_autocommit_connection_is_refused(client: Client, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with pytest.raises(InvalidValue, match="execute BEGIN IMMEDIATE first"):
            await client.enqueue("email", connection=connection)
        connection.execute("begin immediate")
        await client.enqueue("email", connection=connection)
        connection.execute("commit")

    assert (await client.stats("email")).pending == 1


async def test_a_transaction_that_began_by_reading_and_was_overtaken_says_begin_immediate(
    client: Client, mine: sqlite3.Connection
) -> None:
    mine.execute("begin")
    mine.execute("select count(*) from mine").fetchone()
    await client.enqueue("email", b"overtakes")

    with pytest.raises(StoreUnavailable, match="BEGIN IMMEDIATE") as caught:
        await client.enqueue("email", b"too late", connection=mine)
    mine.rollback()

    assert caught.value.retryable
    assert [job.payload for job in await client.jobs()] == [b"overtakes"]


async def test_a_transaction_that_began_by_reading_can_write_while_nobody_else_did(
    client: Client, mine: sqlite3.Connection
) -> None:
    mine.execute("begin")
    mine.execute("select count(*) from mine").fetchone()

    await client.enqueue("email", connection=mine)
    mine.commit()

    assert (await client.stats("email")).pending == 1


async def test_the_connection_is_kept_from_checkpointing_by_itself(client: Client, mine: sqlite3.Connection) -> None:
    before = mine.execute("pragma wal_autocheckpoint").fetchone()

    await client.enqueue("email", connection=mine)
    mine.commit()

    assert before != (0,)
    assert mine.execute("pragma wal_autocheckpoint").fetchone() == (0,)


async def test_a_claim_is_settled_with_the_transaction(client: Client, mine: sqlite3.Connection) -> None:
    await client.enqueue("email")
    claim = await client.claim("email")
    assert claim is not None
    await client.ack(claim, connection=mine)
    mine.rollback()
    after_rollback = await client.get(claim.job.id)

    mine.execute(INSERT, {"name": "effect"})
    await client.ack(claim, "sent", then=[NewJob("next")], kv={"key": b"value"}, connection=mine)
    mine.commit()

    after_commit = await client.get(claim.job.id)
    assert after_rollback is not None
    assert after_rollback.state is State.RUNNING
    assert after_commit is not None
    assert (after_commit.state, after_commit.result) == (State.SUCCEEDED, b'"sent"')
    assert (await client.stats("next")).pending == 1
    assert await client.kv.get("key") == b"value"


@pytest.mark.parametrize("verb", ["nack", "dead_letter"])
async def test_a_failure_is_settled_with_the_transaction(client: Client, mine: sqlite3.Connection, verb: str) -> None:
    await client.enqueue("email", max_attempts=1)
    claim = await client.claim("email")
    assert claim is not None

    await getattr(client, verb)(claim, "broken", connection=mine)
    mine.commit()

    job = await client.get(claim.job.id)
    assert job is not None
    assert (job.state, job.last_error) == (State.DEAD, "broken")


async def test_whoever_waits_for_a_job_hears_of_its_end_in_a_transaction(
    client: Client, mine: sqlite3.Connection
) -> None:
    done = await client.enqueue("email")
    claim = await client.claim("email")
    assert claim is not None
    waiting = asyncio.create_task(client.wait(done.id, timeout=30))
    await asyncio.sleep(0)
    await client.ack(claim, connection=mine)
    mine.commit()

    assert isinstance(await asyncio.wait_for(waiting, 5), Completed)


async def test_a_stale_claim_is_refused_and_the_transaction_stays_usable(
    client: Client, mine: sqlite3.Connection
) -> None:
    await client.enqueue("email")
    claim = await client.claim("email", lease=0)
    assert claim is not None
    await client.rescue()
    mine.execute(INSERT, {"name": "first"})

    with pytest.raises(ClaimLost):
        await client.ack(claim, connection=mine)
    mine.execute(INSERT, {"name": "second"})
    mine.commit()

    assert mine.execute("select name from mine order by name").fetchall() == [("first",), ("second",)]
    assert (await client.stats("email")).pending == 1


async def test_a_conflict_leaves_the_transaction_usable(client: Client, mine: sqlite3.Connection) -> None:
    unique = Unique("key", on_conflict="raise")
    await client.enqueue("email", b"holds", unique=unique)
    mine.execute(INSERT, {"name": "first"})

    with pytest.raises(UniqueConflict):
        await client.enqueue_many([NewJob("email", b"a"), NewJob("email", b"b", unique=unique)], connection=mine)
    mine.execute(INSERT, {"name": "second"})
    await client.enqueue("email", b"beside", connection=mine)
    mine.commit()

    assert mine.execute("select name from mine order by name").fetchall() == [("first",), ("second",)]
    assert [job.payload for job in await client.jobs()] == [b"holds", b"beside"]
    assert (await client.stats("email")).pending == 2


def by_name(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


@pytest.mark.parametrize("row_factory", [None, sqlite3.Row, by_name])
@pytest.mark.parametrize("text_factory", [str, bytes, repr], ids=["str", "bytes", "own"])
async def test_how_the_caller_reads_rows_disturbs_nothing(
    client: Client,
    mine: sqlite3.Connection,
    row_factory: Any,  # noqa: ANN401 - as sqlite3 takes them
    text_factory: Any,  # noqa: ANN401
) -> None:
    await client.enqueue("email", b"first", unique="key")
    mine.row_factory = row_factory
    mine.text_factory = text_factory

    claim = await client.claim("email")
    assert claim is not None
    await client.nack(claim, "again", delay=0, connection=mine)
    repeated = await client.enqueue("email", id=claim.job.id, connection=mine)
    unique = await client.enqueue("email", b"second", unique=Unique("key", until="finished"), connection=mine)
    kept = await client.enqueue("email", b"third", unique=Unique("key", until="finished"), connection=mine)
    mine.commit()

    assert (repeated.created, unique.created, kept) == (False, True, windlass.Enqueued(unique.id, False))  # noqa: FBT003
    assert (mine.row_factory, mine.text_factory) == (row_factory, text_factory)
    assert (await client.stats("email")).pending == 2


async def test_a_full_disk_says_that_sqlite_has_undone_the_whole_transaction(
    client: Client, mine: sqlite3.Connection
) -> None:
    mine.execute(INSERT, {"name": "undone"})
    pages = mine.execute("pragma page_count").fetchone()[0]
    mine.execute(f"pragma max_page_count = {pages + 2}")

    with pytest.raises(StoreFull, match=r"free disk space.*rolled back your whole transaction: begin it again"):
        await client.enqueue("email", b"x" * 100_000, connection=mine)
    was_open = mine.in_transaction
    mine.execute(INSERT, {"name": "kept"})
    await client.enqueue("email", b"small", connection=mine)
    mine.commit()

    assert not was_open
    assert mine.execute("select name from mine").fetchall() == [("kept",)]
    assert [job.payload for job in await client.jobs()] == [b"small"]


async def test_savepoints_of_the_caller_work_around_it(client: Client, mine: sqlite3.Connection) -> None:
    mine.execute("begin immediate")
    await client.enqueue("email", b"outer", connection=mine)
    mine.execute("savepoint inner_one")
    await client.enqueue("email", b"inner", connection=mine)
    mine.execute("rollback to inner_one")
    mine.commit()

    assert [job.payload for job in await client.jobs()] == [b"outer"]
    assert (await client.stats("email")).pending == 1


def no_begin_by_the_driver(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None


def begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("begin immediate")


async def test_sqlalchemy_with_its_own_begin_works(client: Client, path: Path) -> None:
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)

    event.listen(engine, "connect", no_begin_by_the_driver)
    event.listen(engine, "begin", begin_immediate)

    with Session(engine) as session, session.begin():
        session.add(Mine(name="with the job"))
        await client.enqueue("email", connection=session)

    assert (await client.stats("email")).pending == 1
