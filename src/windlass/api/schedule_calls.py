"""What is asked and told about schedules, where it is no record of its own."""

from typing import Annotated, Final

from msgspec import Meta

from windlass.api.calls import MOST_JOBS
from windlass.api.carried_call import AuditedChange, CarriedCall, PlainCall
from windlass.api.schedules import Schedules, schedule_of
from windlass.api.shape import Asked, Name, Told
from windlass.core.commands import RemoveSchedule
from windlass.core.names import check_name
from windlass.core.queries import ListSchedules
from windlass.core.schedule import ScheduleList


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


def _remove_audit(command: RemoveSchedule, removed: bool) -> AuditedChange | None:  # noqa: FBT001 - the store's reply
    return AuditedChange("remove schedule", command.schedule_id) if removed else None


SCHEDULES: Final = CarriedCall(
    ListSchedules,
    ScheduleIdsAsked,
    Schedules,
    request=lambda query: ScheduleIdsAsked(ids=None if query.ids is None else list(query.ids)),
    reply=lambda told: ScheduleList(told.now, [schedule_of(one) for one in told.schedules]),
)
REMOVE_SCHEDULE: Final = PlainCall(
    RemoveSchedule,
    ScheduleAsked,
    Removed,
    request=lambda command: ScheduleAsked(id=command.schedule_id),
    read=lambda asked: RemoveSchedule(check_name(asked.id, "schedule id")),
    response=lambda _, removed: Removed(removed=removed),
    reply=lambda told: told.removed,
    audit=_remove_audit,
)
