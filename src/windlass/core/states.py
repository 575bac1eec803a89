"""The states of a job and every move between them, as one table.

The stores, the docs' diagram and the property tests all read it; a move that is not here does not exist.
"""

from enum import StrEnum
from typing import Final, NamedTuple


class State(StrEnum):
    """Where a job stands."""

    SCHEDULED = "scheduled"
    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"

    @property
    def finished(self) -> bool:
        """Whether this is one of the three ends."""
        return self in ENDS

    @property
    def waiting(self) -> bool:
        """Whether a job in this state waits to be claimed, now or later."""
        return self in WAITING


ENDS: Final = frozenset({State.SUCCEEDED, State.DEAD, State.CANCELLED})
WAITING: Final = frozenset({State.SCHEDULED, State.PENDING})


class Move(NamedTuple):
    """One way from a state to another."""

    by: str
    old: State | None
    new: State


MOVES: Final = frozenset(
    {
        Move("enqueue", None, State.PENDING),
        Move("enqueue", None, State.SCHEDULED),
        Move("promote", State.SCHEDULED, State.PENDING),
        Move("claim", State.PENDING, State.RUNNING),
        Move("replace", State.PENDING, State.SCHEDULED),
        Move("replace", State.SCHEDULED, State.PENDING),
        Move("reschedule", State.PENDING, State.SCHEDULED),
        Move("reschedule", State.SCHEDULED, State.PENDING),
        Move("ack", State.RUNNING, State.SUCCEEDED),
        Move("nack", State.RUNNING, State.PENDING),
        Move("nack", State.RUNNING, State.SCHEDULED),
        Move("nack", State.RUNNING, State.DEAD),
        Move("dead_letter", State.RUNNING, State.DEAD),
        Move("snooze", State.RUNNING, State.PENDING),
        Move("snooze", State.RUNNING, State.SCHEDULED),
        Move("release", State.RUNNING, State.PENDING),
        Move("cancel_claim", State.RUNNING, State.CANCELLED),
        Move("cancel", State.PENDING, State.CANCELLED),
        Move("cancel", State.SCHEDULED, State.CANCELLED),
        Move("rescue", State.RUNNING, State.PENDING),
        Move("rescue", State.RUNNING, State.DEAD),
        Move("retry", State.DEAD, State.PENDING),
        Move("retry", State.CANCELLED, State.PENDING),
    },
)


def may_move(old: State, new: State) -> bool:
    """Whether some move leads from `old` to `new`."""
    return any(move.old is old and move.new is new for move in MOVES)
