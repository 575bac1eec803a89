"""What a job takes of a Redis server's memory, while it waits, runs, and is kept."""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import windlass
from benchmarks.machine import describe
from benchmarks.redis_server import Server, server
from windlass import Client, NewJob

QUEUE = "memory"
PAYLOAD = b"." * 100
AT_ONCE = 1_000


class Taken(NamedTuple):
    """Bytes for each job, of one server."""

    version: str
    waiting: float
    running: float
    succeeded: float


async def measure(redis: Server, jobs: int) -> Taken:
    """Enqueue so many jobs, claim them all and acknowledge them all, and look at the memory after each."""
    [version] = [f"{name} {number}" for name, number in redis.version().items()]
    async with windlass.connect(redis.url(0), keep_max=None) as client:
        # what the first call brings along is no job's
        await _enqueue(client, 1)
        await _end(client, await _claim(client, 1))
        empty = _used(redis)
        await _enqueue(client, jobs)
        waiting = _used(redis)
        claims = await _claim(client, jobs)
        running = _used(redis)
        await _end(client, claims)
        succeeded = _used(redis)
    return Taken(version, *((used - empty) / jobs for used in (waiting, running, succeeded)))


def _used(redis: Server) -> int:
    told = redis.told()
    return int(told["used_memory"]) - int(told["mem_clients_normal"]) - int(told["mem_aof_buffer"])


async def _enqueue(client: Client, jobs: int) -> None:
    for first in range(0, jobs, AT_ONCE):
        await client.enqueue_many([NewJob(QUEUE, PAYLOAD) for _ in range(min(AT_ONCE, jobs - first))])


async def _claim(client: Client, jobs: int) -> list[windlass.Claim]:
    claims: list[windlass.Claim] = []
    while len(claims) < jobs:
        claims += await client.claim_many(QUEUE, limit=AT_ONCE, lease=3600)
    return claims


async def _end(client: Client, claims: Sequence[windlass.Claim]) -> None:
    for first in range(0, len(claims), AT_ONCE):
        await asyncio.gather(*[client.ack(claim) for claim in claims[first : first + AT_ONCE]])


def render(jobs: int, rows: Sequence[Taken], machine: dict[str, str]) -> str:
    """Return the report."""
    lines = [f"| {row.version} | {row.waiting:,.0f} | {row.running:,.0f} | {row.succeeded:,.0f} |" for row in rows]
    return "\n".join(
        [
            "# Memory of a Redis server for each job",
            "",
            ", ".join([f"{name} {text}" for name, text in machine.items()]) + ".",
            "",
            f"Bytes for each of {jobs:,} jobs of one kind and one queue, a payload of {len(PAYLOAD)} bytes among them:",
            "what the server uses (`used_memory`, without its buffers for clients and for its log) after all were",
            "enqueued, after all were claimed, and after all were acknowledged and kept.",
            "",
            "| server | waiting | running | succeeded, and kept |",
            "|---|--:|--:|--:|",
            *lines,
            "",
        ]
    )


def main() -> None:
    """Print the report, and write it to a file where one is named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redis_memory", description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000, help="how many (100000)")
    parser.add_argument(
        "--programs", type=Path, action="append", default=[], metavar="DIR", help="another server beside the wheel's"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the report to a file")
    options = parser.parse_args()
    rows: list[Taken] = []
    for programs in (None, *options.programs):
        with server(programs=programs) as redis:
            rows.append(asyncio.run(measure(redis, options.jobs)))
    machine = {name: text for name, text in describe(Path()).items() if name in {"Python", "code", "system"}}
    text = render(options.jobs, rows, machine)
    if options.markdown:
        options.markdown.write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
