"""A schedule that fires makes its jobs and moves on, in one step that happens once per due time."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from windlass.client.client import Client
from windlass.core.errors import UniqueConflict
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.schedule import Fired, FireOutcome
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import Woken, asleep
from windlass.testing.conformance.given import (
    HOUR,
    MINUTE,
    SECOND,
    a_job,
    a_schedule,
    firing,
    kept,
    made,
    running_now,
    written,
)
from windlass.testing.conformance.reach import Reach

LOST = FireOutcome.LOST
DONE = FireOutcome.DONE


async def test_a_due_schedule_makes_its_job_and_moves_on(store: Store, clock: FakeClock) -> None:
    due_at = clock.now()
    schedule = await written(store, a_schedule(next_run_at=due_at))
    clock.advance(SECOND)

    fired = await store.fire(firing(schedule, a_job(kind="report", payload=b"p"), next_run_at=due_at + MINUTE))

    [job] = await made(store)
    assert fired == Fired(DONE, job.id)
    assert (job.kind, job.payload, job.schedule_id) == ("report", b"p", "nightly")
    assert (job.state, job.run_at, job.created_at) == (State.PENDING, clock.now(), clock.now())
    after = await kept(store, "nightly")
    assert after.revision != schedule.revision
    assert after == replace(
        schedule, next_run_at=due_at + MINUTE, last_run_at=due_at, last_job_id=job.id, revision=after.revision
    )


async def test_a_schedule_that_has_moved_on_is_due_at_its_next_time(store: Store, clock: FakeClock) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))

    await store.fire(firing(schedule, a_job(), next_run_at=clock.now() + MINUTE))

    assert await store.due_schedules([], limit=10) == (clock.now(), [], clock.now() + MINUTE)
    clock.advance(MINUTE)
    [again] = (await store.due_schedules([], limit=10)).due
    assert (await store.fire(firing(again, a_job()))).outcome is DONE
    assert len(await made(store)) == 2


async def test_a_schedule_without_a_next_time_is_never_due_again(store: Store, clock: FakeClock) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))

    await store.fire(firing(schedule, a_job(), next_run_at=None))

    after = await kept(store, "nightly")
    assert after.next_run_at is None
    assert await store.due_schedules([], limit=10) == (clock.now(), [], None)
    assert await store.fire(firing(after, a_job())._replace(tick=clock.now())) == Fired(LOST, after.last_job_id)


async def test_a_firing_wakes_whoever_waits_for_a_job(
    client: Client, store: Store, clock: FakeClock, woken: Woken
) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))
    waiting = await asleep(clock, client.claim("default", wait=60))

    fired = await store.fire(firing(schedule, a_job()))

    claim = await woken(waiting)
    assert claim is not None
    assert (claim.job.id, claim.job.schedule_id) == (fired.job_id, "nightly")


async def test_the_jobs_of_a_firing_are_counted(store: Store, clock: FakeClock) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))

    await store.fire(firing(schedule, a_job(), a_job(), a_job(delay=HOUR)))

    [stats] = await store.stats("default")
    assert (stats.pending, stats.scheduled, stats.totals.enqueued) == (2, 1, 3)


async def test_the_jobs_of_a_firing_are_in_its_order_and_the_last_one_is_the_last(
    store: Store, clock: FakeClock
) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))
    jobs = [a_job(payload=bytes([n])) for n in range(100)]

    fired = await store.fire(firing(schedule, *jobs))

    assert [job.payload for job in await made(store)] == [job.payload for job in jobs]
    assert fired.job_id == (await kept(store, "nightly")).last_job_id == jobs[-1].id


async def test_a_firing_without_jobs_only_moves_on(store: Store, clock: FakeClock) -> None:
    last = JobId("01890000-0000-7000-8000-000000000001")
    schedule = await written(
        store, replace(a_schedule(next_run_at=clock.now()), last_job_id=last, last_run_at=clock.now() - HOUR)
    )

    assert await store.fire(firing(schedule, next_run_at=clock.now() + HOUR)) == Fired(DONE, last)

    after = await kept(store, "nightly")
    assert after == replace(schedule, next_run_at=clock.now() + HOUR, revision=after.revision)
    assert after.revision != schedule.revision


async def test_a_due_time_is_fired_once(store: Store, clock: FakeClock) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))
    fired = await store.fire(firing(schedule, a_job(), next_run_at=clock.now()))
    after = await kept(store, "nightly")

    # the next time has come too: what tells the two apart is the revision alone
    assert await store.fire(firing(schedule, a_job())) == Fired(LOST, fired.job_id)

    assert len(await made(store)) == 1
    assert await kept(store, "nightly") == after


async def test_of_ten_rivals_one_fires(new_store: Callable[[], Store], store: Store, clock: FakeClock) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))
    other = new_store()
    await other.open()

    fired = await asyncio.gather(
        *(door.fire(firing(schedule, a_job(), next_run_at=clock.now())) for door in [store, other] * 5)
    )

    await other.close()
    [job] = await made(store)
    assert sorted(each.outcome.name for each in fired) == ["DONE"] + ["LOST"] * 9
    assert [each.job_id for each in fired if each.outcome is DONE] == [job.id]


async def test_schedules_that_are_due_together_each_make_their_job(store: Store, clock: FakeClock) -> None:
    schedules = [await written(store, a_schedule(f"s{n}", clock.now())) for n in range(50)]

    fired = await asyncio.gather(*(store.fire(firing(schedule, a_job())) for schedule in schedules))

    assert {each.outcome for each in fired} == {DONE}
    assert [len(await made(store, schedule.id)) for schedule in schedules] == [1] * 50


async def test_a_schedule_that_is_not_due_does_not_fire(store: Store, clock: FakeClock) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now() + SECOND))

    assert await store.fire(firing(schedule, a_job(), next_run_at=clock.now() + MINUTE)) == Fired(LOST)

    assert await made(store) == []
    assert await kept(store, "nightly") == schedule


async def test_a_paused_schedule_does_not_fire(store: Store, clock: FakeClock) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now(), paused=True))

    assert await store.fire(firing(schedule, a_job())) == Fired(LOST)

    assert await made(store) == []
    assert await kept(store, "nightly") == schedule


async def test_a_schedule_that_was_changed_meanwhile_does_not_fire(
    store: Store, clock: FakeClock, reach: Reach
) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))
    other = replace(schedule, queue=reach.queue("other"), payload=b"other")
    await store.write_schedule(other, expected=schedule.revision)
    changed = await kept(store, "nightly")

    assert await store.fire(firing(schedule, a_job())) == Fired(LOST)

    assert await made(store) == []
    assert await kept(store, "nightly") == changed


async def test_a_schedule_that_was_removed_meanwhile_does_not_fire(store: Store, clock: FakeClock) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))
    await store.remove_schedule("nightly")

    assert await store.fire(firing(schedule, a_job())) == Fired(LOST)
    await written(store, a_schedule(next_run_at=clock.now()))
    assert await store.fire(firing(schedule, a_job())) == Fired(LOST)

    assert await made(store) == []


async def test_a_removed_schedule_leaves_its_jobs(store: Store, clock: FakeClock) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))
    await store.fire(firing(schedule, a_job()))

    await store.remove_schedule("nightly")

    [job] = await made(store)
    assert (job.state, job.schedule_id) == (State.PENDING, "nightly")


@pytest.mark.parametrize("paused", [False, True])
async def test_a_run_that_somebody_asks_for_moves_nothing(store: Store, clock: FakeClock, *, paused: bool) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now() + HOUR, paused=paused))

    fired = await store.fire(running_now(schedule, a_job()))

    [job] = await made(store)
    after = await kept(store, "nightly")
    assert fired == Fired(DONE, job.id)
    assert after == replace(schedule, last_job_id=job.id, revision=after.revision)


async def test_a_run_that_somebody_asks_for_leaves_the_due_time_to_come(store: Store, clock: FakeClock) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))

    await store.fire(running_now(schedule, a_job()))

    [due] = (await store.due_schedules([], limit=10)).due
    assert (await store.fire(firing(due, a_job()))).outcome is DONE
    assert len(await made(store)) == 2


async def test_a_run_that_somebody_asks_for_needs_the_revision_too(store: Store, clock: FakeClock) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now() + HOUR))
    fired = await store.fire(running_now(schedule, a_job()))

    assert await store.fire(running_now(schedule, a_job())) == Fired(LOST, fired.job_id)

    assert len(await made(store)) == 1


async def test_a_job_that_is_here_already_is_not_made_twice(store: Store, clock: FakeClock) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))
    job = a_job()
    await store.enqueue([job])

    assert await store.fire(firing(schedule, job, next_run_at=clock.now() + HOUR)) == Fired(DONE, job.id)

    assert len(await store.jobs(JobFilter(), after=None, limit=10)) == 1
    assert (await kept(store, "nightly")).next_run_at == clock.now() + HOUR


async def test_a_firing_that_is_refused_neither_makes_jobs_nor_moves_on(
    store: Store, clock: FakeClock, reach: Reach
) -> None:
    """What came before the refusal in the same firing is undone with it."""
    schedule = await written(store, a_schedule(next_run_at=clock.now()))
    neighbour = await written(store, a_schedule("neighbour", clock.now()))
    key = Unique("k", until="finished", on_conflict="raise")
    await store.enqueue([a_job(unique=key)])

    both = asyncio.gather(
        store.fire(firing(schedule, a_job(kv=reach.kv({b"k": b"v"})), a_job(unique=key))),
        store.fire(firing(neighbour, a_job())),
        return_exceptions=True,
    )
    refused, fired = await both

    assert isinstance(refused, UniqueConflict)
    assert isinstance(fired, Fired)
    assert fired.outcome is DONE
    assert await kept(store, "nightly") == schedule
    assert (await made(store), await store.kv_get([b"k"])) == ([], [None])
