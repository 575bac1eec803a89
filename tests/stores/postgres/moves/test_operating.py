"""What people do to many jobs at once: a few statements, and an answer for each."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.stores.postgres.moves.moving import Counted, Mover
from windlass.core.commands import CancelJobs, DeleteJobs, RescheduleJobs, RetryJobs
from windlass.core.ids import JobId
from windlass.core.requests import CancelOutcome, Changed, Settlement
from windlass.core.retention import KEEP_ALL, Keep, Retention
from windlass.core.states import State
from windlass.core.unique import Unique
from windlass.core.verdict import ToSucceeded
from windlass.stores.postgres.moves.ack import ack_many
from windlass.stores.postgres.moves.enqueue import insert_any
from windlass.stores.postgres.moves.operate import cancel, delete, reschedule, retry
from windlass.stores.postgres.work import Changes, Work
from windlass.testing.conformance.given import HOUR, UNKNOWN, a_job

MANY = 1000
REMOVED, REQUESTED, NOT_FOUND = CancelOutcome.REMOVED, CancelOutcome.REQUESTED, CancelOutcome.NOT_FOUND
FORGET = Retention(Keep(timedelta(0), timedelta(0), timedelta(0)))


async def test_each_of_many_jobs_is_cancelled_once_and_told_apart(mover: Mover) -> None:
    running, pending, scheduled = await mover.enqueue(a_job(), a_job(), a_job(delay=HOUR))
    await mover.claim()
    ids = [UNKNOWN, scheduled, running, pending, scheduled, running]

    outcomes = await mover.do(cancel, CancelJobs(ids, KEEP_ALL))

    assert outcomes == [NOT_FOUND, REMOVED, REQUESTED, REMOVED, NOT_FOUND, REQUESTED]
    stats = await mover.stats()
    assert (stats.scheduled, stats.pending, stats.running, stats.cancelled) == (0, 0, 1, 2)
    assert stats.totals.cancelled == 2


async def test_a_cancelled_record_that_is_not_kept_goes_at_once(mover: Mover) -> None:
    ids = await mover.enqueue(a_job(), a_job())

    assert await mover.do(cancel, CancelJobs(ids, FORGET)) == [REMOVED, REMOVED]

    assert mover.run("select 1 from windlass_job") == []
    assert (await mover.stats()).cancelled == 0


@pytest.mark.parametrize("end", ["ack", "cancel", "delete"])
async def test_no_delivery_is_left_of_a_job_that_was_retried_before_its_first_claim(mover: Mover, end: str) -> None:
    [job_id] = await mover.enqueue(a_job())
    await mover.do(cancel, CancelJobs([job_id], KEEP_ALL))
    await mover.do(retry, RetryJobs([job_id]))
    assert mover.run("select delivery, outcome from windlass_delivery") == [(0, "cancelled")]

    if end == "ack":
        [claim] = await mover.claim()
        done = Settlement(claim.job.id, claim.token, ToSucceeded(), keep=False)
        await mover.do(ack_many, [done], "request", patience="1s")
    else:
        await mover.do(cancel, CancelJobs([job_id], FORGET if end == "cancel" else KEEP_ALL))
    if end == "delete":
        await mover.do(delete, DeleteJobs([job_id]))

    assert mover.run("select 1 from windlass_job union all select 1 from windlass_delivery") == []


async def test_a_job_named_twice_is_retried_once_and_deleted_once(mover: Mover) -> None:
    dead, gone = await mover.enqueue(a_job(), a_job())
    await mover.do(cancel, CancelJobs([dead, gone], KEEP_ALL))

    assert await mover.do(retry, RetryJobs([dead, UNKNOWN, dead])) == [
        Changed.DONE,
        Changed.NOT_FOUND,
        Changed.WRONG_STATE,
    ]
    assert await mover.do(delete, DeleteJobs([gone, dead, gone])) == [
        Changed.DONE,
        Changed.WRONG_STATE,
        Changed.NOT_FOUND,
    ]


async def test_of_two_retried_jobs_with_one_key_the_first_has_it(mover: Mover) -> None:
    key = Unique("k", until="finished")
    jobs = [a_job(unique=key), a_job(unique=key)]
    for job in jobs:
        await mover.do(insert_any, [job])
        await mover.do(cancel, CancelJobs([job.id], KEEP_ALL))
    first, second = (job.id for job in jobs)

    answers = await mover.do(retry, RetryJobs([second, first]))

    assert sorted(answer.value for answer in answers) == ["done", "key_held"]
    [(holder,)] = mover.run("select job_id::text from windlass_hold")
    assert (await mover.get(holder)).state is State.PENDING


async def test_a_time_that_is_past_means_now_and_the_last_one_there_is_is_kept(mover: Mover) -> None:
    early, late = await mover.enqueue(a_job(delay=HOUR), a_job())
    last = datetime.max.replace(tzinfo=UTC)

    await mover.do(reschedule, RescheduleJobs([early], datetime(1, 1, 1, tzinfo=UTC)))
    await mover.do(reschedule, RescheduleJobs([late], last))

    job = await mover.get(early)
    assert (job.state, job.run_at > job.created_at) == (State.PENDING, True)
    job = await mover.get(late)
    assert (job.state, job.run_at) == (State.SCHEDULED, last)


async def test_what_is_put_back_waits_from_the_moment_of_the_write_on(mover: Mover) -> None:
    """Marks rest on it: a job that becomes pending stands behind every mark, or lowers it."""
    [job_id] = await mover.enqueue(a_job())
    await mover.do(cancel, CancelJobs([job_id], KEEP_ALL))
    [(before,)] = mover.run("select clock_timestamp()")

    await mover.do(retry, RetryJobs([job_id]))

    assert (await mover.get(job_id)).run_at > before


def cancel_all(changes: Changes, ids: list[JobId]) -> Work[list[CancelOutcome]]:
    return cancel(changes, CancelJobs(ids, KEEP_ALL))


def run_now(changes: Changes, ids: list[JobId]) -> Work[list[Changed]]:
    return reschedule(changes, RescheduleJobs(ids, None))


def retry_all(changes: Changes, ids: list[JobId]) -> Work[list[Changed]]:
    return retry(changes, RetryJobs(ids))


def delete_all(changes: Changes, ids: list[JobId]) -> Work[list[Changed]]:
    return delete(changes, DeleteJobs(ids))


@pytest.mark.parametrize("move", [cancel_all, run_now, retry_all, delete_all])
async def test_a_thousand_jobs_are_a_handful_of_statements(
    mover: Mover, move: Callable[[Changes, list[JobId]], Work[list[Any]]]
) -> None:
    ids = await mover.enqueue(*(a_job() for _ in range(MANY)))
    if move in {retry_all, delete_all}:
        await mover.do(cancel, CancelJobs(ids, KEEP_ALL))
    counted = Counted()

    answers = await mover.do(lambda changes: counted(move(changes, ids)))

    assert {answer.value for answer in answers} <= {"removed", "done"}
    assert (len(answers), len(counted.statements) <= 4) == (MANY, True)
