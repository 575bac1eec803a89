"""What is asked and told about the upkeep of a store: rescue, promotion, pruning, its audit and its check."""

from dataclasses import replace
from typing import Annotated, Final, Literal

from msgspec import Meta

from windlass.api.calls import MOST_JOBS, CountTold, Nothing, count_reply, count_response, empty_request, nothing_reply
from windlass.api.carried_call import (
    CarriedCall,
    Parts,
    PlainCall,
    capped_limit,
    concatenated,
    limits_of,
    nothing,
    pages_of,
    parts_of_limit,
)
from windlass.api.looks import Audit, Finding, Retained, audit_of, audit_told, finding_of, finding_told, retained
from windlass.api.shape import Asked, Limit, Name, Told
from windlass.core import requests as core
from windlass.core.commands import PromoteJobs, PruneRecords, RescueClaims, WriteAudit
from windlass.core.ids import JobId
from windlass.core.looks import AuditEntry
from windlass.core.queries import CheckStore, ListAudit
from windlass.core.states import State


class RescueAsked(Asked, kw_only=True):
    """Which claims to take back: expired ones, or with `force` all, of these queues and workers.

    `workers` are names as jobs have them in `worker`; that of a server is its id.
    """

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
    """What people did, the newest first; `more` says that there are older entries than these."""

    entries: list[Audit]
    more: bool = False


class AuditWritten(Asked, kw_only=True):
    """What people did."""

    entries: Annotated[list[Audit], Meta(max_length=MOST_JOBS)]


class CheckTold(Told, kw_only=True):
    """What was looked at."""

    findings: list[Finding]


def _rescue_request(command: RescueClaims) -> RescueAsked:
    request = command.request
    return RescueAsked(
        queues=None if request.queues is None else list(request.queues),
        workers=None if request.workers is None else list(request.workers),
        force=request.force,
        to=request.to,
        limit=request.limit,
        retention=retained(command.retention),
    )


def _rescue_parts(command: RescueClaims) -> list[RescueClaims]:
    limits = limits_of(command.request.limit)
    return [replace(command, request=command.request._replace(limit=limit)) for limit in limits]


def _audit_response(query: ListAudit, entries: list[AuditEntry]) -> AuditTold:
    limit = query.limit - 1
    return AuditTold(entries=[audit_told(each) for each in entries[:limit]], more=len(entries) > limit)


RESCUE: Final = CarriedCall(
    RescueClaims,
    RescueAsked,
    RescueTold,
    request=_rescue_request,
    reply=lambda told: [core.Rescued(JobId(one.id), one.state) for one in told.rescued],
    parts=Parts(_rescue_parts, concatenated, is_last=lambda part, rescued: len(rescued) < part.request.limit),
)
PROMOTE: Final = PlainCall(
    PromoteJobs,
    PromoteAsked,
    CountTold,
    request=lambda command: PromoteAsked(limit=command.limit),
    read=lambda asked: PromoteJobs(asked.limit),
    response=count_response,
    reply=count_reply,
    parts=parts_of_limit(sum),
)
PRUNE: Final = CarriedCall(
    PruneRecords,
    PruneAsked,
    CountTold,
    request=lambda command: PruneAsked(limit=command.limit, retention=retained(command.retention)),
    reply=count_reply,
    parts=parts_of_limit(sum),
)
AUDIT: Final = PlainCall(
    ListAudit,
    AuditAsked,
    AuditTold,
    request=lambda query: AuditAsked(limit=query.limit),
    # one entry more shows whether there are older ones
    read=lambda asked: ListAudit(asked.limit + 1),
    response=_audit_response,
    reply=lambda told: [audit_of(one) for one in told.entries],
    parts=capped_limit(concatenated),
)
WRITE_AUDIT: Final = CarriedCall(
    WriteAudit,
    AuditWritten,
    Nothing,
    request=lambda command: AuditWritten(entries=[audit_told(each) for each in command.entries]),
    reply=nothing_reply,
    parts=pages_of("entries", nothing),
)
CHECK: Final = PlainCall(
    CheckStore,
    Nothing,
    CheckTold,
    request=empty_request,
    read=lambda _: CheckStore(),
    response=lambda _, findings: CheckTold(findings=[finding_told(each) for each in findings]),
    reply=lambda told: [finding_of(one) for one in told.findings],
)
