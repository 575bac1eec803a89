"""A store with a day of work in it: what the pages of the dashboard are measured on."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import windlass
from benchmarks.measuring.workload import chunks
from windlass.core.ids import JobId, new_id
from windlass.core.job import Claim, Failure, Note, PreparedJob, Progress
from windlass.core.looks import ServerRecord
from windlass.core.requests import ClaimRequest, Settlement
from windlass.core.stats import TimingCount
from windlass.core.verdict import ToDead, ToSucceeded, Verdict
from windlass.testing import FakeClock

QUEUES: Final = ("email", "images", "reports", "imports")
KINDS: Final = 20
ERRORS: Final = 25
CHILDREN: Final = 50
RUNNING: Final = 200
RARE: Final = "one-in-a-million"
MINUTES: Final = 24 * 60
_MINUTE: Final = timedelta(minutes=1)
_LEASE: Final = timedelta(days=2)
_LATER: Final = 9e6
_TRACE: Final = 'Traceback (most recent call last):\n  File "work.py", line 7, in work\n    raise error\n' * 4


class Filled(NamedTuple):
    """Some of the jobs that are there."""

    dead: str
    parent: str
    running: str


async def fill(url: str, count: int) -> Filled:
    """Put `count` jobs in the store, as if a day had passed: 85 % have ended, 2 % of all dead, and the rest waits."""
    clock = FakeClock(datetime.now(UTC) - MINUTES * _MINUTE)
    async with windlass.connect(url, keep_succeeded=None, keep_dead=None, clock=clock) as client:
        ended = count * 85 // 100
        parent = await _rare(client)
        for numbers in chunks(ended, -(-ended // MINUTES)):
            await client.enqueue_many([_job(number) for number in numbers])
            await _work_off(client, numbers[0])
            await client.store.write_timings(_timings(clock.now()))
            clock.advance(_MINUTE)
        for numbers in chunks(count - ended, 5_000):
            late = (_job(number, delay=_LATER if number % 3 == 0 else None) for number in numbers)
            await client.enqueue_many(list(late))
        running = await _run(client, clock.now())
        [dead] = await client.dead_jobs(limit=1)
    return Filled(dead.id, parent, running)


def _job(number: int, delay: float | None = None) -> windlass.NewJob:
    return windlass.NewJob(
        QUEUES[number % len(QUEUES)],
        {"n": number, "text": "x" * 60},
        kind=f"kind-{number % KINDS}",
        delay=delay,
        tenant=f"tenant-{number % 1_000}" if number % 10 == 0 else None,
    )


async def _rare(client: windlass.Client) -> JobId:
    """Enqueue what there is only one of, before all others: a job with children, and one with a rare text."""
    await client.enqueue("email", {"n": 0}, kind=RARE, tenant=RARE, unique=RARE)
    parent = await client.enqueue("reports", {"n": 0}, kind="parent")
    await client.store.enqueue([_child(parent.id, number, client.clock.now()) for number in range(CHILDREN)])
    return parent.id


def _child(parent: JobId, number: int, now: datetime) -> PreparedJob:
    return PreparedJob(
        id=new_id(millis=int(now.timestamp() * 1_000), randomness=number.to_bytes(10)),
        queue="reports",
        kind="child",
        payload=b'{"n": 1}',
        codec="json",
        headers={},
        tenant=None,
        priority=1_000,
        max_attempts=3,
        run_at=None,
        delay=None,
        unique=None,
        kv={},
        parent_id=parent,
    )


async def _work_off(client: windlass.Client, first: int) -> None:
    """Settle what waits: one of forty-two jobs is dead, as two in a hundred of all are."""
    while claims := (await client.store.claim(ClaimRequest(QUEUES, 1_000, _LEASE, worker="worker-1"))).jobs:
        await client.store.settle([_settlement(claim, first + place) for place, claim in enumerate(claims)])


def _settlement(claim: Claim, number: int) -> Settlement:
    verdict: Verdict = ToSucceeded(b'{"done": true}', "json")
    if number % 42 == 0:
        verdict = ToDead(Failure(f"the other side said no to {number}", f"Error{number // 42 % ERRORS}", _TRACE))
    return Settlement(claim.job.id, claim.token, verdict)


def _timings(now: datetime) -> Sequence[TimingCount]:
    minute = now.replace(second=0, microsecond=0)
    return [
        TimingCount(minute, QUEUES[kind % len(QUEUES)], f"kind-{kind}", what, place, 10)
        for kind in range(KINDS)
        for what in ("waited", "ran")
        for place in (3, 5, 8)
    ]


async def _run(client: windlass.Client, now: datetime) -> str:
    """Let some jobs run, with all that a running job tells; return one of them."""
    record = ServerRecord("worker-1", "worker-1", "host", 1, "1", now, now, QUEUES, (), running=RUNNING)
    await client.store.beat(record)
    claims = (await client.store.claim(ClaimRequest(QUEUES, RUNNING, _LEASE, worker="worker-1"))).jobs
    lines = [("info", f"line {number} of what it does") for number in range(100)]
    await client.store.note([Note(claim.job.id, claim.token, Progress(1, 2, "half"), lines) for claim in claims])
    return claims[0].job.id
