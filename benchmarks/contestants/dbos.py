"""DBOS on psycopg: workflows without steps from a queue, each as a coroutine on its own event loop.

It has no call for many jobs: they are enqueued one by one in a transaction. Finished workflows stay.
"""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import CALLERS, QUEUE, Payload
from benchmarks.servers import postgres_databases
from benchmarks.workloads import blocking, threaded

NAME = "dbos"
FUNCTION = "nothing"
AT_ONCE = 300
"""Workflows of one process; it looks for more only ten times a second, and with 100 it is far slower."""
LOOK_EVERY = 0.1
"""Seconds between two looks at the queue; its default is one."""
UNFINISHED = "select count(*) from dbos.workflow_status where status in ('ENQUEUED', 'PENDING')"

dbos: Any = import_module("dbos")
sqlalchemy: Any = import_module("sqlalchemy")


class Queue:
    """DBOS' client, and an application while it works."""

    def __init__(self, url: str, engine: Any) -> None:  # noqa: ANN401 - the peer is loaded by name
        """Use the connections of a database with its tables."""
        self._url = url
        self._engine = engine
        self._client = dbos.DBOSClient(system_database_engine=engine)
        # an application finds a queue that is there when it is launched, and a new one up to a second later
        self._client.register_queue(QUEUE, worker_concurrency=AT_ONCE, polling_interval_sec=LOOK_EVERY)
        self._options = {"queue_name": QUEUE, "workflow_name": FUNCTION}

    def put(self, value: Payload) -> None:
        """Enqueue one workflow."""
        self._client.enqueue(self._options, **value)

    def put_many(self, values: Sequence[Payload]) -> None:
        """Enqueue one workflow after the other in one commit."""
        with self._engine.begin() as connection:
            for value in values:
                self._client.enqueue_in_transaction(connection, self._options, **value)

    def work(self, arrived: Arrived, *, started: Callable[[], None], enough: threading.Event) -> None:
        """Launch an application beside this thread."""

        async def nothing(**value: object) -> None:
            arrived(value)

        dbos.DBOS(config=_config(self._url))
        dbos.DBOS.workflow(name=FUNCTION)(nothing)
        dbos.DBOS.launch()
        started()
        enough.wait()
        dbos.DBOS.destroy()

    def left(self) -> int:
        """Count what is not finished."""
        with self._engine.connect() as connection:
            left: int = connection.execute(sqlalchemy.text(UNFINISHED)).scalar_one()
            return left


def _config(url: str) -> dict[str, object]:
    return {"name": "bench", "system_database_url": url, "log_level": "WARNING", "application_version": "1"}


@contextmanager
def open_queue(folder: Path, *, keep: bool = True) -> Generator[Queue]:
    """Open the database of a folder; its tables are made as its command makes them."""
    del keep
    url = postgres_databases.url_of(folder).replace("postgres://", "postgresql+psycopg://")
    dbos.DBOS.migrate(url)
    engine = sqlalchemy.create_engine(url, pool_size=CALLERS)
    yield Queue(url, engine)
    engine.dispose()


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="dbos",
    module="dbos",
    how=f"async workflows without steps, {AT_ONCE} at once, a look every {LOOK_EVERY} s; finished ones stay",
    durability=postgres_databases.durability,
    measures={
        "enqueue_one": blocking.enqueue_one(open_queue),
        "enqueue_callers": blocking.enqueue_callers(open_queue),
        "enqueue_many": blocking.enqueue_many(open_queue),
        "claim_kept": threaded.drain(NAME, open_queue, keep=True),
        "end_to_end": threaded.end_to_end(NAME, open_queue),
        "pickup": blocking.pickup(NAME, open_queue),
    },
    consume=threaded.worker_consumer(open_queue),
    produce=blocking.bulk_producer(open_queue),
)
