"""Celery on Redis: its embedded worker without results, prefetching as its guide advises for many short jobs.

It has no call for many jobs: a group sends one message after the other. It keeps no finished jobs without a result
backend, and by default acks a job before it runs, so that a crash loses it.
"""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import QUEUE, Payload
from benchmarks.servers import redis_databases
from benchmarks.workloads import blocking, threaded

NAME = "celery"
POOL = "solo"
PREFETCH = 128
"""Jobs fetched ahead: the guide's word on short jobs is 50 to 150."""
UNACKED = "unacked"

celery: Any = import_module("celery")
workers: Any = import_module("celery.contrib.testing.worker")
driver: Any = import_module("redis")


def _nobody(value: object) -> None:
    del value


class Queue:
    """Celery's app with one function that does nothing but tell that it runs."""

    def __init__(self, app: Any, store: Any) -> None:  # noqa: ANN401 - the peer is loaded by name
        """Use an app, and a client to look into its lists."""
        self._app = app
        self._store = store
        self._arrived: Arrived = _nobody

        def nothing(**value: object) -> None:
            self._arrived(value)

        self._nothing = app.task(nothing, name="nothing", shared=False)

    def put(self, value: Payload) -> None:
        """Send one message."""
        self._nothing.apply_async(kwargs=value)

    def put_many(self, values: Sequence[Payload]) -> None:
        """Send one message after the other."""
        for value in values:
            self.put(value)

    def work(self, arrived: Arrived, *, started: Callable[[], None], enough: threading.Event) -> None:
        """Run its worker in a thread beside this one."""
        self._arrived = arrived
        with workers.start_worker(self._app, pool=POOL, perform_ping_check=False):
            started()
            enough.wait()

    def left(self) -> int:
        """Count what is in its list or not yet acked."""
        left: int = self._store.llen(QUEUE) + self._store.hlen(UNACKED)
        return left


@contextmanager
def open_queue(folder: Path, *, keep: bool = False) -> Generator[Queue]:
    """Open the database of a folder."""
    del keep
    url = redis_databases.url_of(folder)
    app = celery.Celery("bench", broker=url)
    app.conf.update(
        task_default_queue=QUEUE,
        task_ignore_result=True,
        worker_prefetch_multiplier=PREFETCH,
        worker_enable_remote_control=False,
    )
    with driver.Redis.from_url(url) as store:
        yield Queue(app, store)
    app.close()


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="celery",
    module="celery",
    how=f"its embedded worker, pool {POOL}, {PREFETCH} jobs ahead, no results; one call for each job",
    durability=redis_databases.durability,
    measures={
        "enqueue_one": blocking.enqueue_one(open_queue),
        "enqueue_callers": blocking.enqueue_callers(open_queue),
        "claim_deleted": threaded.drain(NAME, open_queue, keep=False),
        "end_to_end": threaded.end_to_end(NAME, open_queue),
        "pickup": blocking.pickup(NAME, open_queue),
    },
    consume=threaded.worker_consumer(open_queue),
    produce=blocking.bulk_producer(open_queue),
)
