"""What stands between a job and its claim: those ahead of it in line, and who holds its key."""

from datetime import timedelta

import pytest

from windlass.core.ids import JobId
from windlass.core.job import Failure, PreparedJob
from windlass.core.looks import Place
from windlass.core.requests import Changed
from windlass.core.retention import KEEP_ALL
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToDead
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.given import (
    HOUR,
    MINUTE,
    SECOND,
    UNKNOWN,
    a_job,
    claim_one,
    released,
    settlement,
    wanting,
)

FINISHED = Unique("k", until="finished")
BY_TIME = Unique("k", until=HOUR)


async def _place(store: Store, job: PreparedJob) -> Place:
    place = await store.place(job.id)
    assert place is not None
    return place


async def _holder(store: Store, job: PreparedJob) -> JobId | None:
    return (await _place(store, job)).key_holder


async def test_an_unknown_job_has_no_place(store: Store) -> None:
    assert await store.place(UNKNOWN) is None


async def test_places_are_in_the_order_of_claims(store: Store, clock: FakeClock) -> None:
    jobs = [a_job(kind=(None, "x")[n % 2])._replace(priority=(2, 1, 3)[n % 3]) for n in range(9)]
    for n, job in enumerate(jobs):
        await store.enqueue([job])
        await store.enqueue([a_job("sms")._replace(priority=0)])
        clock.advance(SECOND if n % 2 else timedelta(0))
    places = {job.id: await store.place(job.id) for job in jobs}

    claims = (await store.claim(wanting(limit=9))).jobs

    assert [places[claim.job.id] for claim in claims] == [Place(clock.now(), n, None) for n in range(9)]


async def test_an_earlier_run_time_is_ahead_of_an_earlier_enqueue(store: Store, clock: FakeClock) -> None:
    late, early, later = a_job(delay=2 * SECOND), a_job(delay=SECOND), a_job(delay=HOUR)
    await store.enqueue([late, early, later])
    clock.advance(MINUTE)
    # what has come due counts from its promotion on
    assert (await _place(store, late)).ahead is None

    await store.promote(limit=10)

    assert [(await _place(store, job)).ahead for job in (late, early, later)] == [1, 0, None]


async def test_those_ahead_are_counted_up_to_a_thousand(store: Store) -> None:
    jobs = [a_job(kind=(None, "x")[n % 2]) for n in range(1_003)]
    await store.enqueue(jobs)

    ahead = [(await _place(store, jobs[at])).ahead for at in (999, 1_000, 1_001, 1_002)]

    assert ahead == [999, 1_000, 1_000, 1_000]


async def test_those_ahead_are_counted_in_a_paused_queue_too(store: Store) -> None:
    jobs = [a_job() for _ in range(3)]
    await store.enqueue(jobs)
    await store.set_paused("default", paused=True)

    assert [(await _place(store, job)).ahead for job in jobs] == [0, 1, 2]


async def test_only_a_pending_job_has_others_ahead(store: Store) -> None:
    running, done, later, waiting = a_job(), a_job(), a_job(delay=HOUR), a_job()
    await store.enqueue([running, done, later, waiting])
    claims = (await store.claim(wanting(limit=2))).jobs
    await store.settle([settlement(claims[1])])

    assert [(await _place(store, job)).ahead for job in (running, done, later, waiting)] == [None, None, None, 0]


async def test_who_left_the_line_is_ahead_of_nobody_and_who_came_back_is(store: Store) -> None:
    jobs = [a_job() for _ in range(5)]
    await store.enqueue(jobs)
    claim = await claim_one(store)
    await store.cancel([jobs[2].id], KEEP_ALL)
    assert [(await _place(store, job)).ahead for job in jobs] == [None, 0, None, 1, 2]

    await store.settle([released(claim)])

    assert [(await _place(store, job)).ahead for job in jobs] == [0, 1, None, 2, 3]


async def test_a_waiting_job_holds_its_key_itself(store: Store) -> None:
    keyed, plain = a_job(unique=Unique("k"), delay=HOUR), a_job()
    await store.enqueue([keyed, plain])

    assert await _holder(store, keyed) == keyed.id
    assert await _holder(store, plain) is None


async def test_who_took_the_key_of_a_running_job_is_told(store: Store) -> None:
    first, second = a_job(unique=Unique("k")), a_job(unique=Unique("k"))
    await store.enqueue([first])
    claim = await claim_one(store)
    assert await _holder(store, first) is None
    await store.enqueue([second])
    assert await _holder(store, first) == second.id

    await store.settle([released(claim)])

    # it waits without a key now, and will never need it
    assert await _holder(store, first) is None


@pytest.mark.parametrize("end", ["cancel", "dead"])
async def test_who_holds_the_key_that_a_retry_would_need_is_told(store: Store, end: str) -> None:
    first, second = a_job(unique=FINISHED), a_job(unique=FINISHED)
    await store.enqueue([first])
    if end == "cancel":
        await store.cancel([first.id], KEEP_ALL)
    else:
        await store.settle([settlement(await claim_one(store), ToDead(Failure("no")))])
    assert await _holder(store, first) is None

    await store.enqueue([second])

    assert await store.retry([first.id]) == [Changed.KEY_HELD]
    assert await _holder(store, first) == second.id


async def test_a_finished_job_holds_its_key_until_the_time_is_over(store: Store, clock: FakeClock) -> None:
    job = a_job(unique=BY_TIME)
    await store.enqueue([job])
    await store.settle([settlement(await claim_one(store))])
    assert await _holder(store, job) == job.id

    clock.advance(HOUR)

    assert await _holder(store, job) is None
