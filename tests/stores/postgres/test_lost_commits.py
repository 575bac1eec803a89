"""`ctx.transaction()` when the reply to its commit is lost: what the database did is what the attempt came to."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg import sql
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from proofs.lost_replies.lossy_postgres import Commit
from tests.postgres.cluster import cluster, dsn_of, schema_of
from tests.postgres.frames import Request
from tests.postgres.proxy import Proxy
from tests.stores.postgres.ways import sqlalchemy_url
from windlass import App, Context, Fixed, Job, OutcomeUnknown, QueueSettings, Server, State
from windlass.borrow.borrow import borrow_back
from windlass.core.joined_transaction import JoinedTransaction
from windlass.core.requests import Settlement
from windlass.core.verdict import ToSucceeded

Insert = Callable[[Context, str], Awaitable[None]]

KEPT, GONE = "kept", "gone"
OWN = "insert into {} values ($1)"


@pytest.fixture
async def proxy(schema: str) -> AsyncIterator[Proxy]:
    async with Proxy(schema) as proxy:
        yield proxy


@pytest.fixture
async def app(proxy: Proxy, mine: str) -> AsyncIterator[App]:  # noqa: ARG001 - the table of the handlers
    app = App(proxy.url, retry=Fixed(0), queues={GONE: QueueSettings(keep_succeeded=0)})
    async with app:
        yield app


class Seen:
    """What became of one job: where its moves led to, and what its server counted."""

    def __init__(self) -> None:
        self.moves: list[State] = []
        self.attempts: list[int] = []
        self.ends: dict[str, int] = {}
        self.succeeded = asyncio.Event()


async def served(app: App, queue: str, work: Callable[[Context], Awaitable[None]]) -> Seen:
    """Work one job until nothing of it is left to do."""
    seen = Seen()

    async def handler(ctx: Context) -> None:
        seen.attempts.append(ctx.attempt)
        await work(ctx)

    def moved(job: Job, old: State, new: State) -> None:
        del job, old
        seen.moves.append(new)
        if new is State.SUCCEEDED:
            seen.succeeded.set()

    app.on_state_change(moved)
    job = app.job(queue=queue)(handler)
    async with Server(app) as server:
        handle = await job.enqueue()
        await asyncio.wait_for(handle.wait(timeout=30), 30)
        await asyncio.wait_for(seen.succeeded.wait(), 30)
        seen.ends = {name: count for name, count in ends_of(server).items() if count}
    return seen


def ends_of(server: Server) -> dict[str, int]:
    [counts] = server.tally.pairs().values()
    return {str(name): count for name, count in counts.ends.items()}


def names(mine: str) -> list[str]:
    schema, _, table = mine.partition(".")
    rows = cluster().run(sql.SQL("select name from {} order by name").format(sql.Identifier(schema, table)))
    return [name for (name,) in rows]


def is_ours(mine: str) -> Callable[[Request], bool]:
    """Meet the commit of the transaction that wrote to the caller's own table."""
    return Commit(mine)


def by_the_store(mine: str) -> Callable[[Context], Awaitable[None]]:
    async def work(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(OWN.format(mine), f"attempt {ctx.attempt}")

    return work


def by_asyncpg(mine: str, dsn: str) -> Callable[[Context], Awaitable[None]]:
    async def work(ctx: Context) -> None:
        connection = await asyncpg.connect(dsn)
        try:
            async with ctx.transaction(connection):
                await connection.execute(OWN.format(mine), f"attempt {ctx.attempt}")
        finally:
            connection.terminate()

    return work


def by_psycopg(mine: str, dsn: str) -> Callable[[Context], Awaitable[None]]:
    async def work(ctx: Context) -> None:
        async with await psycopg.AsyncConnection.connect(dsn) as connection, ctx.transaction(connection):
            await connection.execute(f"insert into {mine} values (%s)".encode(), [f"attempt {ctx.attempt}"])

    return work


def by_session(mine: str, url: str) -> Callable[[Context], Awaitable[None]]:
    async def work(ctx: Context) -> None:
        engine = create_async_engine(sqlalchemy_url(url, "asyncpg"))
        async with AsyncSession(engine) as session, ctx.transaction(session):
            connection: Any = await session.connection()
            await connection.exec_driver_sql(OWN.format(mine), (f"attempt {ctx.attempt}",))
        await engine.dispose()

    return work


def worker_of(kind: str, mine: str, url: str) -> Callable[[Context], Awaitable[None]]:
    match kind:
        case "asyncpg":
            return by_asyncpg(mine, dsn_of(url))
        case "psycopg":
            return by_psycopg(mine, dsn_of(url))
        case "session":
            return by_session(mine, url)
        case _:
            return by_the_store(mine)


@pytest.mark.parametrize("queue", [KEPT, GONE])
@pytest.mark.parametrize("kind", ["the store's own", "asyncpg", "psycopg", "session"])
async def test_an_attempt_whose_commit_was_done_is_a_success_though_nobody_was_told(
    app: App, proxy: Proxy, mine: str, caplog: pytest.LogCaptureFixture, *, queue: str, kind: str
) -> None:
    lost = proxy.drop_reply(is_ours(mine))

    with caplog.at_level(logging.WARNING, "windlass"):
        seen = await served(app, queue, worker_of(kind, mine, proxy.url))

    assert lost.is_set()
    assert (seen.attempts, names(mine)) == ([1], ["attempt 1"])
    assert seen.moves[-1:] == [State.SUCCEEDED]
    assert seen.ends == {"succeeded": 1}
    assert [record.message for record in caplog.records if "taken back" in record.message] == []


@pytest.mark.parametrize("queue", [KEPT, GONE])
@pytest.mark.parametrize("kind", ["the store's own", "asyncpg", "psycopg", "session"])
async def test_an_attempt_whose_commit_never_came_there_has_failed(
    app: App, proxy: Proxy, mine: str, queue: str, kind: str
) -> None:
    lost = proxy.drop_request(is_ours(mine))

    seen = await served(app, queue, worker_of(kind, mine, proxy.url))

    assert lost.is_set()
    assert (seen.attempts, names(mine)) == ([1, 2], ["attempt 2"])
    assert seen.ends == {"retried": 1, "succeeded": 1}


async def test_a_commit_that_is_still_under_way_is_waited_for(app: App, proxy: Proxy, mine: str) -> None:
    schema, slow = schema_of(proxy.url), "begin perform pg_sleep(0.8); return null; end"
    function, table = sql.Identifier(schema, "slow"), sql.Identifier(schema, "mine")
    cluster().run(
        sql.SQL("create function {}() returns trigger language plpgsql as {}").format(function, sql.Literal(slow))
    )
    cluster().run(
        sql.SQL(
            "create constraint trigger slow after insert on {} deferrable initially deferred"
            " for each row execute function {}()"
        ).format(table, function)
    )

    async def work(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await connection.execute(OWN.format(mine), f"attempt {ctx.attempt}")
            # the commit is sent, and then the way back is gone
            asyncio.get_running_loop().call_later(0.2, proxy.reset)

    seen = await served(app, GONE, work)

    assert (seen.attempts, names(mine), seen.ends) == ([1], ["attempt 1"], {"succeeded": 1})


async def test_an_attempt_that_is_cancelled_while_it_waits_for_its_commit_is_a_success(
    app: App, proxy: Proxy, mine: str
) -> None:
    async def work(ctx: Context) -> None:
        task = asyncio.current_task()
        assert task is not None
        meets, loop = is_ours(mine), task.get_loop()

        def cancel_when_sent(request: Request) -> bool:
            if meets(request):
                proxy.hold(["answers"])
                loop.call_later(0.1, task.cancel)
                loop.call_later(0.2, proxy.release)
            return False

        proxy.drop_reply(cancel_when_sent)
        async with ctx.transaction() as connection:
            await connection.execute(OWN.format(mine), f"attempt {ctx.attempt}")

    seen = await served(app, GONE, work)

    assert (seen.attempts, names(mine), seen.ends) == ([1], ["attempt 1"], {"succeeded": 1})


async def test_where_nobody_can_tell_it_is_said_so(proxy: Proxy, app: App, mine: str) -> None:
    await app.client.enqueue(KEPT)
    claim = await app.client.claim(KEPT)
    assert claim is not None
    settlement = Settlement(claim.job.id, claim.token, ToSucceeded(), keep=True)
    proxy.drop_reply(is_ours(mine))
    joined: list[JoinedTransaction] = []

    async def settle() -> None:
        async with app.client.store.transaction() as connection:
            await connection.execute(OWN.format(mine), "in doubt")
            joined.append(app.client.store.join(borrow_back(connection)))
            await joined[0].settle_last([settlement])

    with pytest.raises(OutcomeUnknown) as unknown:
        await settle()

    assert unknown.value.job_id == claim.job.id
    assert await joined[0].was_committed(unknown.value)
