"""The bare engine: a few Lua scripts on redis-py's own connection that move a job along, each one round trip.

It has no leases, tokens, retries or waiting: what a queue costs over it is what the queue gives.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.measuring.contestant import Arrived, Contestant, Outcome, Role, Trial
from benchmarks.measuring.workload import BULK, Payload, chunks, payloads
from benchmarks.servers import redis_databases
from benchmarks.workloads import asynchronous
from benchmarks.workloads.latency import LIMIT, claim_figures

NAME = "bare-redis"
BATCH = 100
LOOK_EVERY = 0.001

LAST, READY, PAYLOADS, RUNNING, FINISHED = "last", "ready", "payloads", "running", "finished"
"""The keys: the last id, a list of ids, a hash of payloads by id, a set of ids, a list of ids."""

INSERT = """
local last = redis.call('incrby', KEYS[1], #ARGV)
local ids, payloads = {}, {}
for number, payload in ipairs(ARGV) do
    local id = last - #ARGV + number
    ids[number] = id
    payloads[2 * number - 1] = id
    payloads[2 * number] = payload
end
redis.call('rpush', KEYS[2], unpack(ids))
redis.call('hset', KEYS[3], unpack(payloads))
"""
CLAIM = """
local ids = redis.call('lpop', KEYS[1], ARGV[1])
if not ids then return {} end
redis.call('sadd', KEYS[3], unpack(ids))
return {ids, redis.call('hmget', KEYS[2], unpack(ids))}
"""
ACK_AND_DELETE = """
redis.call('srem', KEYS[2], unpack(ARGV))
redis.call('hdel', KEYS[1], unpack(ARGV))
"""
ACK_AND_KEEP = """
redis.call('srem', KEYS[2], unpack(ARGV))
redis.call('rpush', KEYS[3], unpack(ARGV))
"""

Claimed = tuple[Sequence[bytes], Sequence[bytes]]
"""Ids and their payloads."""

driver: Any = import_module("redis.asyncio.connection")


class Connection:
    """One connection that runs scripts."""

    def __init__(self, connection: Any) -> None:  # noqa: ANN401 - loaded by name
        """Use an opened connection."""
        self._connection = connection

    async def ask(self, *command: object) -> Any:  # noqa: ANN401 - what the server says
        """Send one command and wait for its answer."""
        await self._connection.send_command(*command)
        return await self._connection.read_response()

    async def load(self, script: str) -> str:
        """Let the server keep a script; return its name there."""
        name: bytes = await self.ask("SCRIPT", "LOAD", script)
        return name.decode()


class Queue:
    """A few keys and scripts."""

    def __init__(self, connection: Connection, watching: Connection, *, keep: bool) -> None:
        """Use a connection, and another one to look how far it is."""
        self._connection = connection
        self._watching = watching
        self._acks = [ACK_AND_KEEP, PAYLOADS, RUNNING, FINISHED] if keep else [ACK_AND_DELETE, PAYLOADS, RUNNING]
        self._names: dict[str, str] = {}

    async def load(self) -> None:
        """Let the server keep the scripts."""
        for script in (INSERT, CLAIM, self._acks[0]):
            self._names[script] = await self._connection.load(script)

    async def put(self, value: Payload) -> None:
        """Insert one job."""
        await self._run(INSERT, [LAST, READY, PAYLOADS], msgspec.json.encode(value))

    async def put_many(self, values: Sequence[Payload]) -> None:
        """Insert all jobs by one call."""
        await self._run(INSERT, [LAST, READY, PAYLOADS], *[msgspec.json.encode(value) for value in values])

    async def claim(self, limit: int) -> Claimed | None:
        """Claim up to `limit` jobs."""
        claimed: Claimed | None = await self._run(CLAIM, [READY, PAYLOADS, RUNNING], limit)
        return claimed or None

    async def ack(self, claimed: Claimed) -> None:
        """Delete or mark the claimed jobs."""
        script, *keys = self._acks
        await self._run(script, keys, *claimed[0])

    async def left(self) -> int:
        """Count what is not finished."""
        ready, running = await self._watching.ask("LLEN", READY), await self._watching.ask("SCARD", RUNNING)
        left: int = ready + running
        return left

    async def _run(self, script: str, keys: Sequence[str], *values: object) -> Any:  # noqa: ANN401 - as above
        return await self._connection.ask("EVALSHA", self._names[script], len(keys), *keys, *values)

    def working(self, arrived: Arrived) -> AbstractAsyncContextManager[None]:
        """Claim and ack in a loop, with a look every millisecond when there is nothing."""
        return self._working(arrived)

    @asynccontextmanager
    async def _working(self, arrived: Arrived) -> AsyncGenerator[None]:
        stopped = asyncio.Event()
        async with asynchronous.in_background(self._work(arrived, stopped), stopped.set):
            yield

    async def _work(self, arrived: Arrived, stopped: asyncio.Event) -> None:
        while not stopped.is_set():
            claimed = await self.claim(BATCH)
            if claimed is None:
                await asyncio.sleep(LOOK_EVERY)
                continue
            await self.ack(claimed)
            for payload in claimed[1]:
                arrived(payload)


@asynccontextmanager
async def open_queue(folder: Path, *, keep: bool = False) -> AsyncGenerator[Queue]:
    """Use the database of the folder."""
    options = driver.parse_url(redis_databases.url_of(folder))
    connection, watching = [driver.Connection(**options) for _ in range(2)]
    await connection.connect()
    await watching.connect()
    queue = Queue(Connection(connection), Connection(watching), keep=keep)
    await queue.load()
    yield queue
    await watching.disconnect()
    await connection.disconnect()


def claim_latency(trial: Trial) -> Outcome:
    """Measure each claim of up to 20 jobs of a drain, the acks outside."""
    return asynchronous.run(_claim_latency(trial))


async def _claim_latency(trial: Trial) -> Outcome:
    milliseconds: list[float] = []
    async with open_queue(trial.folder) as queue:
        for numbers in chunks(trial.jobs, BULK):
            await queue.put_many(payloads(numbers))
        while True:
            began = time.perf_counter()
            claimed = await queue.claim(LIMIT)
            ended = time.perf_counter()
            if claimed is None:
                return Outcome(claim_figures(milliseconds))
            milliseconds.append((ended - began) * 1e3)
            await queue.ack(claimed)


CONTESTANT = Contestant(
    name=NAME,
    role=Role.ENGINE,
    distribution="redis",
    module="redis.asyncio",
    how=f"a few scripts on a redis-py connection and uvloop, claimed and acked {BATCH} at a time; no leases, no tokens",
    durability=redis_databases.durability,
    measures={
        "enqueue_one": asynchronous.enqueue_one(open_queue),
        "enqueue_many": asynchronous.enqueue_many(open_queue),
        "claim_deleted": asynchronous.drain(NAME, open_queue, keep=False),
        "claim_kept": asynchronous.drain(NAME, open_queue, keep=True),
        "claim_latency": claim_latency,
        "end_to_end": asynchronous.end_to_end(NAME, open_queue),
    },
    produce=asynchronous.bulk_producer(open_queue),
)
