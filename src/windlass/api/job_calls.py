"""What is asked and told about jobs, where it is no record of its own."""

from typing import Annotated, Literal

from msgspec import Meta

from windlass.api.calls import MOST_JOBS
from windlass.api.claims import Wait
from windlass.api.jobs import Enqueued, Job, LogLine, NewJob, Progress
from windlass.api.looks import Chosen, Glance, Retained
from windlass.api.problems import Problem
from windlass.api.shape import Asked, Id, Moment, Told
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
