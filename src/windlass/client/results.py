"""What `Client.wait` found."""

from dataclasses import dataclass
from typing import TypeAlias

from windlass.core.job import Job


@dataclass(frozen=True, slots=True)
class Completed:
    """The job reached one of its ends; `job` is None when its record went with it."""

    job: Job | None


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The job had not ended when the time was over."""


@dataclass(frozen=True, slots=True)
class NotFound:
    """No job had this id when the wait began."""


WaitResult: TypeAlias = Completed | TimedOut | NotFound
