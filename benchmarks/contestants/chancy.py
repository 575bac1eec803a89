"""Chancy on psycopg and uvloop: claimed as many at a time as its queue allows, finished once a second in batches."""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import Payload
from benchmarks.servers import postgres_databases
from benchmarks.workloads import asynchronous

NAME = "chancy"
AT_ONCE = 1_000
"""Concurrent jobs: with 100, the default of its executor for coroutines, it was never faster, and often slower."""
LINE = "default"
"""Its worker makes a queue of this name, for processes, unless there is one."""
UNFINISHED = "select count(*) from chancy_jobs where state not in ('succeeded', 'failed')"

chancy: Any = import_module("chancy")

_listeners: list[Arrived] = []
"""Whom the function tells of a job: Chancy finds the function itself, by the name that is in the store."""


async def nothing(**value: object) -> None:
    """Tell that it runs."""
    _listeners[-1](value)


FUNCTION = f"{__name__}.{nothing.__name__}"


def _job(value: Payload) -> object:
    return chancy.Job(func=FUNCTION, queue=LINE, kwargs=value)


class Queue:
    """Chancy's app, and its worker."""

    def __init__(self, app: Any) -> None:  # noqa: ANN401 - the peer is loaded by name
        """Use an opened app."""
        self._app = app

    async def put(self, value: Payload) -> None:
        """Push one job."""
        await self._app.push(_job(value))

    async def put_many(self, values: Sequence[Payload]) -> None:
        """Push by its call for many."""
        async for _ in self._app.push_many([_job(value) for value in values]):
            pass

    def working(self, arrived: Arrived) -> AbstractAsyncContextManager[None]:
        """Run its worker."""
        _listeners.append(arrived)
        return self._working()

    @asynccontextmanager
    async def _working(self) -> AsyncGenerator[None]:
        async with chancy.Worker(self._app, register_signal_handlers=False):
            yield

    async def left(self) -> int:
        """Count what is not finished."""
        async with self._app.pool.connection() as connection:
            rows = await connection.execute(UNFINISHED)
            [left] = await rows.fetchone()
            return int(left)


@asynccontextmanager
async def open_queue(folder: Path, *, keep: bool = True) -> AsyncGenerator[Queue]:
    """Open the database of a folder with Chancy's own pool and plugins; its log has a line for every job."""
    del keep
    log = logging.getLogger(NAME)
    log.setLevel(logging.WARNING)
    async with chancy.Chancy(postgres_databases.url_of(folder), log=log) as app:
        if not await app.is_up_to_date():
            await app.migrate()
            executor = chancy.Chancy.Executor.Async
            await app.declare(chancy.Queue(LINE, executor=executor, concurrency=AT_ONCE, eager_polling=True))
        yield Queue(app)


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="chancy",
    module="chancy",
    how=f"its worker on psycopg and uvloop, {AT_ONCE:,} jobs at once, eager polling; finished jobs stay for a day",
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
