"""litequeue: one queue per file, one job per call, fenced; it has no worker of its own."""

import json
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import Payload
from benchmarks.servers.durability import name_of
from benchmarks.workloads import blocking

NAME = "litequeue"
PRUNE_EVERY = 1_000
POLL_PAUSE = 0.010

litequeue: Any = import_module("litequeue")
if not hasattr(litequeue, "IdempotencyConflict"):
    raise ImportError("litequeue 0.14 or newer is needed: older ones do not fence their claims")


class Queue:
    """litequeue as its README uses it: `put`, `pop`, `done`."""

    def __init__(self, queue: Any) -> None:  # noqa: ANN401 - the peer ships no types
        """Use an opened `LiteQueue`."""
        self._queue = queue
        self._finished = 0

    def put(self, value: Payload) -> None:
        """Enqueue one job."""
        self._queue.put(json.dumps(value))

    def put_many(self, values: Sequence[Payload]) -> None:
        """Enqueue in one transaction."""
        with self._queue.transaction(mode="IMMEDIATE"):
            for value in values:
                self._queue.put(json.dumps(value))

    def take(self, *, keep: bool) -> int:
        """Claim and finish one job; without `keep` finished ones are pruned in thousands."""
        if not self.receive(lambda _: None):
            return 0
        self._finished += 1
        if not keep and self._finished % PRUNE_EVERY == 0:
            self._queue.prune()
        return 1

    def receive(self, arrived: Arrived) -> bool:
        """Claim one job, hand it over, finish it."""
        claimed = self._queue.pop()
        if claimed is None:
            return False
        arrived(claimed.data)
        self._queue.done(claimed.message_id, claim_id=claimed.claim_id)
        return True


@contextmanager
def open_queue(folder: Path) -> Generator[Queue]:
    """Open the queue of a folder with litequeue's own settings."""
    with closing(litequeue.LiteQueue(folder / "litequeue.db")) as queue:
        yield Queue(queue)


def durability(folder: Path) -> str:
    """Read the setting from litequeue's connection."""
    with closing(litequeue.LiteQueue(folder / "litequeue.db")) as queue:
        return name_of(queue.conn.execute("PRAGMA synchronous").fetchone()[0])


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="litequeue",
    module="litequeue",
    how="one job per call; consumers in another process poll every 10 ms; pruned in thousands where deleted",
    durability=durability,
    measures={
        "enqueue_one": blocking.enqueue_one(open_queue),
        "enqueue_callers": blocking.enqueue_callers(open_queue),
        "enqueue_many": blocking.enqueue_many(open_queue),
        "claim_deleted": blocking.claim_loop(open_queue, keep=False),
        "claim_kept": blocking.claim_loop(open_queue, keep=True),
        "pickup": blocking.pickup(NAME, open_queue),
    },
    consume=blocking.polling_consumer(open_queue, POLL_PAUSE),
)
