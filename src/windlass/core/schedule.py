"""The schedule: a stored rule that makes jobs in time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Final, Literal, NamedTuple, TypeAlias

from windlass.core.ids import JobId
from windlass.core.job import PreparedJob

DUE_AT: Final = "windlass-due-at"
"""The header that tells a job which due time of its schedule it was made for: ISO 8601, in UTC."""

CatchUp: TypeAlias = Literal["one", "none", "all"]
"""What becomes of due times that passed while no server was there to see them."""
Overlap: TypeAlias = Literal["allow", "skip"]
"""Whether a due time makes a job while the last job of the schedule is unfinished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A rule and the job that it makes, as they were when they were read. Times are UTC.

    `rule` is a cron expression, or an interval as in `every 300s`, kept as text, so that a rule that this release
    cannot read harms nobody else. `next_run_at` is None when the rule has no further time. A paused schedule keeps the
    time at which it would have been due.
    """

    id: str
    rule: str
    timezone: str = "UTC"
    queue: str
    kind: str | None = None
    payload: bytes = b""
    codec: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    tenant: str | None = None
    priority: int
    max_attempts: int
    catch_up: CatchUp = "one"
    overlap: Overlap = "allow"
    declared: bool = False
    """Whether code declares it: then it fires only while a server is live that does."""
    paused: bool = False
    next_run_at: datetime | None = None
    last_run_at: datetime | None = None
    """The due time that it last made a job for; `run_now` leaves it alone."""
    last_job_id: JobId | None = None
    revision: int = 0
    """Given by the store, another one at every change, and never the same twice."""
    orphaned: bool = False
    """Whether it is declared by no live server; filled by `client.schedules` alone."""
    damage: str | None = None
    """The fields of the stored record that cannot be read, each with the reason; None for a sound record.

    Such a field has a stand-in here. A damaged schedule never fires until it is put again.
    """


class ScheduleList(NamedTuple):
    """Schedules in order of id, and the store's time of the look."""

    now: datetime
    schedules: list[Schedule]


class DueSchedules(NamedTuple):
    """Schedules whose time has come, the longest due first, and when the next one comes that is not among them."""

    now: datetime
    due: list[Schedule]
    next_run_at: datetime | None


class Firing(NamedTuple):
    """What a schedule does now: the jobs it makes, and when it is due again.

    `tick` is the last of the due times that it deals with, and None for a run that somebody asked for: that one needs
    no due time and moves nothing. With `overlap="skip"` there is at most one job.
    """

    schedule_id: str
    revision: int
    jobs: Sequence[PreparedJob]
    tick: datetime | None = None
    next_run_at: datetime | None = None


class FireOutcome(Enum):
    """What a firing did."""

    DONE = "done"
    OVERLAPS = "overlaps"
    """The last job is unfinished: no job was made, and the next run was moved on."""
    LOST = "lost"
    """The schedule is not due, paused, gone, or was changed or fired by somebody else meanwhile: nothing was done."""


class Fired(NamedTuple):
    """What became of a firing; `job_id` is the schedule's last job now."""

    outcome: FireOutcome
    job_id: JobId | None = None


def prepared(schedule: Schedule, job_id: JobId, due_at: datetime | None = None) -> PreparedJob:
    """Return the job that a schedule makes for a due time, or for None when somebody asked for it."""
    headers = schedule.headers
    if due_at is not None:
        headers = {**headers, DUE_AT: due_at.astimezone(UTC).isoformat()}
    return PreparedJob(
        id=job_id,
        queue=schedule.queue,
        kind=schedule.kind,
        payload=schedule.payload,
        codec=schedule.codec,
        headers=headers,
        tenant=schedule.tenant,
        priority=schedule.priority,
        max_attempts=schedule.max_attempts,
        run_at=None,
        delay=None,
        unique=None,
        kv={},
        schedule_id=schedule.id,
    )
