"""Awa on uvloop: a core in Rust claims, heartbeats and finishes in batches, and calls the coroutine of each job."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import QUEUE, Payload
from benchmarks.servers import postgres_databases
from benchmarks.workloads import asynchronous

NAME = "awa"
AT_ONCE = 200
"""Concurrent jobs."""
UNFINISHED = """
    select (select count(*) from awa.ready_entries)
         - (select coalesce(sum(completed_count), 0)::bigint from awa.receipt_completion_batches) as left
"""
"""It only ever adds to these, a batch of finished jobs at a time, until both are cut off together."""

awa: Any = import_module("awa")


@dataclass
class Nothing:
    """The arguments of a job that does nothing: Awa names the kind of a job after their class."""

    n: int
    text: str


def _arguments(value: Payload) -> Nothing:
    return Nothing(int(value["n"]), str(value["text"]))


class Queue:
    """Awa's client, which also runs its worker."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401 - the peer is loaded by name
        """Use a client of a database with its tables."""
        self._client = client

    async def put(self, value: Payload) -> None:
        """Insert one job."""
        await self._client.insert(_arguments(value), queue=QUEUE)

    async def put_many(self, values: Sequence[Payload]) -> None:
        """Enqueue by its call for many, a COPY."""
        await self._client.enqueue_many_copy([_arguments(value) for value in values], queue=QUEUE)

    def working(self, arrived: Arrived) -> AbstractAsyncContextManager[None]:
        """Run its worker."""
        return self._working(arrived)

    @asynccontextmanager
    async def _working(self, arrived: Arrived) -> AsyncGenerator[None]:
        async def nothing(job: Any) -> None:  # noqa: ANN401 - as above
            arguments: Nothing = job.args
            arrived(vars(arguments))

        self._client.task(Nothing, queue=QUEUE)(nothing)
        await self._client.start([(QUEUE, AT_ONCE)])
        yield
        await self._client.shutdown()

    async def left(self) -> int:
        """Count what is not finished; its own counts leave out what is claimed, and take a third of a second."""
        transaction = await self._client.transaction()
        row = await transaction.fetch_one(UNFINISHED)
        await transaction.rollback()
        left: int = row["left"]
        return left


@asynccontextmanager
async def open_queue(folder: Path, *, keep: bool = True) -> AsyncGenerator[Queue]:
    """Open the database of a folder with Awa's own pool, and with its newer tables, as its own benchmark does."""
    del keep
    async with awa.AsyncClient(postgres_databases.url_of(folder)) as client:
        await client.migrate()
        await client.install_queue_storage()
        yield Queue(client)


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="awa-pg",
    module="awa",
    how=f"its worker in Rust, coroutines on uvloop, {AT_ONCE} jobs at once; finished jobs stay for a day",
    durability=postgres_databases.durability,
    measures={
        "enqueue_one": asynchronous.enqueue_one(open_queue),
        "enqueue_callers": asynchronous.enqueue_callers(open_queue),
        "enqueue_many": asynchronous.enqueue_many(open_queue),
        "claim_kept": asynchronous.drain(NAME, open_queue, keep=True),
        "end_to_end": asynchronous.end_to_end(NAME, open_queue),
        "pickup": asynchronous.pickup(NAME, open_queue),
    },
    consume=asynchronous.worker_consumer(open_queue),
    produce=asynchronous.bulk_producer(open_queue),
)
