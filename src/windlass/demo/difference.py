"""A difference: something that the promises of Windlass do not allow."""

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    LOST = "lost"
    NO_EFFECT = "succeeded without its work done"
    STRANGER = "never enqueued"
    FORGOTTEN = "success accepted, but not succeeded in the store"
    NOBODYS = "succeeded in the store, but no success was accepted"
    TWICE = "settled twice"
    STALE = "settled by a stale claim"
    NO_CAUSE = "ran again without a cause"
    NOT_RETRIED = "failed, and the store does not know of it"
    DEAD = "dead, and not the poison"
    UNHARMED = "the poison, and not dead"
    FOLLOWERS = "succeeded with none or several of the one job that it enqueues"
    TICK_TWICE = "two jobs for one tick of the schedule"
    TICK_MISSING = "no job for a tick of the schedule"
    TICK_WRONG = "a job for a time at which the schedule was not due"


class Difference(NamedTuple):
    kind: Kind
    what: str
    """A job, or a tick."""
    detail: str
