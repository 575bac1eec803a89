"""`connection=` on Postgres: a job in the caller's own transaction, by every way to a connection."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from psycopg import sql

import windlass
from tests.postgres.cluster import cluster, schema_of
from tests.stores.postgres.ways import WAYS, Transact, way
from windlass import Client

pytestmark = pytest.mark.usefixtures("mine")


@pytest.fixture(params=WAYS)
async def transact(request: pytest.FixtureRequest, client: Client, schema: str) -> AsyncIterator[Transact]:
    async with way(request.param, client, schema) as transact:
        yield transact


def names_in(url: str) -> set[str]:
    rows = cluster().run(sql.SQL("select name from {}").format(sql.Identifier(schema_of(url), "mine")))
    return {name for (name,) in rows}


@pytest.mark.parametrize("rounds", [20, pytest.param(200, marks=pytest.mark.on_request)])
async def test_jobs_exist_if_and_only_if_the_transaction_commits(
    client: Client, schema: str, transact: Transact, rounds: int
) -> None:
    for number in range(rounds):
        await transact(f"committed {number}", True)  # noqa: FBT003
        await transact(f"rolled back {number}", False)  # noqa: FBT003

    expected = [f"committed {number}" for number in range(rounds)]
    assert [job.payload.decode() for job in await client.jobs(limit=500)] == expected
    assert names_in(schema) == set(expected)
    stats = await client.stats("email")
    assert (stats.pending, stats.totals.enqueued) == (rounds, rounds)


async def test_a_commit_wakes_a_waiter_elsewhere(schema: str, transact: Transact) -> None:
    """It looks only when it is told to; not in every round at once, since machines are busy at times."""
    took: list[float] = []
    async with windlass.connect(schema, poll_interval=600) as other:
        for number in range(5):
            waiting = asyncio.create_task(other.claim("email", wait=60))
            await transact(f"rolled back {number}", False)  # noqa: FBT003
            await transact(f"committed {number}", True)  # noqa: FBT003
            committed = time.monotonic()

            claim = await asyncio.wait_for(waiting, 10)

            took.append(time.monotonic() - committed)
            assert claim is not None
            assert claim.job.payload.decode() == f"committed {number}"
    assert sum(seconds < 0.1 for seconds in took) >= 3
