"""What looks into a store give."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, NamedTuple

from windlass.core.ids import JobId
from windlass.core.job import Job, Token
from windlass.core.states import State

SERVED: Final = "served"
"""Among the details of a server: `yes` when it only works, on a store that another process serves."""

SERVES: Final = "serves"
"""Among the details of a process that serves a store: over what. It runs the services for those that only work."""


class Glance(NamedTuple):
    """The little of a job that waiters look at again and again."""

    state: State
    cancel_requested: bool
    token: Token | None


class JobPage(NamedTuple):
    """Jobs, the newest first. `next` is where to look on, also when no job was found; None when all was looked at."""

    jobs: list[Job]
    next: int | None


class Place(NamedTuple):
    """What stands between a job and its claim, at the time `now` of the store."""

    now: datetime
    ahead: int | None
    """Pending jobs of its queue that a claim gives before it, counted up to 1,000; None unless it is pending itself."""
    key_holder: JobId | None
    """Who holds the unique key that the job holds, held, or would need for a retry; itself perhaps."""


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """A process that runs workers or services, as it last told the store."""

    id: str
    name: str
    host: str
    pid: int
    version: str
    started_at: datetime
    seen_at: datetime
    queues: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    running: int = 0
    details: Mapping[str, str] = field(default_factory=dict[str, str])


class AuditEntry(NamedTuple):
    """What a person did: `retry`, `delete`, `pause` and the like, to what, with which numbers."""

    at: datetime
    actor: str
    action: str
    target: str
    detail: Mapping[str, str]


class Finding(NamedTuple):
    """One thing that `check` looked at; `advice` says what to do when it is not well."""

    name: str
    level: Literal["ok", "warning", "error"]
    message: str
    advice: str | None = None
