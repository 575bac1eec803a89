"""Which commits wait for the disk: all that a caller was told of, and not the adding up of counts."""

import logging
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

import windlass
from tests.postgres.cluster import dsn_of, schema_of
from tests.postgres.private import DURABLE, PrivateCluster
from windlass import Client, NewJob
from windlass.stores.postgres.moves.fold import AT_ONCE
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.session import Session, open_session

ROUNDS = 3


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateCluster]:
    with PrivateCluster(conf=DURABLE) as private:
        yield private


async def shown(session: Session) -> str:
    async with session.transaction():
        value: str = await session.connection.fetchval("show synchronous_commit")
    return value


@pytest.mark.parametrize("pooler", ["none", "transaction"])
async def test_a_session_that_has_added_up_waits_for_its_commits_again(private: PrivateCluster, pooler: Any) -> None:  # noqa: ANN401
    url = private.as_cluster().new_schema()
    async with windlass.connect(url) as client:
        await client.enqueue("email")
    session = await open_session(Options(dsn_of(url), schema=schema_of(url), pooler=pooler), timeout=10)

    before = await shown(session)
    changes = await add_up(session)
    after, beside = await shown(session), await session.connection.fetchval("show synchronous_commit")
    await session.close()

    assert changes > 0
    assert (before, after, beside) == ("on", "on", "on")


async def test_counts_are_those_of_the_jobs_after_a_crash_right_behind_their_adding_up() -> None:
    with PrivateCluster(conf=DURABLE) as private:
        url = private.as_cluster().new_schema()
        async with windlass.connect(url) as client:
            for number in range(1, ROUNDS + 1):
                await work_some(client)
                session = await open_session(Options(dsn_of(url), schema=schema_of(url)), timeout=10)
                assert await add_up(session) > 0
                private.restart("immediate")
                session.terminate()

                found = await client.stats("email")
                counted = {"pending": found.pending, "running": found.running, "succeeded": found.succeeded}
                assert counted == {"pending": 20 * number, "running": 10 * number, "succeeded": 10 * number}
                assert counted == jobs_of(url)
                assert (found.totals.enqueued, found.totals.succeeded) == (40 * number, 10 * number)


async def work_some(client: Client) -> None:
    await client.enqueue_many([NewJob("email") for _ in range(40)])
    for claim in (await client.claim_many("email", limit=20, lease=3600))[:10]:
        await client.ack(claim)


async def add_up(session: Session) -> int:
    [(changes, *_)] = await session.fetch("fold", {"above": 0, "limit": AT_ONCE, "alone": True})
    assert isinstance(changes, int)
    return changes


def jobs_of(url: str) -> dict[str, int]:
    table = sql.Identifier(schema_of(url), "windlass_job")
    with psycopg.connect(dsn_of(url)) as connection:
        rows = connection.execute(sql.SQL("select state, count(*) from {} group by state").format(table)).fetchall()
    return {str(state): count for state, count in rows}


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "synchronous_commit" in record.message]


async def test_whoever_opens_a_store_whose_commits_may_be_lost_is_warned_once(
    private: PrivateCluster, caplog: pytest.LogCaptureFixture
) -> None:
    url = private.as_cluster().new_schema()
    loose = f"{url}&options=-csynchronous_commit%3Doff"

    with caplog.at_level(logging.WARNING, "windlass"):
        async with windlass.connect(url):
            kept = complaints(caplog)
        for _ in range(2):
            async with windlass.connect(loose):
                pass

    assert kept == []
    [warned] = complaints(caplog)
    assert "alter role ... set synchronous_commit = on" in warned
