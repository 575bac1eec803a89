"""What tests begin with."""

from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

from windlass.client.client import Client
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import NO_HEADERS, Claim, Job, PreparedJob
from windlass.core.requests import ClaimRequest, Settlement
from windlass.core.retry import Fixed
from windlass.core.schedule import Firing, Overlap, Schedule
from windlass.core.settings import QueueSettings
from windlass.core.store import Store
from windlass.core.unique import Unique, hold
from windlass.core.verdict import ToReleased, ToSucceeded, Verdict

SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
AT_ONCE: Final = QueueSettings(retry=Fixed(0))
"""A failed attempt is followed by the next without a wait."""
UNKNOWN: Final = JobId("00000000-0000-7000-8000-000000000000")


def a_job(
    queue: str = "default",
    *,
    payload: bytes = b"",
    kind: str | None = None,
    max_attempts: int = 3,
    delay: timedelta | None = None,
    run_at: datetime | None = None,
    unique: Unique | None = None,
    kv: dict[bytes, bytes | None] | None = None,
    schedule_id: str | None = None,
) -> PreparedJob:
    """Return a job as stores take it."""
    return PreparedJob(
        id=JobId(str(uuid4())),
        queue=queue,
        kind=kind,
        payload=payload,
        codec="raw",
        headers=NO_HEADERS,
        tenant=None,
        priority=1000,
        max_attempts=max_attempts,
        run_at=run_at,
        delay=delay,
        unique=None if unique is None else hold(unique, queue=queue, kind=kind, tenant=None, payload=payload),
        kv=kv or {},
        schedule_id=schedule_id,
    )


def a_schedule(
    schedule_id: str = "nightly",
    next_run_at: datetime | None = None,
    *,
    overlap: Overlap = "allow",
    declared: bool = False,
    paused: bool = False,
) -> Schedule:
    """Return a schedule as stores take it, for raw jobs of the default queue."""
    return Schedule(
        id=schedule_id,
        rule="*/5 * * * *",
        queue="default",
        codec="raw",
        priority=1000,
        max_attempts=3,
        overlap=overlap,
        declared=declared,
        paused=paused,
        next_run_at=next_run_at,
    )


async def written(store: Store, schedule: Schedule) -> Schedule:
    """Write a schedule that is new, and return it as it is kept."""
    assert await store.write_schedule(schedule, expected=None) is not None
    return await kept(store, schedule.id)


async def kept(store: Store, schedule_id: str) -> Schedule:
    """Return a schedule that must be there."""
    [schedule] = (await store.schedules([schedule_id])).schedules
    return schedule


def firing(schedule: Schedule, *jobs: PreparedJob, next_run_at: datetime | None = None) -> Firing:
    """Return what a server does when `schedule` is due."""
    made = [job._replace(schedule_id=schedule.id) for job in jobs]
    return Firing(schedule.id, schedule.revision, made, schedule.next_run_at, next_run_at)


def running_now(schedule: Schedule, *jobs: PreparedJob) -> Firing:
    """Return what a person does who wants `schedule` to run now."""
    return Firing(schedule.id, schedule.revision, [job._replace(schedule_id=schedule.id) for job in jobs])


async def made(store: Store, schedule_id: str = "nightly") -> list[Job]:
    """Return the jobs of a schedule."""
    return await store.jobs(JobFilter(schedule_id=schedule_id), after=None, limit=1_000)


def wanting(*queues: str, limit: int = 1, lease: timedelta = MINUTE, worker: str | None = None) -> ClaimRequest:
    """Return a request for jobs of `queues`, or of the default queue."""
    return ClaimRequest(queues or ("default",), limit, lease, None, worker)


async def enqueue_each(store: Store, *jobs: PreparedJob) -> None:
    """Enqueue jobs of any queues, one after the other."""
    for job in jobs:
        await store.enqueue([job])


async def claim_one(store: Store, *queues: str, lease: timedelta = MINUTE, worker: str | None = None) -> Claim:
    """Return the next claim; there must be one."""
    [claim] = (await store.claim(wanting(*queues, lease=lease, worker=worker))).jobs
    return claim


async def claimed(client: Client, queue: str, *, lease: float | None = None) -> Claim:
    """Return the next claim of a client; there must be one."""
    claim = await client.claim(queue, lease=lease)
    assert claim is not None
    return claim


async def a_dead_job(client: Client, queue: str = "email") -> JobId:
    """Enqueue a job and give it up."""
    done = await client.enqueue(queue, b"")
    await client.dead_letter(await claimed(client, queue), "no")
    return done.id


async def found(client: Client, job_id: JobId) -> Job:
    """Return a job that must be there."""
    job = await client.get(job_id)
    assert job is not None
    return job


def settlement(claim: Claim, verdict: Verdict | None = None, *, keep: bool = True) -> Settlement:
    """Return how `claim` ended: by success unless another verdict is given."""
    return Settlement(claim.job.id, claim.token, verdict or ToSucceeded(), keep)


def released(claim: Claim, *, started: bool = False) -> Settlement:
    """Return that `claim` is given back."""
    return Settlement(claim.job.id, claim.token, ToReleased(started))
