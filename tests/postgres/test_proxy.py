"""Every trouble that the proxy makes, as drivers see it that are not ours."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import TypeAlias

import asyncpg
import psycopg
import pytest

from tests.postgres.cluster import dsn_of, schema_of
from tests.postgres.frames import Request
from tests.postgres.proxy import Proxy

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
LOST = (asyncpg.ConnectionDoesNotExistError, ConnectionResetError)


@pytest.fixture
async def proxy(schema: str) -> AsyncIterator[Proxy]:
    async with Proxy(dsn_of(schema)) as proxy:
        yield proxy


async def connected(url: str, schema: str) -> Connection:
    return await asyncpg.connect(url, server_settings={"search_path": schema_of(schema)})


@pytest.fixture
async def direct(schema: str) -> AsyncIterator[Connection]:
    """A connection past the proxy, and a table."""
    connection = await connected(dsn_of(schema), schema)
    await connection.execute("create table number (number int)")
    yield connection
    await connection.close()


@pytest.fixture
async def connection(proxy: Proxy, schema: str, direct: Connection) -> AsyncIterator[Connection]:
    assert await direct.fetch("table number") == []
    connection = await connected(proxy.url, schema)
    yield connection
    connection.terminate()


async def numbers(connection: Connection) -> list[int]:
    return [row[0] for row in await connection.fetch("select number from number order by number")]


def inserts(request: Request) -> bool:
    return request.text.startswith("insert")


def commits(request: Request) -> bool:
    return request.text.startswith("COMMIT")


async def test_what_passes_is_counted(proxy: Proxy, connection: Connection) -> None:
    # statements are prepared by a request of their own, which runs nothing
    await connection.execute("insert into number values ($1)", 1)
    await connection.execute("insert into number values (2)")

    assert await numbers(connection) == [1, 2]
    assert (proxy.requests, proxy.answers) == (3, 3)


async def test_libpq_goes_through_as_well(proxy: Proxy, schema: str, direct: Connection) -> None:
    async with await psycopg.AsyncConnection.connect(
        proxy.url, options=f"-c search_path={schema_of(schema)}"
    ) as connection:
        await connection.execute("insert into number values (%s)", [7])

    assert await numbers(direct) == [7]


async def test_a_dropped_reply_is_of_something_that_was_done(
    proxy: Proxy, connection: Connection, direct: Connection
) -> None:
    lost = proxy.drop_reply(inserts)

    with pytest.raises(LOST):
        await connection.execute("insert into number values ($1)", 1)

    assert lost.is_set()
    assert await numbers(direct) == [1]


async def test_the_reply_of_a_commit_can_be_dropped(proxy: Proxy, connection: Connection, direct: Connection) -> None:
    lost = proxy.drop_reply(commits)

    with pytest.raises(LOST):
        async with connection.transaction():
            await connection.execute("insert into number values (1)")

    assert lost.is_set()
    assert await numbers(direct) == [1]


async def test_a_dropped_request_is_not_done(proxy: Proxy, connection: Connection, direct: Connection) -> None:
    lost = proxy.drop_request(2)
    await connection.execute("insert into number values ($1)", 1)

    with pytest.raises(LOST):
        await connection.execute("insert into number values ($1)", 2)

    assert lost.is_set()
    assert await numbers(direct) == [1]


@pytest.mark.parametrize("sqlstate, error", [("40001", "SerializationError"), ("40P01", "DeadlockDetectedError")])
async def test_a_failed_request_leaves_the_session_as_the_error_would(
    proxy: Proxy, connection: Connection, sqlstate: str, error: str
) -> None:
    failed = proxy.fail(inserts, sqlstate)

    with pytest.raises(getattr(asyncpg, error)):
        await connection.execute("insert into number values ($1)", 1)

    assert failed.is_set()
    assert not connection.is_in_transaction()
    assert await numbers(connection) == []


async def test_a_failed_request_fails_its_transaction(proxy: Proxy, connection: Connection) -> None:
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute("insert into number values ($1)", 1)
    proxy.fail(inserts, "55P03")

    with pytest.raises(asyncpg.LockNotAvailableError):
        await connection.execute("insert into number values ($1)", 2)

    with pytest.raises(asyncpg.InFailedSQLTransactionError):
        await numbers(connection)
    await transaction.rollback()
    assert await numbers(connection) == []


async def test_a_plan_is_carried_out_once(proxy: Proxy, connection: Connection) -> None:
    proxy.fail(1, "40001")
    with pytest.raises(asyncpg.SerializationError):
        await connection.execute("insert into number values (1)")

    await connection.execute("insert into number values (2)")

    assert await numbers(connection) == [2]


async def test_what_was_held_passes_when_it_is_released(
    proxy: Proxy, connection: Connection, direct: Connection
) -> None:
    proxy.hold(["requests"])
    insert = asyncio.ensure_future(connection.execute("insert into number values (1)"))
    assert await numbers(direct) == []
    assert not insert.done()

    proxy.release()

    await asyncio.wait_for(insert, 10)
    assert await numbers(direct) == [1]


async def test_a_held_answer_is_of_something_that_was_done(
    proxy: Proxy, connection: Connection, direct: Connection
) -> None:
    done = asyncio.Event()

    def heard(*_: object) -> None:
        done.set()

    await direct.add_listener("done", heard)
    proxy.hold(["answers"])

    insert = asyncio.ensure_future(connection.execute("insert into number values (1); notify done"))
    await asyncio.wait_for(done.wait(), 10)

    assert await numbers(direct) == [1]
    assert not insert.done()
    proxy.release()
    await asyncio.wait_for(insert, 10)


async def test_one_client_is_held_alone(proxy: Proxy, schema: str, connection: Connection) -> None:
    other = await connected(proxy.url, schema)
    proxy.clients[0].hold()
    held = asyncio.ensure_future(numbers(connection))

    assert await numbers(other) == []

    assert not held.done()
    proxy.clients[0].release()
    assert await asyncio.wait_for(held, 10) == []
    await other.close()


async def test_a_new_connection_is_held_too(proxy: Proxy, schema: str, direct: Connection) -> None:
    proxy.hold()
    connecting = asyncio.ensure_future(connected(proxy.url, schema))
    assert await numbers(direct) == []
    assert not connecting.done()

    proxy.release()

    await (await asyncio.wait_for(connecting, 10)).close()


async def test_a_reset_is_seen_by_whoever_waits(proxy: Proxy, connection: Connection) -> None:
    proxy.hold()
    waiting = asyncio.ensure_future(numbers(connection))
    # it has sent its question once it is asked for by the loop
    await asyncio.sleep(0)

    proxy.reset()

    with pytest.raises(LOST):
        await asyncio.wait_for(waiting, 10)
    assert connection.is_closed()


async def test_an_answer_is_cut_in_the_middle(proxy: Proxy, connection: Connection, direct: Connection) -> None:
    await direct.execute("insert into number select generate_series(1, 1000)")
    proxy.cut_after(500)

    with pytest.raises(LOST):
        await numbers(connection)

    assert not proxy.left


async def test_new_connections_are_refused_while_others_go_on(
    proxy: Proxy, schema: str, connection: Connection
) -> None:
    proxy.refusing = True

    with pytest.raises((OSError, asyncpg.PostgresConnectionError)):
        await connected(proxy.url, schema)

    assert await numbers(connection) == []


async def test_latency_is_added_each_way(proxy: Proxy, connection: Connection) -> None:
    await numbers(connection)
    proxy.latency = 0.1
    begun = time.monotonic()

    await numbers(connection)

    assert time.monotonic() - begun >= 0.2


async def test_nothing_is_left_of_a_closed_proxy(schema: str) -> None:
    tasks = asyncio.all_tasks()
    async with Proxy(dsn_of(schema)) as proxy:
        connection = await connected(proxy.url, schema)

    with pytest.raises((*LOST, asyncpg.InterfaceError)):
        await connection.execute("select 1")

    connection.terminate()
    assert asyncio.all_tasks() <= tasks
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2].partition("/")[0]))
