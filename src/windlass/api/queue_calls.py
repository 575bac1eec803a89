"""What is asked and told about queues and their minutes."""

from typing import Annotated

from msgspec import Meta

from windlass.api.calls import MOST_JOBS
from windlass.api.looks import Minute, Queue, Waiting
from windlass.api.shape import Asked, Moment, Name, Told


class QueuesAsked(Asked, kw_only=True):
    """All queues, or one."""

    queue: Name | None = None


class QueuesTold(Told, kw_only=True):
    """The queues, in order of name."""

    queues: list[Queue]


class QueueAsked(Asked, kw_only=True):
    """One queue."""

    queue: Name


class NamesAsked(Asked, kw_only=True):
    """Queues by name."""

    queues: Annotated[list[Name], Meta(max_length=MOST_JOBS)]


class DueTold(Told, kw_only=True):
    """Seconds until the next scheduled job comes due: zero when one is due, null when there is none."""

    due_in: float | None = None


class KindsAsked(Asked, kw_only=True):
    """A queue, and the kinds that are known already."""

    queue: Name
    known: list[Name] = []


class WaitingTold(Told, kw_only=True):
    """The pending jobs by queue and kind, in that order."""

    waiting: list[Waiting]


class MinutesAsked(Asked, kw_only=True):
    """From `since` up to, not including, `until`."""

    since: Moment
    until: Moment


class MinutesTold(Told, kw_only=True):
    """What happened in each minute."""

    minutes: list[Minute]
