"""What `Client.wait` found: in a condition only a job that has ended is true."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from windlass.core.job import Job


@dataclass(frozen=True, slots=True)
class Completed:
    """The job reached one of its ends; `job` is None when its record went with it."""

    job: Job | None


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The job had not ended when the time was over."""

    def __bool__(self) -> Literal[False]:
        """Return False: nothing has ended."""
        return False


@dataclass(frozen=True, slots=True)
class NotFound:
    """No job had this id when the wait began."""

    def __bool__(self) -> Literal[False]:
        """Return False: nothing has ended."""
        return False


WaitResult: TypeAlias = Completed | TimedOut | NotFound
