"""Claims settled in callers' own transactions, through every library."""

import pytest
from psycopg import sql

from tests.postgres.cluster import cluster
from tests.stores.postgres.ways import WAYS, Settle, way
from windlass import Claim, Client, NewJob, State

ENDS = {"ack": State.SUCCEEDED, "nack": State.SCHEDULED, "dead_letter": State.DEAD}


def verb_of(name: str) -> str:
    return name.partition(" ")[0]


async def claims_on(client: Client, names: list[str]) -> dict[str, Claim]:
    await client.enqueue_many([NewJob("email", name.encode()) for name in names])
    claims = await client.claim_many("email", limit=len(names), lease=3600)
    return {claim.job.payload.decode(): claim for claim in claims}


def rows_of(mine: str) -> list[str]:
    rows = cluster().run(sql.SQL("select name from {} order by name").format(sql.Identifier(*mine.split("."))))
    return [name for (name,) in rows]


@pytest.mark.parametrize("kind", WAYS)
async def test_a_claim_is_settled_if_and_only_if_the_transaction_commits(
    client: Client, schema: str, mine: str, kind: str
) -> None:
    names = [f"{verb} {end}" for verb in ENDS for end in ("undone", "done")]
    claims = await claims_on(client, names)

    async with way(kind, client, schema, Settle(claims, verb_of)) as transact:
        for name in names:
            await transact(name, name.endswith(" done"))

    found = {name: job.state if (job := await client.get(claims[name].job.id)) else None for name in names}
    wanted = {name: ENDS[verb_of(name)] if name.endswith(" done") else State.RUNNING for name in names}
    assert found == wanted
    assert rows_of(mine) == sorted(name for name in names if name.endswith(" done"))


@pytest.mark.parametrize("kind", WAYS)
async def test_a_claim_that_was_rolled_back_is_settled_by_the_next_transaction(
    client: Client, schema: str, mine: str, kind: str
) -> None:
    claims = await claims_on(client, ["ack"])

    async with way(kind, client, schema, Settle(claims, verb_of)) as transact:
        await transact("ack", False)  # noqa: FBT003 - how it ends
        await transact("ack", True)  # noqa: FBT003

    job = await client.get(claims["ack"].job.id)
    assert job is not None
    assert (job.state, rows_of(mine)) == (State.SUCCEEDED, ["ack"])
