"""huey on SQLite: `SqliteHuey` without results, one job per commit; a crash loses the job in hand."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring.contestant import Arrived, Contestant, Outcome, Role, Trial
from benchmarks.measuring.workload import QUEUE, Payload, payload
from benchmarks.servers.durability import name_of
from benchmarks.workloads import blocking
from benchmarks.workloads.delay import DELAYED, run_times
from benchmarks.workloads.pickup import pick_up

NAME = "huey"

huey: Any = import_module("huey")


def _instance(folder: Path) -> Any:  # noqa: ANN401 - the peer ships no types
    return huey.SqliteHuey(QUEUE, filename=str(folder / "huey.db"), results=False)


def _nothing(_value: object) -> None:
    pass


class Queue:
    """huey's producer and the inner loop of its consumer, for one registered function."""

    def __init__(self, instance: Any) -> None:  # noqa: ANN401 - the peer ships no types
        """Register a function that does nothing."""
        self._huey = instance
        self._function = instance.task(name="nothing")(_nothing)

    def put(self, value: Payload) -> None:
        """Enqueue one call."""
        self._function(value)

    def put_for(self, value: Payload, at: datetime) -> None:
        """Enqueue one call that is due at `at`."""
        self._function.schedule((value,), delay=(at - datetime.now(UTC)).total_seconds())

    def put_many(self, values: Sequence[Payload]) -> None:
        """Fill the queue in one commit; huey itself has no call for it."""
        rows = [(QUEUE, self._huey.serialize_task(self._function.s(value)), 0) for value in values]
        with self._huey.storage.db(commit=True) as cursor:
            cursor.executemany("insert into task (queue, data, priority) values (?, ?, ?)", rows)

    def take(self, *, keep: bool) -> int:
        """Take and run one call; huey deletes it before it runs."""
        if keep:
            message = "huey keeps no finished jobs"
            raise ValueError(message)
        call = self._huey.dequeue()
        if call is None:
            return 0
        self._huey.execute(call)
        return 1


@contextmanager
def open_queue(folder: Path) -> Generator[Queue]:
    """Open the queue of a folder with huey's own settings."""
    instance = _instance(folder)
    with closing(instance.storage):
        yield Queue(instance)


def durability(folder: Path) -> str:
    """Read the setting from huey's connection."""
    instance = _instance(folder)
    with closing(instance.storage):
        return name_of(instance.storage.conn.execute("PRAGMA synchronous").fetchone()[0])


def consume(folder: Path, count: int, ready: Callable[[], None], arrived: Arrived) -> None:
    """Run huey's own consumer with one thread and its own polling."""
    instance = _instance(folder)
    left = threading.Semaphore(0)

    def note(value: object) -> None:
        arrived(value)
        left.release()

    instance.task(name="nothing")(note)
    consumer = instance.create_consumer(workers=1, periodic=False)
    consumer.start()
    ready()
    for _ in range(count):
        left.acquire()
    consumer.stop(graceful=True)


def delayed(trial: Trial) -> Outcome:
    """Schedule calls that come due one after the other for an idle consumer in another process."""
    with open_queue(trial.folder) as queue, pick_up(NAME, trial.folder, DELAYED) as run:
        for number, at in zip(run.numbers, run_times(len(run.numbers), datetime.now(UTC)), strict=True):
            queue.put_for(payload(number), at)
            run.due(number, at)
        return Outcome(samples={"late": run.milliseconds()})


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="huey",
    module="huey",
    how="SqliteHuey without results, one job per commit, deleted before it runs; pick-up by its consumer, one thread",
    durability=durability,
    measures={
        "enqueue_one": blocking.enqueue_one(open_queue),
        "enqueue_callers": blocking.enqueue_callers(open_queue),
        "claim_deleted": blocking.claim_loop(open_queue, keep=False),
        "pickup": blocking.pickup(NAME, open_queue),
        "delayed": delayed,
    },
    consume=consume,
)
