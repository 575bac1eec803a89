"""Dramatiq: its worker with its own threads, as its command starts it, in this process.

It has no call for many jobs: a group enqueues one after the other. It keeps no finished jobs.
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

NAME = "dramatiq"
THREADS = 8
"""Its default."""
PREFETCH = 128
"""Jobs fetched ahead, which an environment variable of its sets; with its default of 16 it is half as fast."""

dramatiq: Any = import_module("dramatiq")
brokers: Any = import_module("dramatiq.brokers.redis")


def _nobody(value: object) -> None:
    del value


class Queue:
    """Dramatiq's broker with one function that does nothing but tell that it runs."""

    def __init__(self, broker: Any) -> None:  # noqa: ANN401 - the peer is loaded by name
        """Use an opened broker."""
        self._broker = broker
        self._arrived: Arrived = _nobody

        def nothing(**value: object) -> None:
            self._arrived(value)

        self._nothing = dramatiq.actor(nothing, broker=broker, queue_name=QUEUE)

    def put(self, value: Payload) -> None:
        """Send one message."""
        self._nothing.send(**value)

    def put_many(self, values: Sequence[Payload]) -> None:
        """Send one message after the other."""
        for value in values:
            self.put(value)

    def work(self, arrived: Arrived, *, started: Callable[[], None], enough: threading.Event) -> None:
        """Run its worker."""
        self._arrived = arrived
        worker = dramatiq.Worker(self._broker, worker_threads=THREADS)
        worker.queue_prefetch = PREFETCH
        worker.start()
        started()
        enough.wait()
        worker.stop()

    def left(self) -> int:
        """Count what is in its queue or not yet acked."""
        left: int = self._broker.do_qsize(QUEUE)
        return left


@contextmanager
def open_queue(folder: Path, *, keep: bool = False) -> Generator[Queue]:
    """Open the database of a folder with Dramatiq's own settings."""
    del keep
    broker = brokers.RedisBroker(url=redis_databases.url_of(folder))
    yield Queue(broker)
    broker.close()


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="dramatiq",
    module="dramatiq.brokers.redis",
    how=f"its worker with {THREADS} threads, {PREFETCH} jobs ahead; a finished job is deleted; one call for each job",
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
