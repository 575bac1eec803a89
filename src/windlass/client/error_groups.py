"""Dead jobs by what ended them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.names import MAX_NAME, shortened

NO_ERROR: Final = "(no error was stored)"
MOST_READ: Final = 400
"""Characters of an error that tell what it is: ten thousand long ones are grouped in a moment too."""
LONGEST: Final = 72
"""Characters of a name that is made of a text."""
_NUMBERS: Final = re.compile(r"\b(?=[0-9a-fA-F-]*[0-9])[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*\b|0x[0-9a-fA-F]+|[0-9]+")
"""What is another one in each job: ids, addresses, numbers."""


def error_name(error: str | None) -> str:
    """Return what kind of error a text is: its type where it has one, else the text without its numbers."""
    if (known := error_type(error)) is not None:
        return known
    text = " ".join((error or "")[:MOST_READ].split())
    name = shortened(_NUMBERS.sub("#", text), LONGEST) or NO_ERROR
    # a type with spaces around it is none: it is not found by that type
    return f"({name})" if is_type(name) else name


def is_type(name: str) -> bool:
    """Whether the errors of this name are of one type; else it is a text without its numbers."""
    return error_type(name) == name


def error_type(error: str | None) -> str | None:
    """Return the type that a text names before its first colon, or as a whole; None when that is no name.

    Exactly the errors of one type are found by `JobFilter.error_type`.
    """
    name = (error or "")[: MAX_NAME + 1].partition(":")[0]
    is_name = len(name) <= MAX_NAME and all(part.isidentifier() or part == "<locals>" for part in name.split("."))
    return name if is_name else None


def message_of(error: str | None) -> str:
    """Return what a text says beside its type: cut, and perhaps empty."""
    text = (error or "")[:MOST_READ]
    return text[len(error_type(error) or "") :].removeprefix(":").strip()


def died_at(job: Job) -> datetime:
    """Return when a dead job was given up."""
    return job.finished_at or job.created_at


@dataclass(slots=True)
class ErrorGroup:
    """Jobs that ended by the same kind of error, those that were enqueued last first; what they carry is not kept."""

    name: str
    type: str | None
    """What finds them all by `JobFilter.error_type`; None where only the jobs themselves can be named."""
    example: Job
    """The one that died last, without what it carries."""
    first_at: datetime
    last_at: datetime
    newest_at: datetime
    """When the last of them was enqueued."""
    ids: list[JobId] = field(default_factory=list[JobId])
    kinds: set[str | None] = field(default_factory=set[str | None])
    queues: set[str] = field(default_factory=set[str])

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.ids)

    @property
    def said(self) -> str:
        """What the error of the example says."""
        return message_of(self.example.last_error)

    @property
    def kind_names(self) -> list[str]:
        """The kinds, in order; jobs without one are `(raw)`."""
        return sorted(kind or "(raw)" for kind in self.kinds)

    def add(self, job: Job) -> None:
        """Take one more."""
        at = died_at(job)
        self.ids.append(job.id)
        if (at, job.seq) > (self.last_at, self.example.seq):
            self.example = _bare(job)
        self.first_at, self.last_at = min(self.first_at, at), max(self.last_at, at)
        self.newest_at = max(self.newest_at, job.created_at)
        self.kinds.add(job.kind)
        self.queues.add(job.queue)


class ErrorGroups:
    """Groups that grow with each job that is added, the newest first."""

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        """Begin with some."""
        self._groups: dict[str, ErrorGroup] = {}
        self.count = 0
        self.add(jobs)

    def add(self, jobs: Iterable[Job]) -> None:
        """Take some more."""
        for job in jobs:
            name = error_name(job.last_error)
            group = self._groups.get(name)
            if group is None:
                group = self._groups[name] = _group_of(name, job)
            group.add(job)
            self.count += 1

    def named(self, name: str) -> ErrorGroup | None:
        """Return the group of this name."""
        return self._groups.get(name)

    def in_order(self) -> list[ErrorGroup]:
        """Return all groups, the most common first."""
        return sorted(self._groups.values(), key=lambda group: (-group.count, group.name))


def _group_of(name: str, job: Job) -> ErrorGroup:
    at = died_at(job)
    return ErrorGroup(name, error_type(job.last_error), _bare(job), at, at, job.created_at)


def _bare(job: Job) -> Job:
    return job._replace(payload=b"", result=None, headers={})
