"""What is asked and told about jobs, where it is no record of its own."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from msgspec import Meta

from windlass.api.calls import MOST_JOBS
from windlass.api.carried_call import AuditedChange, CarriedCall, PlainCall, concatenated, merged, pages_of
from windlass.api.claims import Wait
from windlass.api.jobs import Enqueued, Job, LogLine, NewJob, Progress, job_of
from windlass.api.looks import Chosen, Glance, JobIds, Retained, glance_of, retained
from windlass.api.problems import Problem
from windlass.api.shape import Asked, Id, Moment, Told
from windlass.core.commands import CancelJobs, DeleteJobs, RescheduleJobs, RetryJobs
from windlass.core.duration import moment
from windlass.core.ids import JobId, job_id
from windlass.core.queries import GetGlances, GetJobs
from windlass.core.requests import CancelOutcome, Changed
from windlass.core.states import State


class EnqueueAsked(Asked, kw_only=True):
    """Jobs to be enqueued, all or none, in their order."""

    jobs: Annotated[list[NewJob], Meta(max_length=100_000)]


class EnqueueTold(Told, kw_only=True):
    """What became of each job, in their order."""

    jobs: list[Enqueued]


class BatchesAsked(Asked, kw_only=True):
    """Several batches of jobs: each is enqueued whole or not at all, whatever becomes of the others."""

    batches: Annotated[list[list[NewJob]], Meta(max_length=MOST_JOBS)]


class Batch(Told, kw_only=True):
    """What became of one batch: its jobs, or why it was refused."""

    jobs: list[Enqueued] = []
    problem: Problem | None = None


class BatchesTold(Told, kw_only=True):
    """What became of each batch, in their order."""

    batches: list[Batch]


class JobAsked(Asked, kw_only=True):
    """How the payload of one job is to be told."""

    payload: Literal["json", "base64"] = "json"


class WaitAsked(Asked, kw_only=True):
    """How long to wait for the end of a job."""

    timeout: Wait = 30.0
    payload: Literal["json", "base64"] = "json"


class Waited(Told, kw_only=True):
    """How a wait ended; a job whose record went with its end is `completed` without a job."""

    outcome: Literal["completed", "timed_out", "not_found"]
    job: Job | None = None


class Followed(Told, kw_only=True):
    """How a job stands, and the lines of its log that were not told yet; each event of the stream is one of these.

    After one with `ended` there are no more: its state is that of its end, or null when no record of it is left.
    """

    state: State | None
    delivery: int = 0
    progress: Progress | None = None
    lines: list[LogLine] = []
    ended: bool = False


class GetAsked(Asked, kw_only=True):
    """Jobs by their ids."""

    ids: Annotated[list[Id], Meta(max_length=MOST_JOBS)]
    payload: Literal["json", "base64"] = "json"


class GetTold(Told, kw_only=True):
    """The jobs in the order of their ids, null for each that is not here."""

    jobs: list[Job | None]


class GlanceTold(Told, kw_only=True):
    """Where each job stands, by id; those that are not here are left out."""

    jobs: dict[str, Glance]


class CancelAsked(Asked, kw_only=True):
    """Jobs to be ended, or to be asked to stop where they run."""

    ids: Annotated[list[Id], Meta(max_length=MOST_JOBS)]
    retention: Retained | None = None


class CancelTold(Told, kw_only=True):
    """What became of each, in their order."""

    outcomes: list[CancelOutcome]


class ChangeAsked(Asked, kw_only=True):
    """Jobs by their ids, or all that match a filter."""

    ids: Annotated[list[Id], Meta(max_length=MOST_JOBS)] | None = None
    filter: Chosen | None = None


class ChangeTold(Told, kw_only=True):
    """What became of each id, in their order, or how many matched the filter and were changed.

    With `left` so many that matched are as they were: another live job holds their unique key.
    """

    outcomes: list[Changed] | None = None
    count: int | None = None
    left: int | None = None


class RescheduleAsked(Asked, kw_only=True):
    """Waiting jobs, and when they are to run; without `run_at` now."""

    ids: Annotated[list[Id], Meta(max_length=MOST_JOBS)]
    run_at: Moment | None = None


def changed_ids(ids: Sequence[JobId], outcomes: Sequence[Changed]) -> list[JobId]:
    """Return the jobs that were changed."""
    return [each for each, changed in zip(ids, outcomes, strict=True) if changed is Changed.DONE]


def _reschedule_command(request: RescheduleAsked) -> RescheduleJobs:
    ids = [job_id(each) for each in request.ids]
    return RescheduleJobs(ids, None if request.run_at is None else moment(request.run_at, "run_at"))


def _reschedule_audit(command: RescheduleJobs, outcomes: list[Changed]) -> AuditedChange:
    run_at = "now" if command.run_at is None else command.run_at.isoformat()
    return AuditedChange("reschedule", changed_ids(command.ids, outcomes), {"run_at": run_at})


GLANCE: Final = CarriedCall(
    GetGlances,
    JobIds,
    GlanceTold,
    request=lambda query: JobIds(ids=list(query.ids)),
    reply=lambda told: {JobId(each): glance_of(one) for each, one in told.jobs.items()},
    parts=pages_of("ids", merged),
)
GET: Final = CarriedCall(
    GetJobs,
    GetAsked,
    GetTold,
    request=lambda query: GetAsked(ids=list(query.ids), payload="base64"),
    reply=lambda told: [None if one is None else job_of(one) for one in told.jobs],
)
CANCEL: Final = CarriedCall(
    CancelJobs,
    CancelAsked,
    CancelTold,
    request=lambda command: CancelAsked(ids=list(command.ids), retention=retained(command.retention)),
    reply=lambda told: told.outcomes,
    parts=pages_of("ids", concatenated),
)
RETRY: Final = CarriedCall(
    RetryJobs,
    ChangeAsked,
    ChangeTold,
    request=lambda command: ChangeAsked(ids=list(command.ids)),
    reply=lambda told: told.outcomes or [],
    parts=pages_of("ids", concatenated),
)
DELETE: Final = CarriedCall(
    DeleteJobs,
    ChangeAsked,
    ChangeTold,
    request=lambda command: ChangeAsked(ids=list(command.ids)),
    reply=lambda told: told.outcomes or [],
    parts=pages_of("ids", concatenated),
)
RESCHEDULE: Final = PlainCall(
    RescheduleJobs,
    RescheduleAsked,
    ChangeTold,
    request=lambda command: RescheduleAsked(ids=list(command.ids), run_at=command.run_at),
    read=_reschedule_command,
    response=lambda _, outcomes: ChangeTold(outcomes=outcomes),
    reply=lambda told: told.outcomes or [],
    parts=pages_of("ids", concatenated),
    audit=_reschedule_audit,
)
