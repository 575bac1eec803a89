"""`store.transaction()`: a turn like every writer's, a connection that is clean each time, ended by its block alone."""

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from windlass import InvalidValue, StoreUnavailable
from windlass.borrow import borrow
from windlass.connect import open_store
from windlass.core.errors import ClientClosed
from windlass.core.requests import ClaimRequest, Settled
from windlass.core.store import Store
from windlass.core.topics import ENDS, PAUSES
from windlass.stores.sqlite.database import Options, connect_as
from windlass.stores.sqlite.lent import LentConnection
from windlass.testing.conformance.fixtures import listening, soon
from windlass.testing.conformance.given import a_job, claim_one, settlement


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    store = open_store(url)
    await store.open()
    async with store.transaction() as connection:
        connection.execute("create table mine (name text)")
    yield store
    await store.close()


@contextmanager
def turn_of_another(path: Path) -> Generator[None, None, None]:
    """Have the turn, as a process would that was stopped while it had it."""
    door = os.open(f"{path}-turn", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(door, fcntl.LOCK_EX)
        yield
    finally:
        os.close(door)


async def names(store: Store) -> list[str]:
    async with store.transaction() as connection:
        return [row[0] for row in connection.execute("select name from mine")]


async def write(store: Store, then: Callable[[sqlite3.Connection], object]) -> None:
    """Write a row, and do something else before the block ends."""
    async with store.transaction() as connection:
        connection.execute("insert into mine values ('undone')")
        then(connection)


async def test_what_was_written_is_committed_with_the_block(store: Store) -> None:
    async with store.transaction() as connection:
        connection.execute("insert into mine values ('kept')")

    with pytest.raises(ZeroDivisionError):
        await write(store, lambda _: 1 // 0)

    assert await names(store) == ["kept"]


@pytest.mark.parametrize("call", ["commit", "rollback", "close"])
async def test_the_transaction_is_not_ended_by_its_user(store: Store, call: str) -> None:
    with pytest.raises(InvalidValue, match="at the end of its block"):
        await write(store, lambda connection: getattr(connection, call)())

    assert await names(store) == []


@pytest.mark.parametrize("statement", ["commit", "end", "rollback", "begin", "COMMIT TRANSACTION"])
async def test_no_statement_ends_the_transaction(store: Store, statement: str) -> None:
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        await write(store, lambda connection: connection.execute(statement))

    assert await names(store) == []


async def test_neither_a_script_nor_a_with_block_of_the_connection_ends_the_transaction(store: Store) -> None:
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        await write(store, lambda connection: connection.executescript("select 1; select 2"))
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        await write(store, lambda connection: connection.__enter__().__exit__(None, None, None))

    assert await names(store) == []


async def test_savepoints_may_be_used(store: Store) -> None:
    async with store.transaction() as connection:
        connection.execute("insert into mine values ('kept')")
        connection.execute("savepoint here")
        connection.execute("insert into mine values ('undone')")
        connection.execute("rollback to here")

    assert await names(store) == ["kept"]


async def test_each_user_gets_a_connection_as_if_it_were_new(store: Store) -> None:
    async with store.transaction() as connection:
        connection.row_factory = sqlite3.Row
        connection.text_factory = bytes
        connection.execute("create temp table leftover (n)")
        connection.execute("pragma query_only = on")

    async with store.transaction() as connection:
        connection.execute("create temp table leftover (n)")
        connection.execute("insert into mine values ('ü')")
        assert connection.execute("select name from mine").fetchall() == [("ü",)]


async def test_a_look_that_was_not_finished_holds_nothing_back(store: Store) -> None:
    async with store.transaction() as connection:
        connection.executemany("insert into mine values (?)", [("a",), ("b",)])
        unfinished = connection.execute("select name from mine")
        assert unfinished.fetchone() == ("a",)
    await store.enqueue([a_job()])

    assert await names(store) == ["a", "b"]
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        unfinished.fetchone()


async def test_a_moment_that_is_still_held_is_let_go_with_its_connection(store: Store) -> None:
    async with store.transaction() as connection:
        connection.executemany("insert into mine values (?)", [("a",), ("b",)])
    async with store.transaction() as connection:
        unfinished = sqlite3.Connection.execute(connection, "select name from mine")
        assert unfinished.fetchone() == ("a",)
    await store.enqueue([a_job()])

    assert await soon(names(store)) == ["a", "b"]


async def test_a_constraint_that_is_broken_at_the_commit_is_told_as_it_is(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def strict(factory: type[LentConnection], path: Path, options: Options) -> LentConnection:
        connection = connect_as(factory, path, options)
        connection.execute("pragma foreign_keys = on")
        return connection

    monkeypatch.setattr("windlass.stores.sqlite.lender.connect_as", strict)
    async with store.transaction() as connection:
        connection.execute("create table parent (id integer primary key)")
        connection.execute("create table child (parent integer references parent deferrable initially deferred)")
        connection.execute("create temp table used_up (n)")

    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        await write(store, lambda connection: connection.execute("insert into child values (1)"))

    assert await names(store) == []


async def test_a_connection_may_be_used_from_any_thread(store: Store) -> None:
    async with store.transaction() as connection:
        await asyncio.to_thread(connection.execute, "insert into mine values ('kept')")

    assert await names(store) == ["kept"]


async def test_two_doors_take_turns(store: Store) -> None:
    other = store.sibling()
    await other.open()

    async def transact(door: Store, name: str) -> None:
        for number in range(20):
            async with door.transaction() as connection:
                connection.execute("insert into mine values (?)", (f"{name}{number}",))
                await asyncio.sleep(0)

    await soon(asyncio.gather(transact(store, "a"), transact(other, "b"), *[store.enqueue([a_job()]) for _ in "1234"]))
    await other.close()

    assert sorted(await names(store)) == sorted(f"{name}{number}" for name in "ab" for number in range(20))


async def test_a_turn_of_another_never_holds_back_the_event_loop(store: Store, path: Path) -> None:
    with turn_of_another(path):
        waiting = asyncio.create_task(names(store))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()

    assert await soon(waiting) == []


async def test_a_transaction_that_cannot_begin_is_logged_and_then_given_up(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("windlass.stores.sqlite.lender.WARN_AFTER", 0.05)
    monkeypatch.setattr("windlass.stores.sqlite.lender.GIVE_UP_AFTER", 0.1)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("begin immediate")

    with pytest.raises(StoreUnavailable, match="left open") as refused:
        await soon(names(store))

    holder.close()
    assert refused.value.retryable
    assert "waits since" in caplog.text
    assert await soon(names(store)) == []


async def test_a_transaction_that_waits_for_the_turn_is_given_up_as_well(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.stores.sqlite.lender.WARN_AFTER", 0.05)
    monkeypatch.setattr("windlass.stores.sqlite.lender.GIVE_UP_AFTER", 0.1)

    with turn_of_another(path), pytest.raises(StoreUnavailable, match="if it is stopped"):
        await soon(names(store))

    assert await soon(names(store)) == []


async def test_a_file_that_was_replaced_is_told(store: Store, path: Path) -> None:
    path.rename(path.with_name("moved.db"))

    with pytest.raises(StoreUnavailable, match="deleted or replaced"):
        await names(store)

    path.with_name("moved.db").rename(path)
    assert await names(store) == []


async def test_a_close_waits_for_the_transaction_that_is_open(store: Store, url: str) -> None:
    other = open_store(url)
    await other.open()

    async with other.transaction() as connection:
        closing_ = asyncio.create_task(other.close())
        await asyncio.sleep(0)
        connection.execute("insert into mine values ('kept')")
    await soon(closing_)

    assert await names(store) == ["kept"]
    with pytest.raises(ClientClosed):
        await names(other)


@pytest.mark.parametrize("topic", [ENDS, PAUSES])
async def test_news_is_told_and_not_found_by_chance(store: Store, monkeypatch: pytest.MonkeyPatch, topic: str) -> None:
    monkeypatch.setattr("windlass.stores.sqlite.room.LOOK_EVERY", 600)
    other = store.sibling()
    await other.open()
    await store.enqueue([a_job()])
    claim = await claim_one(store)

    with listening(store, ENDS if topic == ENDS else PAUSES) as here, listening(other, ENDS, PAUSES) as there:
        if topic == ENDS:
            async with store.transaction() as connection:
                await store.join(borrow(connection)).settle([settlement(claim)])
        else:
            await store.set_paused("email", paused=True)
        await soon(here.wait())
        await soon(there.wait())

    await other.close()


@pytest.mark.on_request
async def test_ten_thousand_transactions(store: Store) -> None:
    count = 10_000
    await store.enqueue([a_job() for _ in range(count)])
    while claims := (await store.claim(ClaimRequest(["default"], 100, timedelta(minutes=5)))).jobs:
        for claim in claims:
            async with store.transaction() as connection:
                joined = store.join(borrow(connection))
                assert await joined.fence([(claim.job.id, claim.token)]) == [True]
                connection.execute("insert into mine values (?)", (claim.job.id,))
                assert await joined.settle([settlement(claim)]) == [Settled.DONE]

    assert len(set(await names(store))) == count
    [row] = await store.stats()
    assert row.succeeded == count
