"""What a server tells of itself beside its record: the names of its details, and how they are read."""

from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from windlass.core.duration import later
from windlass.core.job import Job
from windlass.core.looks import ServerRecord

SLOTS: Final = "slots"
"""How many jobs it runs at once."""
CONSUMES: Final = "consumes"
"""The queues whose raw jobs it takes, parted by spaces."""
STUCK: Final = "stuck"
"""The jobs that did not end at their timeout, parted by commas."""
MEMORY: Final = "memory"
"""How many bytes of memory its process has."""
STOPPING: Final = "stopping"
"""`yes` when it was told to stop: it claims no more, and waits for what it runs."""
GONE: Final = 10
"""How many times `dead_after` a server is silent before nobody counts on it any more."""

Presence: TypeAlias = Literal["live", "stopping", "silent", "gone"]
_LONGEST: Final = 15
"""Digits: whoever writes more means nothing by it."""


def is_live(server: ServerRecord, now: datetime, dead_after: timedelta) -> bool:
    """Whether a server was heard of within `dead_after`, at the time `now` of the store."""
    return later(server.seen_at, dead_after) > now


def is_stopping(server: ServerRecord) -> bool:
    """Whether a server has said that it stops: it claims no job any more."""
    return server.details.get(STOPPING) == "yes"


def presence(server: ServerRecord, now: datetime, dead_after: timedelta) -> Presence:
    """Return whether a server is there, in one word, at the time `now` of the store.

    `live` was heard of within `dead_after`, and so was `stopping`, which claims no more and waits for what it runs;
    `silent` was not, and has not left; `gone` has been silent for ten times as long.
    """
    if is_live(server, now, dead_after):
        return "stopping" if is_stopping(server) else "live"
    return "silent" if is_live(server, now, GONE * dead_after) else "gone"


def takes(server: ServerRecord, job: Job) -> bool:
    """Whether a server that works the queue of a job would claim it."""
    if job.kind is not None:
        return job.kind in server.kinds
    # one that knows no kinds at all works its queues for nothing else
    return not server.kinds or job.queue in server.details.get(CONSUMES, "").split()


def slots_of(server: ServerRecord) -> int | None:
    """Return how many jobs a server runs at once, if it tells."""
    return _number(server, SLOTS)


def memory_of(server: ServerRecord) -> int | None:
    """Return how many bytes of memory a server has, if it tells."""
    return _number(server, MEMORY)


def stuck_in(server: ServerRecord) -> list[str]:
    """Return the ids of the jobs that did not end at their timeout."""
    return [job_id for job_id in server.details.get(STUCK, "").split(", ") if job_id]


def _number(server: ServerRecord, name: str) -> int | None:
    told = server.details.get(name, "")
    return int(told) if told.isascii() and told.isdigit() and len(told) <= _LONGEST else None
