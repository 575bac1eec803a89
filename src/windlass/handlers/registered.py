"""A function that was registered as the handler of a kind, or of a queue's raw jobs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, Protocol

from windlass.core.job import Job
from windlass.core.retry import RetryRule
from windlass.core.settings import UNSET, Unset


class RunsIn(Enum):
    """Where a handler runs: a coroutine on the event loop, a plain function in a thread, or a child process."""

    LOOP = "loop"
    THREAD = "thread"
    PROCESS = "process"


class Arguments(Protocol):
    """How the arguments of one handler are written and read."""

    @property
    def wants(self) -> Mapping[str, type]:
        """The parameters that no caller gives, with their types: the context, and what a lifespan provides."""
        ...

    def decode(self, job: Job) -> dict[str, Any]:
        """Return the arguments in a job, checked; raises `DecodeError` with the path of the bad value."""
        ...


@dataclass(frozen=True, slots=True)
class Registered:
    """What a server knows of a handler. `kind` is None for a consumer, which takes the raw jobs of `queue`."""

    kind: str | None
    queue: str
    function: Callable[..., Any]
    runs_in: RunsIn
    arguments: Arguments
    timeout: timedelta | Unset | None = UNSET
    retry: RetryRule | Unset = UNSET
    aliases: tuple[str, ...] = ()
    priority: int | None = None
    """Stamped on each of its jobs at the enqueue, as `max_attempts` is; None for what its queue has."""
    max_attempts: int | None = None
