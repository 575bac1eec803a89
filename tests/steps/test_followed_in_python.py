"""Jobs that others follow, on the stores that hold jobs as records of Python: every end is a general one."""

from collections.abc import AsyncIterator

import pytest

from tests.steps.python_recorder import watched_table
from tests.steps.recording import ENDS, STOPS_RUNNING, Step
from tests.stores.slatedb.breaking import breaking, counts_are_right, repeated
from tests.stores.slatedb.lived import job, numbered
from tests.stores.slatedb.opened import in_room, new_address, opened, table_of
from windlass.core.failpoint import arm
from windlass.core.job import Claim
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.verdict import ToReleased
from windlass.stores.memory import MemoryStore
from windlass.stores.memory.atomic_step import AtomicStep
from windlass.stores.slatedb import SlateStore
from windlass.testing import FakeClock, SeededRng
from windlass.testing.conformance.given import claim_one, settlement


async def followed(store: SlateStore) -> Claim:
    """Claim a job, which another one follows from then on."""
    await store.enqueue([job(1)])
    claim = await claim_one(store, "email")

    async def flag() -> None:
        table = table_of(store)
        await table.find([claim.job.id])
        record = table.jobs[claim.job.id]
        record.has_followers = True
        table.changed(record)
        await table.write()

    await in_room(store, flag)
    return claim


async def is_flagged(store: SlateStore) -> bool:
    async def look() -> bool:
        await table_of(store).find([numbered(1)])
        return table_of(store).jobs[numbered(1)].has_followers

    return await in_room(store, look)


@pytest.fixture
async def store() -> AsyncIterator[SlateStore]:
    async with opened() as store:
        yield store


async def ended_once(store: Store) -> None:
    [stats] = await store.stats("email")
    assert (stats.running, stats.succeeded, stats.totals.succeeded) == (0, 1, 1)


async def test_in_memory_a_followed_job_ends_through_its_steps() -> None:
    store = MemoryStore(clock=FakeClock(), rng=SeededRng())
    await store.enqueue([job(1)])
    claim = await claim_one(store, "email")
    step: AtomicStep = vars(store)["_step"]
    with step as state:
        state.table.jobs[claim.job.id].has_followers = True

    steps: list[Step] = []
    with watched_table(steps):
        await store.settle([settlement(claim)])

    assert [step.name for step in steps] == [STOPS_RUNNING, ENDS]
    await ended_once(store)


async def test_the_flag_stays_when_the_job_waits_again_and_when_the_database_is_opened_again() -> None:
    address = new_address()
    async with opened(address) as store:
        claim = await followed(store)
        await store.settle([settlement(claim, ToReleased())])
        assert await is_flagged(store)
    async with opened(address) as store:
        claim = await claim_one(store, "email")
        assert await is_flagged(store)
        await store.settle([settlement(claim)])
        assert await is_flagged(store)


@pytest.mark.parametrize("point", ["slatedb.before_flush", "slatedb.after_flush"])
async def test_a_followed_job_ends_once_when_a_settlement_fails_at_a_failpoint(store: SlateStore, point: str) -> None:
    claim = await followed(store)
    faults = iter([OSError("by plan")])

    def fail_once() -> None:
        for fault in faults:
            raise fault

    arm(point, fail_once)
    steps: list[Step] = []
    with watched_table(steps):
        _, errors = await repeated(lambda: store.settle([settlement(claim)]))

    assert errors
    assert {step.name for step in steps} == {STOPS_RUNNING, ENDS}
    assert await is_flagged(store)
    await ended_once(store)
    assert await counts_are_right(store)


@pytest.mark.parametrize("breaks_at", ["write", "flush"])
async def test_a_followed_job_ends_once_when_the_database_breaks(store: SlateStore, breaks_at: str) -> None:
    claim = await followed(store)
    steps: list[Step] = []
    with watched_table(steps):
        await breaking(store, breaks_at, lambda: store.settle([settlement(claim)]))
        await repeated(lambda: store.settle([settlement(claim)]))

    assert [step.name for step in steps] == [STOPS_RUNNING, ENDS]
    assert await is_flagged(store)
    await ended_once(store)
    [found] = await store.get([claim.job.id])
    assert found is not None
    assert found.state is State.SUCCEEDED
