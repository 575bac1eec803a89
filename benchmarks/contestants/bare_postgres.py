"""The bare engine: the least code on asyncpg that moves a job along, each commit synced.

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
from benchmarks.measuring.workload import BULK, QUEUE, Payload, chunks, payloads
from benchmarks.servers import postgres_databases
from benchmarks.workloads import asynchronous
from benchmarks.workloads.latency import LIMIT, claim_figures

NAME = "bare-postgres"
BATCH = 100
LOOK_EVERY = 0.001
SETTINGS = {"enable_seqscan": "off", "enable_bitmapscan": "off"}

SCHEMA = """
create table if not exists job(
  id bigint generated always as identity primary key, queue text not null, state text not null,
  priority int not null default 1000, run_at timestamptz not null default now(), payload bytea not null
);
create index if not exists ready on job(queue, priority, run_at, id) where state = 'pending';
"""
INSERT = "insert into job(queue, state, payload) values ($1, 'pending', $2)"
INSERT_MANY = "insert into job(queue, state, payload) select $1, 'pending', unnest($2::bytea[])"
CLAIM = """
update job set state = 'running' where id = any(array(
  select id from job where queue = $1 and state = 'pending' order by queue, priority, run_at, id limit $2
  for update skip locked
)) returning id, payload
"""
ACK_AND_DELETE = "delete from job where id = any($1::bigint[])"
ACK_AND_KEEP = "update job set state = 'succeeded' where id = any($1::bigint[])"
LEFT = "select count(*) from job where state <> 'succeeded'"

asyncpg: Any = import_module("asyncpg")


class Queue:
    """A table, an index and a few statements."""

    def __init__(self, connection: Any, watching: Any, *, keep: bool) -> None:  # noqa: ANN401 - loaded by name
        """Use a connection to a database with the table, and another one to look how far it is."""
        self._connection = connection
        self._watching = watching
        self._ack = ACK_AND_KEEP if keep else ACK_AND_DELETE

    async def put(self, value: Payload) -> None:
        """Insert one row in one commit."""
        await self._connection.execute(INSERT, QUEUE, msgspec.json.encode(value))

    async def put_many(self, values: Sequence[Payload]) -> None:
        """Insert all rows in one commit."""
        await self._connection.execute(INSERT_MANY, QUEUE, [msgspec.json.encode(value) for value in values])

    async def claim(self, limit: int) -> Sequence[Any]:
        """Claim up to `limit` rows."""
        rows: Sequence[Any] = await self._connection.fetch(CLAIM, QUEUE, limit)
        return rows

    async def ack(self, rows: Sequence[Any]) -> None:
        """Delete or mark the claimed rows."""
        await self._connection.execute(self._ack, [row[0] for row in rows])

    async def left(self) -> int:
        """Count what is not finished."""
        left: int = await self._watching.fetchval(LEFT)
        return left

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
            rows = await self.claim(BATCH)
            if not rows:
                await asyncio.sleep(LOOK_EVERY)
                continue
            await self.ack(rows)
            for row in rows:
                arrived(row[1])


@asynccontextmanager
async def open_queue(folder: Path, *, keep: bool = False) -> AsyncGenerator[Queue]:
    """Make the table in the database of the folder, unless it is there."""
    url = postgres_databases.url_of(folder)
    connection, watching = [await asyncpg.connect(url, server_settings=SETTINGS) for _ in range(2)]
    await connection.execute(SCHEMA)
    yield Queue(connection, watching, keep=keep)
    await watching.close()
    await connection.close()


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
            rows = await queue.claim(LIMIT)
            ended = time.perf_counter()
            if not rows:
                return Outcome(claim_figures(milliseconds))
            milliseconds.append((ended - began) * 1e3)
            await queue.ack(rows)


CONTESTANT = Contestant(
    name=NAME,
    role=Role.ENGINE,
    distribution="asyncpg",
    module="asyncpg",
    how=f"a few statements on asyncpg and uvloop, claimed and acked {BATCH} at a time; no leases, no tokens",
    durability=postgres_databases.durability,
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
