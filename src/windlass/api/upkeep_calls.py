"""What is asked and told about the upkeep of a store: rescue, promotion, pruning, its audit and its check."""

from typing import Annotated, Literal

from msgspec import Meta

from windlass.api.calls import MOST_JOBS
from windlass.api.looks import Audit, Finding, Retained
from windlass.api.shape import Asked, Limit, Name, Told
from windlass.core.states import State


class RescueAsked(Asked, kw_only=True):
    """Which claims to take back: expired ones, or with `force` all, of these queues and workers."""

    queues: Annotated[list[Name], Meta(max_length=MOST_JOBS)] | None = None
    workers: Annotated[list[str], Meta(max_length=MOST_JOBS)] | None = None
    force: bool = False
    to: Literal["retry", "dead"] = "retry"
    limit: Limit = 1000
    retention: Retained | None = None


class Rescued(Told, kw_only=True):
    """A job that was taken back, and where it went."""

    id: str
    state: State


class RescueTold(Told, kw_only=True):
    """The jobs that were taken back."""

    rescued: list[Rescued]


class PromoteAsked(Asked, kw_only=True):
    """How many at most."""

    limit: Limit = 1000


class PruneAsked(Asked, kw_only=True):
    """How many at most, and what is kept: the settings of the serving side unless it is said."""

    limit: Limit = 1000
    retention: Retained | None = None


class AuditAsked(Asked, kw_only=True):
    """How many of the newest entries."""

    limit: Limit = 100


class AuditTold(Told, kw_only=True):
    """What people did, the newest first."""

    entries: list[Audit]


class AuditWritten(Asked, kw_only=True):
    """What people did."""

    entries: Annotated[list[Audit], Meta(max_length=MOST_JOBS)]


class CheckTold(Told, kw_only=True):
    """What was looked at."""

    findings: list[Finding]
