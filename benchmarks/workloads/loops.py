"""Loops over a Windlass client as a user would write them."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import windlass
from benchmarks.measuring.workload import QUEUE, Stopwatch, chunks, payload

LEASE = timedelta(seconds=30)
LIMIT = 100
CONSUMERS = 2
FILL = 1_000


async def fill(client: windlass.Client, jobs: int) -> None:
    """Enqueue `jobs` jobs that can be claimed at once."""
    for numbers in chunks(jobs, FILL):
        await client.enqueue_many([windlass.NewJob(QUEUE, payload(number)) for number in numbers])


async def drain(
    client: windlass.Client, jobs: int, *, watch: Stopwatch, kinds: Sequence[str] | None = None, limit: int = LIMIT
) -> int:
    """Claim `jobs` jobs by two loops and ack all of a claim at once; return how many were acked.

    It ends before that when the queue is empty or the watch is over.
    """
    left = jobs
    acked = 0

    async def consume() -> None:
        nonlocal left, acked
        while left > 0 and not watch.is_over():
            wanted = min(limit, left)
            left -= wanted
            claims = await client.claim_many([QUEUE], limit=wanted, lease=LEASE, kinds=kinds)
            if not claims:
                return
            left += wanted - len(claims)
            await asyncio.gather(*[client.ack(claim) for claim in claims])
            acked += len(claims)

    await asyncio.gather(*[consume() for _ in range(CONSUMERS)])
    return acked
