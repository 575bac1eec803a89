"""A job that other jobs follow ends by the general path, also when its follower came after its claim."""

from typing import Any

import pytest

from tests.postgres.cluster import cluster, schema_of
from windlass import Claim, Client, JobId, State
from windlass.core.failpoint import arm, disarm
from windlass.core.requests import Settled
from windlass.stores.postgres.moves import delivery_ends
from windlass.stores.postgres.moves.delivery_ends import Ending
from windlass.testing.conformance.given import settlement
from windlass.testing.failpoints import Fault, Faulted


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> list[JobId]:
    """The jobs that the general path has ended, in order."""
    ids: list[JobId] = []
    finish_many = delivery_ends.finish_many

    def recorded(changes: Any, endings: list[Ending]) -> Any:  # noqa: ANN401 - as `finish_many` takes them
        ids.extend(ending.job.id for ending in endings)
        return finish_many(changes, endings)

    monkeypatch.setattr(delivery_ends, "finish_many", recorded)
    return ids


async def claims_of(client: Client, count: int) -> list[Claim]:
    for number in range(count):
        await client.enqueue("email", unique=f"key-{number}")
    return await client.claim_many("email", limit=count)


def add_follower(url: str, claim: Claim) -> None:
    """Write what the enqueue of a follower will write."""
    update = f"update {schema_of(url)}.windlass_job set has_followers = true where id = %s"
    cluster().run(update.encode(), [claim.job.id])


@pytest.mark.parametrize("keep", [True, False])
async def test_of_many_successes_only_those_of_followed_jobs_go_the_general_path(
    client: Client, schema: str, finished: list[JobId], *, keep: bool
) -> None:
    claims = await claims_of(client, 4)
    for claim in claims[1:3]:
        add_follower(schema, claim)

    results = await client.store.settle([settlement(claim, keep=keep) for claim in claims])
    [repeated] = await client.store.settle([settlement(claims[1], keep=keep)])

    assert results == [Settled.DONE] * 4
    assert repeated is (Settled.REPEATED if keep else Settled.LOST)
    assert finished == [claim.job.id for claim in claims[1:3]]
    stats = await client.stats("email")
    assert (stats.running, stats.succeeded, stats.totals.succeeded) == (0, 4 if keep else 0, 4)
    assert [(await client.enqueue("email", unique=f"key-{number}")).created for number in range(4)] == [True] * 4


@pytest.mark.parametrize("point", ["postgres.before_commit", "postgres.after_commit"])
@pytest.mark.parametrize("keep", [True, False])
async def test_a_followed_job_ends_once_whatever_fails_in_its_settlement(
    client: Client, schema: str, finished: list[JobId], point: str, *, keep: bool
) -> None:
    def fail() -> None:
        message = "once"
        raise Faulted(message)

    [claim] = await claims_of(client, 1)
    add_follower(schema, claim)
    # the fast statement, which leaves the job, reaches only the second point
    last = 2 if point == "postgres.after_commit" else 1
    fault = Fault(point, fail, lambda reached: reached == last)

    arm(point, fault)
    with pytest.raises(Faulted):
        await client.store.settle([settlement(claim, keep=keep)])
    disarm()
    [repeated] = await client.store.settle([settlement(claim, keep=keep)])

    committed = point == "postgres.after_commit"
    assert fault.fired == 1
    assert repeated is ((Settled.REPEATED if keep else Settled.LOST) if committed else Settled.DONE)
    assert finished == [claim.job.id] * (1 if committed else 2)
    stats = await client.stats("email")
    assert (stats.running, stats.succeeded, stats.totals.succeeded) == (0, int(keep), 1)


async def test_a_followed_job_that_brings_a_job_ends_once_when_its_settlement_fails(
    client: Client, schema: str, finished: list[JobId]
) -> None:
    def fail() -> None:
        message = "once"
        raise Faulted(message)

    [claim] = await claims_of(client, 1)
    add_follower(schema, claim)
    fault = Fault("postgres.settle.before_then", fail, lambda reached: reached == 1)

    arm(fault.point, fault)
    with pytest.raises(Faulted):
        await client.store.settle([settlement(claim)._replace(kv={b"done": b"yes"})])
    disarm()
    [done] = await client.store.settle([settlement(claim)._replace(kv={b"done": b"yes"})])

    assert done is Settled.DONE
    assert finished == [claim.job.id] * 2
    job = await client.get(claim.job.id)
    assert job is not None
    assert job.state is State.SUCCEEDED
