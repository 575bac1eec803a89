"""A job that other jobs follow ends by the general path, also when its follower came after its claim."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from windlass import Claim, Client, JobId, State
from windlass.core.failpoint import arm, disarm
from windlass.core.requests import Settled
from windlass.stores.sqlite.moves import delivery_ends
from windlass.stores.sqlite.rows import Standing
from windlass.testing.conformance.given import settlement
from windlass.testing.failpoints import Fault, Faulted


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> list[JobId]:
    """The jobs that the general path has ended, in order."""
    ids: list[JobId] = []
    finish = delivery_ends.finish

    def recorded(tx: Any, job: Standing, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as `finish` takes them
        ids.append(job.id)
        finish(tx, job, *args, **options)

    monkeypatch.setattr(delivery_ends, "finish", recorded)
    return ids


async def claims_of(client: Client, count: int) -> list[Claim]:
    for number in range(count):
        await client.enqueue("email", unique=f"key-{number}")
    return await client.claim_many("email", limit=count)


def add_follower(path: Path, claim: Claim) -> None:
    """Write what the enqueue of a follower will write."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("update windlass_job set has_followers = 1 where id = ?", (claim.job.id,))


@pytest.mark.parametrize("keep", [True, False])
async def test_of_many_successes_only_those_of_followed_jobs_go_the_general_path(
    client: Client, path: Path, finished: list[JobId], *, keep: bool
) -> None:
    claims = await claims_of(client, 4)
    for claim in claims[1:3]:
        add_follower(path, claim)

    # the last settlement repeats one of a followed job
    settlements = [settlement(claim, keep=keep) for claim in [*claims, claims[1]]]
    results = await client.store.settle(settlements)

    assert results == [Settled.DONE] * 4 + [Settled.REPEATED if keep else Settled.LOST]
    assert finished == [claim.job.id for claim in claims[1:3]]
    stats = await client.stats("email")
    assert (stats.running, stats.succeeded, stats.totals.succeeded) == (0, 4 if keep else 0, 4)
    assert [(await client.enqueue("email", unique=f"key-{number}")).created for number in range(4)] == [True] * 4


@pytest.mark.parametrize("point", ["sqlite.settle.before_then", "sqlite.before_commit", "sqlite.after_commit"])
async def test_a_followed_job_ends_once_whatever_fails_in_its_settlement(
    client: Client, path: Path, finished: list[JobId], point: str
) -> None:
    def fail() -> None:
        message = "once"
        raise Faulted(message)

    [claim] = await claims_of(client, 1)
    add_follower(path, claim)
    fault = Fault(point, fail, lambda reached: reached == 1)

    arm(point, fault)
    with pytest.raises(Faulted):
        await client.store.settle([settlement(claim)])
    disarm()
    [repeated] = await client.store.settle([settlement(claim)])

    committed = point == "sqlite.after_commit"
    assert repeated is (Settled.REPEATED if committed else Settled.DONE)
    assert finished == [claim.job.id] * (1 if committed else 2)
    stats = await client.stats("email")
    assert (stats.running, stats.succeeded, stats.totals.succeeded) == (0, 1, 1)
    job = await client.get(claim.job.id)
    assert job is not None
    assert job.state is State.SUCCEEDED
