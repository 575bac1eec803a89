"""Jobs that are dead, of a store and as values."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import windlass
from tests.job_samples import BARE
from windlass.client.client import Client
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.states import State
from windlass.testing.clock import START

SECOND = timedelta(seconds=1)


def a_dead_job(seq: int, error: str | None = "Boom: 1", *, queue: str = "q", kind: str | None = None) -> Job:
    """Return a job that was enqueued `seq` seconds after the start, and died at once."""
    at: datetime = START + seq * SECOND
    return BARE._replace(
        seq=seq, id=JobId(f"00000000-0000-7000-8000-{seq:012x}"), queue=queue, kind=kind, payload=b"much", codec="json",
        state=State.DEAD, attempt=1, max_attempts=1, delivery=1, created_at=at, run_at=at, claimed_at=at,
        finished_at=at, worker="a worker", last_error=error, result=b"more", result_codec="json",
    )  # fmt: skip


async def died(client: Client, errors: Sequence[str], *, queue: str = "q", kind: str | None = None) -> list[str]:
    """Let a job die of each of these errors; return their ids."""
    jobs = await client.enqueue_many([windlass.NewJob(queue, {"n": n}, kind=kind) for n in range(len(errors))])
    claims = await client.claim_many([queue], limit=len(errors), lease=600)
    ends = zip(claims, errors, strict=True)
    await asyncio.gather(*(client.dead_letter(claim, error) for claim, error in ends))
    return [job.id for job in jobs]
