"""What a job takes of a Redis server's memory while it waits, runs and is kept, and what else is kept."""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import windlass
from benchmarks.measuring.machine import describe
from benchmarks.servers.redis_server import Server, server
from windlass import Client, NewJob
from windlass.connect import open_store
from windlass.core.stats import TimingCount

QUEUE = "memory"
PAYLOAD = b"." * 100
AT_ONCE = 1_000
CALLS = 20_000
"""As many as are surely made before the first receipt goes, a minute after the deadline of its call."""
MINUTES = 7 * 24 * 60
"""Fewer than eight days, after which the timings of a minute go."""
RANGES = (0, 1, 2)
"""In how many ranges the waits of a minute lie, and the attempts: each is a number of its own."""

Taken = Mapping[str, float]
"""Bytes by what they are for."""


async def measure(redis: Server, jobs: int) -> Taken:
    """Return what each of so many jobs takes, and what other things do, each in an empty server."""
    taken = dict(await _plain_jobs(redis, jobs))
    with_key = await _jobs_with_a_key(redis, jobs)
    taken[f"its unique key, like `{_key(jobs)}`, while it waits"] = with_key - taken["a job that waits"]
    taken["the receipt of one call"] = await _receipts(redis)
    taken[f"the timings of one kind in one minute, {len(RANGES)} ranges of each sort"] = await _timings(redis)
    return taken


async def _plain_jobs(redis: Server, jobs: int) -> Taken:
    async with _emptied(redis) as client:
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
    used = {"a job that waits": waiting, "a job that runs": running, "a job that succeeded, and is kept": succeeded}
    return {what: (bytes_ - empty) / jobs for what, bytes_ in used.items()}


async def _jobs_with_a_key(redis: Server, jobs: int) -> float:
    async with _emptied(redis) as client:
        await _enqueue(client, 1)
        await _end(client, await _claim(client, 1))
        empty = _used(redis)
        await _enqueue(client, jobs, with_key=True)
        return (_used(redis) - empty) / jobs


async def _receipts(redis: Server) -> float:
    async with _emptied(redis) as client:
        await client.kv.put("key", b"value")
        empty = _used(redis)
        # the same value again and again: only the receipts grow
        for _ in range(0, CALLS, AT_ONCE):
            await asyncio.gather(*[client.kv.put("key", b"value") for _ in range(AT_ONCE)])
        return (_used(redis) - empty) / CALLS


async def _timings(redis: Server) -> float:
    _empty(redis)
    store = open_store(redis.url(0))
    await store.open()
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    minutes = [_busy_minute(now - timedelta(minutes=ago)) for ago in range(MINUTES)]
    try:
        await store.write_timings(minutes[0])
        empty = _used(redis)
        # many in one call, so that its receipt is next to nothing
        for first in range(1, MINUTES, AT_ONCE):
            await store.write_timings([count for minute in minutes[first : first + AT_ONCE] for count in minute])
        return (_used(redis) - empty) / (MINUTES - 1)
    finally:
        await store.close()


def _busy_minute(minute: datetime) -> list[TimingCount]:
    return [TimingCount(minute, QUEUE, QUEUE, what, each, 100) for what in ("waited", "ran") for each in RANGES]


def _emptied(redis: Server) -> Client:
    _empty(redis)
    return windlass.connect(redis.url(0), keep_max=None)


def _empty(redis: Server) -> None:
    # by itself a Valkey frees it little by little, while the next thing is measured
    redis.ask("FLUSHALL SYNC")


def _used(redis: Server) -> int:
    told = redis.told()
    return int(told["used_memory"]) - int(told["mem_clients_normal"]) - int(told["mem_aof_buffer"])


async def _enqueue(client: Client, jobs: int, *, with_key: bool = False) -> None:
    for first in range(0, jobs, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, jobs))
        await client.enqueue_many(
            [NewJob(QUEUE, PAYLOAD, unique=_key(number) if with_key else None) for number in numbers]
        )


def _key(number: int) -> str:
    return f"order-{number:010}"


async def _claim(client: Client, jobs: int) -> list[windlass.Claim]:
    claims: list[windlass.Claim] = []
    while len(claims) < jobs:
        claims += await client.claim_many(QUEUE, limit=AT_ONCE, lease=3600)
    return claims


async def _end(client: Client, claims: Sequence[windlass.Claim]) -> None:
    for first in range(0, len(claims), AT_ONCE):
        await asyncio.gather(*[client.ack(claim) for claim in claims[first : first + AT_ONCE]])


def render(jobs: int, servers: Mapping[str, Taken], machine: dict[str, str]) -> str:
    """Return the report."""
    rows = [
        f"| {what} | {' | '.join(f'{taken[what]:,.0f}' for taken in servers.values())} |"
        for what in next(iter(servers.values()))
    ]
    return "\n".join(
        [
            "# Memory of a Redis server for each job",
            "",
            ", ".join([f"{name} {text}" for name, text in machine.items()]) + ".",
            "",
            f"Bytes for each of {jobs:,} jobs of one kind and one queue, a payload of {len(PAYLOAD)} bytes among them:",
            "what the server uses (`used_memory`, without its buffers for clients and for its log) after all were",
            "enqueued, after all were claimed, and after all were acknowledged and kept. A unique key is what as many",
            f"jobs that have one take more; of receipts there were {CALLS:,}, and of minutes {MINUTES:,}.",
            "",
            f"| | {' | '.join(servers)} |",
            f"|---|{'--:|' * len(servers)}",
            *rows,
            "",
        ]
    )


def main() -> None:
    """Print the report, and write it to a file where one is named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.redis_memory", description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000, help="how many (100000)")
    parser.add_argument(
        "--programs", type=Path, action="append", default=[], metavar="DIR", help="another server beside the wheel's"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the report to a file")
    options = parser.parse_args()
    servers: dict[str, Taken] = {}
    for programs in (None, *options.programs):
        with server(programs=programs) as redis:
            [version] = [f"{name} {number}" for name, number in redis.version().items()]
            servers[version] = asyncio.run(measure(redis, options.jobs))
    machine = {name: text for name, text in describe(Path()).items() if name in {"Python", "code", "system"}}
    text = render(options.jobs, servers, machine)
    if options.markdown:
        options.markdown.write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
