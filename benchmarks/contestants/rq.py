"""RQ: its worker that runs jobs in its own process, which is faster than its usual one that forks for each."""

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import QUEUE, Payload
from benchmarks.servers import redis_databases
from benchmarks.workloads import blocking, threaded

NAME = "rq"
KEPT = 500
"""Seconds that a finished job stays: its default."""

rq: Any = import_module("rq")
command: Any = import_module("rq.command")
driver: Any = import_module("redis")

_listeners: list[Arrived] = []
"""Whom the function tells of a job: RQ finds the function itself, by the name that is in the store."""


def nothing(**value: object) -> None:
    """Tell that it runs."""
    _listeners[-1](value)


class Queue:
    """RQ's queue and its worker."""

    def __init__(self, store: Any, *, keep: bool) -> None:  # noqa: ANN401 - the peer is loaded by name
        """Use a client of the database."""
        self._store = store
        self._queue = rq.Queue(QUEUE, connection=store)
        self._kept = KEPT if keep else 0

    def put(self, value: Payload) -> None:
        """Enqueue one job."""
        self._queue.enqueue_call(nothing, kwargs=value)

    def put_many(self, values: Sequence[Payload]) -> None:
        """Enqueue by its call for many."""
        self._queue.enqueue_many([rq.Queue.prepare_data(nothing, kwargs=value) for value in values])

    def work(self, arrived: Arrived, *, started: Callable[[], None], enough: threading.Event) -> None:
        """Run its worker in this thread, and tell it to stop from another one."""
        _listeners.append(arrived)
        worker = rq.SimpleWorker([self._queue], connection=self._store, default_result_ttl=self._kept)

        def stop() -> None:
            enough.wait()
            command.send_shutdown_command(self._store, worker.name)

        with ThreadPoolExecutor(1) as beside:
            beside.submit(stop)
            started()
            worker.work(logging_level="WARNING")

    def left(self) -> int:
        """Count what is in its list or running."""
        left: int = self._queue.count + self._queue.started_job_registry.count
        return left


@contextmanager
def open_queue(folder: Path, *, keep: bool = False) -> Generator[Queue]:
    """Open the database of a folder."""
    with driver.Redis.from_url(redis_databases.url_of(folder)) as store:
        yield Queue(store, keep=keep)


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="rq",
    module="rq",
    how="its SimpleWorker, one job after the other in its own process",
    durability=redis_databases.durability,
    measures={
        "enqueue_one": blocking.enqueue_one(open_queue),
        "enqueue_callers": blocking.enqueue_callers(open_queue),
        "enqueue_many": blocking.enqueue_many(open_queue),
        "claim_deleted": threaded.drain(NAME, open_queue, keep=False),
        "claim_kept": threaded.drain(NAME, open_queue, keep=True),
        "end_to_end": threaded.end_to_end(NAME, open_queue),
        "pickup": blocking.pickup(NAME, open_queue),
    },
    consume=threaded.worker_consumer(open_queue),
    produce=blocking.bulk_producer(open_queue),
)
