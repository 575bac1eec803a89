"""django-tasks-db on psycopg: the worker of its command, one job after the other.

It has no call for many jobs: they are enqueued one by one in a transaction. Finished jobs stay until its other command
is run.
"""

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import Payload
from benchmarks.servers import postgres_databases
from benchmarks.workloads import blocking, threaded

NAME = "django-tasks-db"
LINE = "default"
LOOK_EVERY = 0.1
"""Seconds between two looks at an empty queue; the default of its command is one."""

django: Any = import_module("django")
database: Any = import_module("django.db")
import_module("django_tasks_db")

# its models and the function can only be made in a project with settings; which database is known later
import_module("django.conf").settings.configure(
    # a connection for each job is what its worker makes of the default
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "CONN_MAX_AGE": None}},
    INSTALLED_APPS=["django_tasks_db"],
    TASKS={"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": [LINE]}},
    USE_TZ=True,
)
django.setup()

tasks: Any = import_module("django.tasks" if django.VERSION >= (6,) else "django_tasks")
models: Any = import_module("django_tasks_db.models")
command: Any = import_module("django_tasks_db.management.commands.db_worker")
management: Any = import_module("django.core.management")

_listeners: list[Arrived] = []
"""Whom the function tells of a job: the worker finds the function itself, by the name that is in the store."""


def _nothing(**value: object) -> None:
    _listeners[-1](value)


_nothing.__qualname__ = "nothing"
nothing: Any = tasks.task(_nothing)


class Queue:
    """Its function, and its worker."""

    def put(self, value: Payload) -> None:
        """Enqueue one job."""
        nothing.enqueue(**value)

    def put_many(self, values: Sequence[Payload]) -> None:
        """Enqueue one job after the other in one commit."""
        with database.transaction.atomic():
            for value in values:
                self.put(value)

    def work(self, arrived: Arrived, *, started: Callable[[], None], enough: threading.Event) -> None:
        """Run its worker in this thread, and tell it to stop from another one."""
        _listeners.append(arrived)
        worker = command.Worker(
            queue_names=[LINE],
            interval=LOOK_EVERY,
            batch=False,
            backend_name="default",
            startup_delay=False,
            max_tasks=None,
            worker_id="bench",
            excluded_queue_names=[],
        )

        def stop() -> None:
            enough.wait()
            worker.running = False

        with ThreadPoolExecutor(1) as beside:
            beside.submit(stop)
            started()
            worker.run()

    def left(self) -> int:
        """Count what is not finished."""
        left: int = models.DBTaskResult.objects.exclude(status="SUCCESSFUL").count()
        return left


@contextmanager
def open_queue(folder: Path, *, keep: bool = True) -> Generator[Queue]:
    """Open the database of a folder."""
    del keep
    url = urlsplit(postgres_databases.url_of(folder))
    place = {"HOST": url.hostname, "PORT": url.port, "USER": url.username, "NAME": url.path.lstrip("/")}
    database.connections.settings["default"].update(place)
    management.call_command("migrate", verbosity=0)
    yield Queue()
    database.connections.close_all()


CONTESTANT = Contestant(
    name=NAME,
    role=Role.PEER,
    distribution="django-tasks-db",
    module="django_tasks_db",
    how=f"the worker of its command, one job after the other, a look every {LOOK_EVERY} s; finished jobs stay",
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
