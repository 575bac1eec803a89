"""How long the records of finished jobs stay."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from windlass.core.duration import ZERO
from windlass.core.states import State


@dataclass(frozen=True, slots=True)
class Keep:
    """How long each end is kept: zero, the record goes with the end of the job; None, it stays for ever."""

    succeeded: timedelta | None = timedelta(hours=24)
    dead: timedelta | None = timedelta(days=7)
    cancelled: timedelta | None = timedelta(hours=24)

    def for_state(self, state: State) -> timedelta | None:
        """Return how long a job that ended in `state` is kept."""
        match state:
            case State.SUCCEEDED:
                return self.succeeded
            case State.DEAD:
                return self.dead
            case State.CANCELLED:
                return self.cancelled
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept, for all queues and for single ones; `most` bounds the records per queue and end."""

    default: Keep = field(default_factory=Keep)
    queues: Mapping[str, Keep] = field(default_factory=dict[str, Keep])
    most: int | None = None

    def keep(self, queue: str) -> Keep:
        """Return what holds for `queue`."""
        return self.queues.get(queue, self.default)

    def keeps(self, queue: str, state: State) -> bool:
        """Whether the record of a job of `queue` outlives its end in `state`."""
        return self.keep(queue).for_state(state) != ZERO


KEEP_ALL: Final = Retention(Keep(None, None, None))
