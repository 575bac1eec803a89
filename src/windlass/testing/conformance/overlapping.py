"""A schedule whose last job is unfinished makes no other, unless its runs may overlap."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import pytest

from windlass.core.ids import JobId
from windlass.core.job import Failure
from windlass.core.requests import Changed
from windlass.core.retention import KEEP_ALL
from windlass.core.schedule import Fired, FireOutcome, Schedule
from windlass.core.store import Store
from windlass.core.verdict import ToCancelled, ToDead, ToRetry
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.given import (
    HOUR,
    MINUTE,
    SECOND,
    a_job,
    a_schedule,
    claim_one,
    firing,
    kept,
    made,
    running_now,
    settlement,
    written,
)

LOST = FireOutcome.LOST
DONE = FireOutcome.DONE
OVERLAPS = FireOutcome.OVERLAPS


async def _scheduled(store: Store, job_id: JobId, clock: FakeClock) -> None:
    assert await store.reschedule([job_id], clock.now() + HOUR) == [Changed.DONE]


async def _pending(_store: Store, _job_id: JobId, _clock: FakeClock) -> None:
    pass


async def _running(store: Store, job_id: JobId, _clock: FakeClock) -> None:
    assert (await claim_one(store)).job.id == job_id


async def _retrying(store: Store, _job_id: JobId, _clock: FakeClock) -> None:
    claim = await claim_one(store)
    await store.settle([settlement(claim, ToRetry(HOUR, Failure("boom")))])


async def _expired(store: Store, _job_id: JobId, clock: FakeClock) -> None:
    """Its lease has run out, and nobody has rescued it yet."""
    await claim_one(store, lease=SECOND)
    clock.advance(MINUTE)


async def _succeeded(store: Store, _job_id: JobId, _clock: FakeClock) -> None:
    await store.settle([settlement(await claim_one(store))])


async def _dead(store: Store, _job_id: JobId, _clock: FakeClock) -> None:
    await store.settle([settlement(await claim_one(store), ToDead(Failure("boom")))])


async def _cancelled(store: Store, _job_id: JobId, _clock: FakeClock) -> None:
    await store.settle([settlement(await claim_one(store), ToCancelled("not wanted"))])


async def _removed(store: Store, job_id: JobId, _clock: FakeClock) -> None:
    await store.cancel([job_id], KEEP_ALL)


async def _not_kept(store: Store, _job_id: JobId, _clock: FakeClock) -> None:
    await store.settle([settlement(await claim_one(store), keep=False)])


async def _deleted(store: Store, job_id: JobId, _clock: FakeClock) -> None:
    await store.settle([settlement(await claim_one(store))])
    assert await store.delete([job_id]) == [Changed.DONE]


Lead: TypeAlias = Callable[[Store, JobId, FakeClock], Awaitable[None]]
UNFINISHED: Sequence[Lead] = (_scheduled, _pending, _running, _retrying, _expired)
FINISHED: Sequence[Lead] = (_succeeded, _dead, _cancelled, _removed, _not_kept, _deleted)


async def _fired_once(store: Store, clock: FakeClock, schedule: Schedule, lead: Lead) -> Schedule:
    """Fire a schedule that is due again at once, and lead its job where it is to stand."""
    before = await written(store, schedule)
    fired = await store.fire(firing(before, a_job(), next_run_at=clock.now()))
    assert fired.job_id is not None
    await lead(store, fired.job_id, clock)
    return await kept(store, schedule.id)


@pytest.mark.parametrize("lead", UNFINISHED)
async def test_an_unfinished_job_stands_in_the_way_of_the_next(store: Store, clock: FakeClock, lead: Lead) -> None:
    schedule = await _fired_once(store, clock, a_schedule(next_run_at=clock.now(), overlap="skip"), lead)

    fired = await store.fire(firing(schedule, a_job(), next_run_at=clock.now() + HOUR))

    after = await kept(store, "nightly")
    assert fired == Fired(OVERLAPS, schedule.last_job_id)
    assert len(await made(store)) == 1
    assert after == replace(schedule, next_run_at=clock.now() + HOUR, revision=after.revision)


@pytest.mark.parametrize("lead", FINISHED)
async def test_a_finished_job_stands_in_nobodys_way(store: Store, clock: FakeClock, lead: Lead) -> None:
    schedule = await _fired_once(store, clock, a_schedule(next_run_at=clock.now(), overlap="skip"), lead)
    job = a_job()

    assert await store.fire(firing(schedule, job)) == Fired(DONE, job.id)

    assert job.id in {each.id for each in await made(store)}


@pytest.mark.parametrize("lead", UNFINISHED)
async def test_where_runs_may_overlap_no_job_stands_in_the_way(store: Store, clock: FakeClock, lead: Lead) -> None:
    schedule = await _fired_once(store, clock, a_schedule(next_run_at=clock.now(), overlap="allow"), lead)

    assert (await store.fire(firing(schedule, a_job()))).outcome is DONE

    assert len(await made(store)) == 2


async def test_a_due_time_that_was_skipped_is_over(store: Store, clock: FakeClock) -> None:
    schedule = await _fired_once(store, clock, a_schedule(next_run_at=clock.now(), overlap="skip"), _running)
    await store.fire(firing(schedule, a_job(), next_run_at=clock.now()))

    again = await store.fire(firing(schedule, a_job(), next_run_at=clock.now()))

    assert again == Fired(LOST, schedule.last_job_id)
    assert len(await made(store)) == 1


async def test_a_run_that_somebody_asks_for_may_be_in_the_way_of_the_next(store: Store, clock: FakeClock) -> None:
    before = await written(store, a_schedule(next_run_at=clock.now(), overlap="skip"))
    asked_for = await store.fire(running_now(before, a_job()))
    schedule = await kept(store, "nightly")

    assert await store.fire(firing(schedule, a_job())) == Fired(OVERLAPS, asked_for.job_id)


async def test_a_run_that_somebody_asks_for_does_not_overlap_and_changes_nothing_then(
    store: Store, clock: FakeClock
) -> None:
    schedule = await _fired_once(store, clock, a_schedule(next_run_at=clock.now(), overlap="skip"), _running)

    assert await store.fire(running_now(schedule, a_job())) == Fired(OVERLAPS, schedule.last_job_id)

    assert await kept(store, "nightly") == schedule
    assert len(await made(store)) == 1


async def test_nothing_stands_in_the_way_of_a_firing_without_jobs(store: Store, clock: FakeClock) -> None:
    schedule = await _fired_once(store, clock, a_schedule(next_run_at=clock.now(), overlap="skip"), _running)

    assert await store.fire(firing(schedule)) == Fired(DONE, schedule.last_job_id)
