"""Procrastinate on psycopg and uvloop: its worker takes and finishes one job per round trip, many at once."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import QUEUE, Payload
from benchmarks.servers import postgres_databases
from benchmarks.workloads import asynchronous

NAME = "procrastinate"
FUNCTION = "nothing"
AT_ONCE = 20
"""Concurrent jobs."""
SPARE = 5
"""Connections beside those of the jobs: its listener, its beat, who enqueues."""

procrastinate: Any = import_module("procrastinate")
workers: Any = import_module("procrastinate.worker")


def _nobody(value: object) -> None:
    del value


class Queue:
    """Procrastinate's app with one function that does nothing but tell that it runs."""

    def __init__(self, app: Any, *, keep: bool) -> None:  # noqa: ANN401 - the peer is loaded by name
        """Use an opened app."""
        self._app = app
        self._delete = "never" if keep else "successful"
        self._arrived: Arrived = _nobody

        async def nothing(**value: object) -> None:
            self._arrived(value)

        self._nothing = app.task(name=FUNCTION, queue=QUEUE)(nothing)

    async def put(self, value: Payload) -> None:
        """Defer one job."""
        await self._nothing.defer_async(**value)

    async def put_many(self, values: Sequence[Payload]) -> None:
        """Defer by its call for lists."""
        await self._nothing.batch_defer_async(*values)

    def working(self, arrived: Arrived) -> AbstractAsyncContextManager[None]:
        """Run its worker."""
        self._arrived = arrived
        return self._working()

    @asynccontextmanager
    async def _working(self) -> AsyncGenerator[None]:
        worker = workers.Worker(
            self._app,
            queues=[QUEUE],
            concurrency=AT_ONCE,
            delete_jobs=self._delete,
            install_signal_handlers=False,
        )
        async with asynchronous.in_background(worker.run(), worker.stop):
            yield

    async def left(self) -> int:
        """Count what is not finished."""
        sql = "select count(*) as left from procrastinate_jobs where status in ('todo', 'doing')"
        row = await self._app.connector.execute_query_one_async(sql)
        left: int = row["left"]
        return left


@asynccontextmanager
async def open_queue(folder: Path, *, keep: bool = False) -> AsyncGenerator[Queue]:
    """Open the database of a folder; the pool is large enough for every job at once."""
    url = postgres_databases.url_of(folder)
    connector = procrastinate.PsycopgConnector(conninfo=url, max_size=AT_ONCE + SPARE)
    app = procrastinate.App(connector=connector)
    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        yield Queue(app, keep=keep)


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="procrastinate",
    module="procrastinate",
    how=f"its worker on psycopg and uvloop, {AT_ONCE} jobs at once, claimed and finished one by one",
    durability=postgres_databases.durability,
    measures={
        "enqueue_one": asynchronous.enqueue_one(open_queue),
        "enqueue_callers": asynchronous.enqueue_callers(open_queue),
        "enqueue_many": asynchronous.enqueue_many(open_queue),
        "claim_deleted": asynchronous.drain(NAME, open_queue, keep=False),
        "claim_kept": asynchronous.drain(NAME, open_queue, keep=True),
        "end_to_end": asynchronous.end_to_end(NAME, open_queue),
        "pickup": asynchronous.pickup(NAME, open_queue),
    },
    consume=asynchronous.worker_consumer(open_queue),
    produce=asynchronous.bulk_producer(open_queue),
)
