"""What a claim by kinds costs: one look per queue while all that is ahead is wanted, and few more when it is not."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from datetime import timedelta

import pytest

from tests.stores.sqlite.conftest import Disk
from windlass.connect import open_store
from windlass.core.job import Claim
from windlass.core.requests import ClaimRequest
from windlass.core.store import Store
from windlass.testing.conformance.given import a_job

KINDS = [f"kind-{number:02}" for number in range(50)]
QUEUES = ["a", "b", "c"]


@pytest.fixture
async def store(disk: Disk, url: str) -> AsyncIterator[Store]:
    assert disk.connection is None
    store = open_store(url)
    await store.open()
    yield store
    await store.close()


async def claim_traced(store: Store, disk: Disk, *, by_priority: bool) -> tuple[Sequence[Claim], list[str]]:
    """Claim, and return also the statements that looked for ready jobs."""
    traced: list[str] = []
    assert disk.connection is not None
    disk.connection.set_trace_callback(traced.append)
    claims = (
        await store.claim(ClaimRequest(QUEUES, 20, timedelta(minutes=1), kinds=KINDS, by_priority=by_priority))
    ).jobs
    disk.connection.set_trace_callback(None)
    return claims, [statement for statement in traced if "by windlass_ready" in statement]


async def test_a_claim_that_finds_nothing_changes_nothing_also_by_name(store: Store, url: str) -> None:
    """A change would wake whoever waits in other processes, who would claim in vain again."""
    await store.enqueue([a_job("other")])
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as looks:
        [before] = looks.execute("pragma data_version").fetchone()

        for name in (None, "r1", "r2", "r1"):
            assert (await store.claim(ClaimRequest(QUEUES, 20, timedelta(minutes=1)), request_id=name)).jobs == []

        assert looks.execute("pragma data_version").fetchone() == (before,)


@pytest.mark.parametrize("by_priority", [False, True])
async def test_a_claim_of_many_kinds_looks_once_at_each_queue(store: Store, disk: Disk, *, by_priority: bool) -> None:
    await store.enqueue([a_job(queue, kind=kind) for queue in QUEUES for kind in KINDS[:5]])

    claims, looks = await claim_traced(store, disk, by_priority=by_priority)

    assert len(claims) == 15
    assert len(looks) == len(QUEUES)


@pytest.mark.parametrize("by_priority", [False, True])
async def test_jobs_of_other_kinds_ahead_cost_a_look_for_each_kind_that_waits(
    store: Store, disk: Disk, *, by_priority: bool
) -> None:
    await store.enqueue([a_job(queue, kind="unknown") for queue in QUEUES for _ in range(1_000)])
    await store.enqueue([a_job(queue, kind=kind) for queue in QUEUES for kind in KINDS[:2]])

    claims, looks = await claim_traced(store, disk, by_priority=by_priority)

    assert len(claims) == 6
    # the head of the queue, which kinds there are, and the head of each of the two
    assert len(looks) == len(QUEUES) * 4
