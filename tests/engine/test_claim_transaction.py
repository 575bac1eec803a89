import asyncio
import sqlite3
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

import windlass
from tests.engine.given import an_attempt
from windlass.client.client import Client
from windlass.core.errors import ClaimLost, InvalidValue, NotTransactional
from windlass.core.job import NewJob
from windlass.core.states import State
from windlass.engine.attempt import Attempt
from windlass.engine.claim_transaction import SettlingTransaction

SECOND = timedelta(seconds=1)


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[Client]:
    async with windlass.connect(f"sqlite:///{tmp_path}/jobs.db") as client:
        yield client


def transaction(client: Client, attempt: Attempt, connection: object = None) -> SettlingTransaction:
    return SettlingTransaction(client, attempt, connection, loop=asyncio.get_running_loop(), warn_after=SECOND)


async def fall_inside(made: SettlingTransaction) -> None:
    async with made as connection:
        connection.execute("insert into effects values ('done')")
        raise ZeroDivisionError


async def state_of(client: Client, attempt: Attempt) -> State:
    job = await client.get(attempt.job.id)
    assert job is not None
    return job.state


def effects(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        found: int = connection.execute("select count(*) from effects").fetchone()[0]
    connection.close()
    return found


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table effects (what text)")
    connection.close()
    return path


async def test_the_effects_and_the_end_are_one_commit(database: Path, sqlite: Client) -> None:
    attempt = await an_attempt(sqlite)
    attempt.then([NewJob("next")], {"key": b"value"})

    async with transaction(sqlite, attempt) as connection:
        connection.execute("insert into effects values ('done')")
        assert not attempt.settled

    assert (effects(database), attempt.settled) == (1, True)
    assert await state_of(sqlite, attempt) is State.SUCCEEDED
    assert (await sqlite.stats("next")).pending == 1
    assert await sqlite.kv.get("key") == b"value"


async def test_an_error_takes_the_effects_back_and_leaves_the_claim(database: Path, sqlite: Client) -> None:
    attempt = await an_attempt(sqlite)

    with pytest.raises(ZeroDivisionError):
        await fall_inside(transaction(sqlite, attempt))

    assert (effects(database), attempt.settled) == (0, False)
    assert await state_of(sqlite, attempt) is State.RUNNING
    async with transaction(sqlite, attempt) as connection:
        connection.execute("insert into effects values ('again')")
    assert effects(database) == 1


async def test_who_lost_the_job_does_not_begin(database: Path, sqlite: Client) -> None:
    attempt = await an_attempt(sqlite)
    await sqlite.rescue(force=True)

    with pytest.raises(ClaimLost):
        async with transaction(sqlite, attempt) as connection:
            connection.execute("insert into effects values ('done')")

    assert effects(database) == 0
    assert await sqlite.claim("default") is not None


async def test_a_claim_is_settled_once(database: Path, sqlite: Client) -> None:
    attempt = await an_attempt(sqlite)
    async with transaction(sqlite, attempt):
        pass

    with pytest.raises(InvalidValue, match="is settled already"):
        async with transaction(sqlite, attempt):
            pass

    assert effects(database) == 0


async def test_a_thread_uses_it_by_with(database: Path, sqlite: Client) -> None:
    attempt = await an_attempt(sqlite)
    made = transaction(sqlite, attempt)

    def work() -> None:
        with made as connection:
            connection.execute("insert into effects values ('done')")

    await asyncio.to_thread(work)

    assert (effects(database), await state_of(sqlite, attempt)) == (1, State.SUCCEEDED)


async def test_a_connection_of_the_callers_own_is_begun_by_it_and_committed_here(
    database: Path, sqlite: Client
) -> None:
    attempt, other = await an_attempt(sqlite), await an_attempt(sqlite)
    connection = sqlite3.connect(database, isolation_level=None)

    connection.execute("begin immediate")
    async with transaction(sqlite, attempt, connection) as given:
        given.execute("insert into effects values ('done')")
    assert not connection.in_transaction
    connection.execute("begin immediate")
    with pytest.raises(ZeroDivisionError):
        await fall_inside(transaction(sqlite, other, connection))
    connection.close()

    assert effects(database) == 1
    assert await state_of(sqlite, attempt) is State.SUCCEEDED
    assert await state_of(sqlite, other) is State.RUNNING


async def test_a_store_without_transactions_says_so(client: Client) -> None:
    attempt = await an_attempt(client)

    with pytest.raises(NotTransactional):
        async with transaction(client, attempt):
            pass

    assert not attempt.settled
