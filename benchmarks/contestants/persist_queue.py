"""persist-queue: its `SQLiteAckQueue`, one job per commit, JSON as its serializer."""

import time
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import Payload
from benchmarks.servers.durability import name_of
from benchmarks.workloads import blocking

NAME = "persist-queue"
CLEAR_EVERY = 1_000
POLL_PAUSE = 0.010

persistqueue: Any = import_module("persistqueue")
json_serializer: Any = import_module("persistqueue.serializers.json")


def _instance(folder: Path) -> Any:  # noqa: ANN401 - the peer's own types stop at its queue
    return persistqueue.SQLiteAckQueue(str(folder), multithreading=True, serializer=json_serializer)


class Queue:
    """persist-queue as its README uses it: `put`, `get`, `ack`."""

    def __init__(self, queue: Any) -> None:  # noqa: ANN401 - the peer's own types stop at its queue
        """Use an opened `SQLiteAckQueue`."""
        self._queue = queue
        self._finished = 0

    def put(self, value: Payload) -> None:
        """Enqueue one job."""
        self._queue.put(value)

    def put_many(self, values: Sequence[Payload]) -> None:
        """Fill the queue in one commit of its own connection; persist-queue itself has no call for it."""
        rows = [(json_serializer.dumps(value), time.time()) for value in values]
        with self._queue._putter as connection:  # noqa: SLF001 - untimed, and minutes shorter than one by one
            connection.executemany(self._queue._sql_insert, rows)  # noqa: SLF001
        self._queue.total += len(rows)

    def take(self, *, keep: bool) -> int:
        """Claim and ack one job; without `keep` acked ones are cleared in thousands."""
        if not self.receive(lambda _: None):
            return 0
        self._finished += 1
        if not keep and self._finished % CLEAR_EVERY == 0:
            self._queue.clear_acked_data(max_delete=CLEAR_EVERY, keep_latest=0)
        return 1

    def receive(self, arrived: Arrived) -> bool:
        """Claim one job, hand it over, ack it."""
        try:
            job = self._queue.get(block=False, raw=True)
        except persistqueue.Empty:
            return False
        arrived(job["data"])
        self._queue.ack(id=job["pqid"])
        return True


@contextmanager
def open_queue(folder: Path) -> Generator[Queue]:
    """Open the queue of a folder with persist-queue's own settings."""
    with closing(_instance(folder)) as queue:
        yield Queue(queue)


def durability(folder: Path) -> str:
    """Read the setting from a connection opened by persist-queue."""
    with closing(_instance(folder)) as queue, closing(queue._new_db_connection(str(folder), True, 1.0)) as connection:  # noqa: FBT003, SLF001 - it shows its connection to nobody
        return name_of(connection.execute("PRAGMA synchronous").fetchone()[0])


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="persist-queue",
    module="persistqueue",
    how="SQLiteAckQueue, one job per commit; consumers in another process poll every 10 ms; cleared in thousands "
    "where deleted",
    durability=durability,
    measures={
        "enqueue_one": blocking.enqueue_one(open_queue),
        "enqueue_callers": blocking.enqueue_callers(open_queue),
        "claim_deleted": blocking.claim_loop(open_queue, keep=False),
        "claim_kept": blocking.claim_loop(open_queue, keep=True),
        "pickup": blocking.pickup(NAME, open_queue),
    },
    consume=blocking.polling_consumer(open_queue, POLL_PAUSE),
)
