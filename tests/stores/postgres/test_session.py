"""One connection: how it is set up, what it finds out about who answers, and when it must not be used again."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.postgres.cluster import cluster, dsn_of, schema_of
from tests.postgres.private import PrivateCluster
from tests.postgres.proxy import Proxy
from tests.stores.postgres.shell import blocking, options_of, use_statements
from windlass import StoreReadOnly
from windlass.stores.postgres.hosts import Host, hosts_of, needs_writes
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.session import Session, open_session


@pytest.fixture(autouse=True)
def statements(monkeypatch: pytest.MonkeyPatch) -> None:
    use_statements(monkeypatch)


@pytest.fixture
async def session(schema: str) -> AsyncIterator[Session]:
    session = await open_session(options_of(schema), timeout=10)
    await session.fetch("create")
    yield session
    session.terminate()


@pytest.fixture
async def pooled(pooled_schema: str) -> AsyncIterator[Session]:
    session = await open_session(options_of(pooled_schema), timeout=10)
    await session.fetch("create")
    yield session
    session.terminate()


async def setting(session: Session, name: str) -> str:
    [(value,)] = await session.fetch("setting", {"name": name})
    return str(value)


@pytest.mark.parametrize("url", ["schema", "pooled_schema"])
async def test_a_server_that_refuses_writes_is_seen_beside_the_answers_to_whom_the_connection_was_lent(
    request: pytest.FixtureRequest, url: str
) -> None:
    session = await open_session(options_of(request.getfixturevalue(url)), timeout=10)
    before = session.outdated

    async with session.connection.transaction():
        # only here: behind the pooler the server process is others' again
        await session.connection.execute("set local default_transaction_read_only = on")
        told = session.outdated
    await session.close()

    assert (before, told) == (False, True)


def test_options_never_show_a_password() -> None:
    options = Options(
        "postgresql://user:pass-word@one:1,two:2/app?password=pass-word&sslpassword=pass-word", schema="s"
    )

    assert options.where == "database app at one:1,two:2, schema s"
    assert "pass-word" not in f"{options!r} {options}"
    assert "user" not in options.where


def test_options_without_a_host_or_a_database_can_be_named_too() -> None:
    assert Options("postgresql:///").where == "the database at the server of the environment"


async def test_a_connection_of_our_own_is_set_up_at_its_start(session: Session, schema: str) -> None:
    expected = {
        "search_path": f'"{schema_of(schema)}", pg_temp',
        "application_name": "windlass",
        "enable_seqscan": "off",
        "enable_bitmapscan": "off",
        "jit": "off",
        "TimeZone": "UTC",
        "default_transaction_isolation": "read committed",
        "statement_timeout": "9s",
        "lock_timeout": "8s",
        "idle_in_transaction_session_timeout": "15s",
        "client_connection_check_interval": "1s",
    }

    found = {name: await setting(session, name) for name in expected}

    assert found == expected
    assert not session.pooled


async def test_without_a_schema_the_search_path_is_left_as_it_is() -> None:
    session = await open_session(Options(dsn_of(cluster().url)), timeout=10)

    path = await setting(session, "search_path")
    await session.close()

    assert path == '"$user", public'


async def test_behind_a_pooler_every_transaction_is_set_up(pooled: Session, pooled_schema: str) -> None:
    assert pooled.pooled
    for name, value in {
        "search_path": f'"{schema_of(pooled_schema)}", pg_temp',
        "enable_seqscan": "off",
        "statement_timeout": "9s",
        "lock_timeout": "8s",
        "TimeZone": "UTC",
    }.items():
        assert await setting(pooled, name) == value


async def test_what_a_pooler_was_told_for_one_transaction_is_not_left_to_others(pooled: Session) -> None:
    await pooled.fetch("numbers")

    # past our own settings: as the next client of the pooler would see it
    path = await pooled.connection.fetchval("select current_setting('search_path')")

    assert path == '"$user", public'


async def test_a_pooler_can_be_named_and_be_ruled_out(schema: str, pooled_schema: str) -> None:
    named = await open_session(options_of(schema, pooler="transaction"), timeout=10)
    ruled_out = await open_session(options_of(pooled_schema, pooler="none"), timeout=10)

    found = named.pooled, ruled_out.pooled, await setting(ruled_out, "jit")
    await named.close()
    ruled_out.terminate()

    assert found == (True, False, "off")


async def test_statements_behind_a_pooler_work_whichever_server_process_gets_them(
    pooled: Session, pooled_schema: str
) -> None:
    others = [await open_session(options_of(pooled_schema), timeout=10) for _ in range(3)]

    async def insert(session: Session, first: int) -> None:
        for number in range(first, first + 30, 3):
            await session.fetch("insert", {"number": number})
        await session.many("insert", [{"number": number + 100} for number in range(first, first + 30, 3)])

    await asyncio.gather(*(insert(session, first) for first, session in enumerate(others)))
    rows = await pooled.fetch("numbers")
    for other in others:
        other.terminate()

    assert [row[0] for row in rows] == [*range(30), *range(100, 130)]


async def numbers_after_a_rollback(session: Session) -> list[int]:
    async def insert_and_raise() -> None:
        async with session.transaction():
            await session.fetch("insert", {"number": 1})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await insert_and_raise()
    async with session.transaction():
        await session.fetch("insert", {"number": 2})
    assert not session.broken
    return [row[0] for row in await session.fetch("numbers")]


async def test_a_transaction_that_raises_is_rolled_back(session: Session) -> None:
    assert await numbers_after_a_rollback(session) == [2]


async def test_a_transaction_that_raises_is_rolled_back_behind_a_pooler_too(pooled: Session) -> None:
    assert await numbers_after_a_rollback(pooled) == [2]


async def test_a_transaction_after_a_failed_statement_cannot_be_committed_by_mistake(session: Session) -> None:
    await session.begin()
    await session.fetch("insert", {"number": 1})
    with pytest.raises(asyncpg.DivisionByZeroError):
        await session.fetch("divide", {"by": 0})

    with pytest.raises(asyncpg.InFailedSQLTransactionError):
        await session.commit()


async def test_a_look_sees_one_moment_and_writes_nothing(session: Session, schema: str) -> None:
    async with session.transaction(look=True):
        before = await session.fetch("numbers")
        with blocking(schema) as other:
            other.execute("insert into number values (1)")
            other.commit()
        after = await session.fetch("numbers")
        [how] = await session.fetch("isolation")

    assert (list(before), list(after), tuple(how)) == ([], [], ("repeatable read", "on"))


async def test_a_transaction_is_read_committed_whatever_the_role_prefers(schema: str) -> None:
    session = await open_session(options_of(schema), timeout=10)
    await session.script("set default_transaction_isolation = 'serializable'")

    async with session.transaction():
        [how] = await session.fetch("isolation")
    await session.close()

    assert tuple(how) == ("read committed", "off")


async def test_a_transaction_may_be_given_more_time_than_others(session: Session) -> None:
    async with session.transaction(timeout=100):
        longer = await setting(session, "statement_timeout")

    assert (longer, await setting(session, "statement_timeout")) == ("90s", "9s")


async def test_many_rows_are_written_or_none(session: Session) -> None:
    with pytest.raises(asyncpg.UniqueViolationError):
        await session.many("insert", [{"number": 1}, {"number": 2}, {"number": 1}])

    assert list(await session.fetch("numbers")) == []
    assert not session.broken


async def test_an_error_of_the_server_does_not_break_the_session(session: Session) -> None:
    with pytest.raises(asyncpg.DivisionByZeroError):
        await session.fetch("divide", {"by": 0})

    assert not session.broken


async def test_a_statement_that_was_left_alone_breaks_the_session(session: Session) -> None:
    statement = asyncio.create_task(session.fetch("sleep", {"seconds": 60.0}))
    await asyncio.sleep(0)

    statement.cancel()
    await asyncio.wait({statement})

    assert session.broken


async def test_a_statement_without_an_answer_is_given_up_at_its_deadline(session: Session) -> None:
    session.deadline.set(asyncio.get_running_loop().time() + 0.05)

    with pytest.raises(TimeoutError):
        await session.fetch("sleep", {"seconds": 60.0})

    assert session.broken


async def test_the_timer_of_an_earlier_call_leaves_a_later_one_its_time(session: Session) -> None:
    now = asyncio.get_running_loop().time()
    session.deadline.set(now + 0.05)
    await session.fetch("sleep", {"seconds": 0.0})
    session.deadline.clear()
    session.deadline.set(now + 60)

    await session.fetch("sleep", {"seconds": 0.1})

    assert not session.broken


async def test_a_call_with_less_time_than_the_one_before_is_given_up_sooner(session: Session) -> None:
    now = asyncio.get_running_loop().time()
    session.deadline.set(now + 60)
    session.deadline.clear()
    session.deadline.set(now + 0.05)

    with pytest.raises(TimeoutError):
        await session.fetch("sleep", {"seconds": 60.0})


async def test_a_session_that_is_not_waited_for_is_not_given_up(session: Session) -> None:
    session.deadline.set(asyncio.get_running_loop().time() + 0.02)
    session.deadline.clear()

    await session.fetch("sleep", {"seconds": 0.1})

    assert not session.broken


async def test_a_session_that_was_cut_off_is_closed(session: Session) -> None:
    session.terminate()

    assert (session.closed, session.broken) == (True, True)


async def test_a_standby_is_refused_unless_the_url_asks_for_it() -> None:
    with PrivateCluster(conf={"default_transaction_read_only": "on"}) as server:
        with pytest.raises(StoreReadOnly, match="takes no writes") as told:
            await open_session(Options(server.url), timeout=10)
        asked_for = await open_session(Options(f"{server.url}?target_session_attrs=any"), timeout=10)
        await asked_for.close()

    assert told.value.retryable


async def test_of_several_servers_the_one_that_takes_writes_is_found(schema: str) -> None:
    good = dsn_of(schema).partition("@")[2].partition("/")[0]
    with PrivateCluster(conf={"default_transaction_read_only": "on"}) as server:
        hosts = f"127.0.0.1:1,127.0.0.1:{server.port},{good}"
        session = await open_session(options_of(schema.replace(good, hosts)), timeout=10)

    found = await setting(session, "port")
    await session.close()

    assert found == good.partition(":")[2]


async def test_a_server_that_never_answers_leaves_time_for_the_next(schema: str) -> None:
    good = dsn_of(schema).partition("@")[2].partition("/")[0]
    async with Proxy(dsn_of(schema)) as proxy:
        proxy.hold()
        silent = proxy.url.partition("@")[2].partition("/")[0]
        options = options_of(schema.replace(good, f"{silent},{good}"))

        session = await open_session(options, timeout=2)
        # the one that answered is asked first from now on
        again = await asyncio.wait_for(open_session(options, timeout=60), 10)
    await session.close()
    await again.close()


def test_the_servers_of_a_url_are_read_as_the_driver_reads_them() -> None:
    assert hosts_of("postgresql://user:word@one:1,two,[::1]:3,[::2]/app") == [
        Host("one", 1),
        Host("two"),
        Host("::1", 3),
        Host("::2"),
    ]
    assert hosts_of("postgresql://one:1/app") == hosts_of("postgresql:///app?host=a,b") == [Host()]
    assert hosts_of("postgresql://one,two/app?port=1,2") == [Host()]


def test_a_url_may_ask_for_a_server_that_only_reads() -> None:
    assert needs_writes("postgresql://one/app")
    assert needs_writes("postgresql://one/app?target_session_attrs=primary")
    assert not needs_writes("postgresql://one/app?target_session_attrs=prefer-standby")
