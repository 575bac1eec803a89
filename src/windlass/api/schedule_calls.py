"""What is asked and told about schedules, where it is no record of its own."""

from typing import Annotated

from msgspec import Meta

from windlass.api.calls import MOST_JOBS
from windlass.api.shape import Asked, Name, Told


class ScheduleIdsAsked(Asked, kw_only=True):
    """All schedules, or those with these ids."""

    ids: Annotated[list[Name], Meta(max_length=MOST_JOBS)] | None = None


class ScheduleAsked(Asked, kw_only=True):
    """One schedule."""

    id: Name


class Removed(Told, kw_only=True):
    """Whether it was there."""

    removed: bool


class Ran(Told, kw_only=True):
    """The job that was made."""

    job_id: str
