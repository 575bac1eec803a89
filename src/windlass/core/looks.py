"""What looks into a store give."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, NamedTuple, Self

from windlass.core.duration import to_micros
from windlass.core.errors import InvalidValue, WrongState
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


NO_TIME: Final = -(2**63 - 1)
"""Stands for the time of death of a job whose record has none: such jobs come last."""
DEATH: Final = "^(-?[0-9]{1,19})-(-?[0-9]{1,19})$"
"""The pattern of a `Death` as a text."""
_LARGEST: Final = 2**63 - 1


class Death(NamedTuple):
    """The position of a dead job in the list of dead jobs: the job that died last has the greatest.

    As a text, such as `1767225600000000-42`, it is a cursor: a page before it begins with the next job of the list.
    """

    at: int
    """The time of death in microseconds since 1970: a damaged record may have one that no `datetime` can hold."""
    seq: int

    def __str__(self) -> str:
        return f"{self.at}-{self.seq}"

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the position that a text stands for; raises `InvalidValue`."""
        if (found := re.fullmatch(DEATH, text)) is not None:
            at, seq = int(found[1]), int(found[2])
            if abs(at) <= _LARGEST and abs(seq) <= _LARGEST:
                return cls(at, seq)
        message = f"the position in a list of dead jobs is a text such as '1767225600000000-42', not {text[:60]!r}"
        raise InvalidValue(message)


def death_of(job: Job) -> Death:
    """Return the position of a dead job; raises `WrongState`, and `InvalidValue` for one whose time does not read."""
    if job.state is not State.DEAD:
        raise WrongState(job.id, job.state, "dead")
    if job.finished_at is None:
        message = f"job {job.id} is damaged, and its time of death cannot be read: go on past another job"
        raise InvalidValue(message)
    return Death(to_micros(job.finished_at), job.seq)


class DeadJob(NamedTuple):
    """A dead job and its position in the list of dead jobs."""

    death: Death
    job: Job


class Place(NamedTuple):
    """What stands between a job and its claim, at the time `now` of the store."""

    now: datetime
    ahead: int | None
    """Pending jobs of its queue that a claim gives before it, counted up to 1,000; None unless it is pending itself."""
    key_holder: JobId | None
    """Who holds the unique key that the job holds, or would need for a retry; itself perhaps.

    Also who holds the key that a claim of the job has freed, until the claim ends."""


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
