import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

import windlass
from windlass import Client, InvalidValue, State
from windlass.borrow.borrow import borrow
from windlass.borrow.errand import errand


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
async def client(path: Path) -> AsyncIterator[Client]:
    async with windlass.connect(f"sqlite:///{path}") as client:
        yield client


async def pending(client: Client) -> int:
    return (await client.stats("email")).pending


@pytest.mark.parametrize("connection", [None, 5, "sqlite:///jobs.db", create_engine("sqlite://")])
def test_anything_but_a_connection_is_refused_by_name(connection: object) -> None:
    with pytest.raises(InvalidValue, match="takes an open connection of sqlite3"):
        borrow(connection)


async def test_an_async_session_is_refused_by_the_blocking_client() -> None:
    async def carry(work: Any) -> Any:  # noqa: ANN401 - it is never called
        return work()

    token = errand.set(carry)
    try:
        with pytest.raises(InvalidValue, match="blocking client"):
            borrow(AsyncSession())
    finally:
        errand.reset(token)


async def test_a_job_exists_if_and_only_if_a_sqlite3_transaction_commits(client: Client, path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("begin immediate")
    await client.enqueue("email", connection=connection)
    connection.rollback()
    after_rollback = await pending(client)

    connection.execute("begin immediate")
    await client.enqueue("email", connection=connection)
    connection.commit()
    connection.close()

    assert (after_rollback, await pending(client)) == (0, 1)


async def test_a_job_exists_if_and_only_if_a_sqlalchemy_connection_commits(client: Client, path: Path) -> None:
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with engine.connect() as connection:
        await client.enqueue("email", connection=connection)
        connection.rollback()
    after_rollback = await pending(client)

    with engine.connect() as connection:
        await client.enqueue("email", connection=connection)
        connection.commit()

    assert (after_rollback, await pending(client)) == (0, 1)


async def test_a_job_exists_if_and_only_if_a_session_commits(client: Client, path: Path) -> None:
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with Session(engine) as session:
        await client.enqueue("email", connection=session)
        session.rollback()
        after_rollback = await pending(client)
        session.execute(text("create table mine (n integer)"))
        await client.enqueue_many([windlass.NewJob("email"), windlass.NewJob("email")], connection=session)
        session.commit()
    scoped = scoped_session(sessionmaker(engine))
    await client.enqueue("email", connection=scoped)
    scoped.commit()
    scoped.remove()

    assert (after_rollback, await pending(client)) == (0, 3)


async def test_a_job_exists_if_and_only_if_an_async_session_commits(client: Client, path: Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}", poolclass=NullPool)
    async with AsyncSession(engine) as session:
        await client.enqueue("email", connection=session)
        await session.rollback()
        after_rollback = await pending(client)
        await client.enqueue("email", connection=session)
        await session.commit()
    async with engine.connect() as connection:
        await client.enqueue("email", connection=connection)
        await connection.commit()
    await engine.dispose()

    assert (after_rollback, await pending(client)) == (0, 2)


async def test_a_claim_is_settled_in_the_transaction_that_wrote_its_effects(client: Client, path: Path) -> None:
    await client.enqueue("email")
    claim = await client.claim("email")
    assert claim is not None
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with Session(engine) as session:
        await client.ack(claim, connection=session)
        session.rollback()
        after_rollback = await client.get(claim.job.id)

        await client.ack(claim, "sent", connection=session)
        session.commit()

    job = await client.get(claim.job.id)
    assert after_rollback is not None
    assert after_rollback.state is State.RUNNING
    assert job is not None
    assert (job.state, job.result) == (State.SUCCEEDED, b'"sent"')


@pytest.mark.parametrize("kind", ["session", "connection"])
async def test_whoever_waits_is_woken_after_the_commit(client: Client, path: Path, kind: str) -> None:
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    waiting = asyncio.create_task(client.claim("email", wait=10))
    with Session(engine) if kind == "session" else engine.connect() as owner:
        await client.enqueue("email", connection=owner)
        owner.commit()

    claim = await asyncio.wait_for(waiting, 2)

    assert claim is not None


async def test_rings_are_for_one_commit_and_not_for_a_savepoint(path: Path) -> None:
    rings: list[str] = []
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with Session(engine) as session:
        borrowed = borrow(session)
        await borrowed.run(lambda connection: connection.execute("create table mine (n integer)"))
        with session.begin_nested():
            assert await borrowed.after_commit(lambda: rings.append("rung"))
        after_savepoint = list(rings)
        session.commit()
        session.execute(text("select 1"))
        session.commit()

    assert (after_savepoint, rings) == ([], ["rung"])


async def test_sqlite3_tells_nobody_of_a_commit() -> None:
    connection = sqlite3.connect(":memory:")

    assert not await borrow(connection).after_commit(lambda: None)

    connection.close()
