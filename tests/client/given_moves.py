"""Stores to move jobs between, and what is in them."""

from datetime import timedelta
from typing import Final

from windlass import Client, NewJob, Unique, connect
from windlass.client.mover import Carried
from windlass.core.job import Job
from windlass.testing import FakeClock

TO: Final = "postgres://elsewhere"
GONE: Final = Unique("gone", until=timedelta(hours=1))
"""A key whose job has ended and is forgotten, and which only time frees."""


def in_memory(clock: FakeClock) -> Client:
    return connect("memory://", clock=clock)


def told(carried: Carried) -> None:
    """Nobody listens."""


async def everything(client: Client) -> list[Job]:
    listed = await client.jobs(limit=1_000)
    found = [await client.get(job.id) for job in listed]
    return [job._replace(seq=0) for job in found if job is not None]


async def filled(source: Client, clock: FakeClock) -> None:
    """All that can go over: jobs that wait in every way, a pause, schedules, kv and a key that time frees."""
    await source.enqueue("a", b"tried")
    claim = await source.claim("a")
    assert claim is not None
    await source.nack(claim, "not yet", delay=60)
    await source.enqueue_many([NewJob("a", str(n).encode(), priority=n) for n in range(3)])
    await source.enqueue("b", b"later", delay=90, tenant="acme", headers={"x": "y"})
    await source.enqueue("b", b"alone", unique=Unique("k", until="finished"))
    await source.enqueue("b", b"timed", unique=Unique("t", until=timedelta(hours=1)))
    await source.enqueue("c", b"done", unique=GONE)
    claim = await source.claim("c")
    assert claim is not None
    await source.ack(claim)
    await source.delete(claim.job.id)
    await source.pause("b")
    await source.schedules.put("often", 60, NewJob("a"))
    await source.kv.put("name", b"value")
    clock.advance(1)


async def work_off(target: Client) -> list[str]:
    """Let all jobs that are ready run; their records go with them, so nobody can tell later that they were here."""
    done: list[str] = []
    for claim in await target.claim_many(["a", "b"], limit=100):
        await target.ack(claim)
        await target.delete(claim.job.id)
        done.append(str(claim.job.id))
    return done
