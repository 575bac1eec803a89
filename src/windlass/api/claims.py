"""Claims and how they end, as the API writes and reads them."""

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Raw, UnsetType, ValidationError

from windlass.api.jobs import JSON, RAW, Failure, Job, NewJob, Progress, failure_told, follower_asked, job_of, told
from windlass.api.problems import Problem
from windlass.api.shape import Asked, Id, KvPair, Limit, Moment, Name, Seconds, Told, pairs, seconds
from windlass.core import job as core
from windlass.core import requests as seam
from windlass.core import verdict as ends
from windlass.core.ids import JobId

MOST_WAIT = 60.0
"""Seconds that one call may wait; whoever wants to wait longer asks again."""
Wait: TypeAlias = Annotated[float, Meta(ge=0, le=MOST_WAIT)]
Token: TypeAlias = Annotated[str, Meta(max_length=500)]


class ClaimRequest(Asked, kw_only=True):
    """Up to `limit` ready jobs, strictly in the order of `queues`, or with `by_priority` the most urgent of all.

    With `wait` the answer comes when there is a job, or when the time is over. Null among `kinds` stands for raw jobs.
    """

    queues: Annotated[list[Name], Meta(min_length=1, max_length=10_000)]
    limit: Limit = 1
    lease: Seconds | None = None
    wait: Wait = 0.0
    kinds: list[Name | None] | None = None
    worker: (
        Annotated[
            str,
            Meta(min_length=1, max_length=300, extra_json_schema={"pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$"}),
        ]
        | None
    ) = None
    by_priority: bool = False
    payload: Literal["json", "base64"] = "json"


def claim_asked(request: seam.ClaimRequest) -> ClaimRequest:
    """Return what a worker wants, as it is sent."""
    return ClaimRequest(
        queues=list(request.queues),
        limit=request.limit,
        lease=seconds(request.lease),
        kinds=None if request.kinds is None else list(request.kinds),
        worker=request.worker,
        by_priority=request.by_priority,
        payload="base64",
    )


class Claim(Told, kw_only=True):
    """A job that was taken, and the token that proves it."""

    token: str
    job: Job


class Claims(Told, kw_only=True):
    """Jobs that were taken, the most urgent first.

    `next_at` is when a later claim may be given something although no job comes due or is enqueued.
    """

    claims: list[Claim]
    next_at: Moment | None = None


def claims_told(claimed: seam.Claimed, *, as_bytes: bool) -> Claims:
    """Return claims as they are told."""
    claims = [Claim(token=claim.token, job=told(claim.job, as_bytes=as_bytes)) for claim in claimed.jobs]
    return Claims(claims=claims, next_at=claimed.next_at)


def claims_of(told: Claims) -> seam.Claimed:
    """Return the claims that were told."""
    return seam.Claimed([core.Claim(job_of(each.job), core.Token(each.token)) for each in told.claims], told.next_at)


class Held(Asked, kw_only=True):
    """A job, and the token of the claim that holds it."""

    id: Id
    token: Token


class _Ending(Asked, tag_field="do", kw_only=True):
    id: Id
    token: Token
    keep: bool | None = None
    """Whether the record outlives the job; the settings of the serving side unless it is said."""
    then: list[NewJob] = []
    kv: list[KvPair] | None = None


class Ack(_Ending, tag="ack", kw_only=True):
    """The work was done."""

    result: Raw | UnsetType = UNSET
    result_base64: bytes | None = None
    codec: Name | None = None

    def carried(self) -> tuple[bytes, str] | None:
        """Return the result and the name of its codec, or None without one."""
        if not isinstance(self.result, UnsetType):
            if self.result_base64 is not None or self.codec is not None:
                raise ValidationError("`result` is JSON and stands alone: leave out `result_base64` and `codec`")
            return bytes(self.result), JSON
        return None if self.result_base64 is None else (self.result_base64, self.codec or RAW)


class Nack(_Ending, tag="nack", kw_only=True):
    """The attempt failed: retried after `delay`, or by the retry policy of the serving side, or dead."""

    error: str | Failure
    delay: Seconds | None = None


class Retry(_Ending, tag="retry", kw_only=True):
    """The attempt failed, and whoever ran it has decided that there is another one after `delay`."""

    error: str | Failure
    delay: Seconds = 0.0


class DeadLetter(_Ending, tag="dead_letter", kw_only=True):
    """The work can never be done."""

    error: str | Failure


class Snooze(_Ending, tag="snooze", kw_only=True):
    """The work is to be done later, at no cost of an attempt."""

    delay: Seconds


class Release(_Ending, tag="release", kw_only=True):
    """The job goes back to its place, at no cost; `started` tells whether any work was done."""

    started: bool = False


class Cancel(_Ending, tag="cancel", kw_only=True):
    """The job ends here because somebody wanted it to."""

    reason: str


Ending: TypeAlias = Ack | Nack | Retry | DeadLetter | Snooze | Release | Cancel


def settlement_asked(settlement: seam.Settlement) -> Ending:
    """Return how a claim ended, as it is sent."""
    job_id, token, verdict, keep, then, kv = settlement
    common = (job_id, token, keep, [follower_asked(job) for job in then], None if kv is None else pairs(kv))
    match verdict:
        case ends.ToSucceeded(result, codec):
            return _end(Ack(id=job_id, token=token, result_base64=result, codec=codec), common)
        case ends.ToRetry(delay, failure):
            return _end(Retry(id=job_id, token=token, error=failure_told(failure), delay=delay.total_seconds()), common)
        case ends.ToDead(failure):
            return _end(DeadLetter(id=job_id, token=token, error=failure_told(failure)), common)
        case ends.ToSnoozed(delay):
            return _end(Snooze(id=job_id, token=token, delay=delay.total_seconds()), common)
        case ends.ToReleased(started):
            return _end(Release(id=job_id, token=token, started=started), common)
        case ends.ToCancelled(reason):
            return _end(Cancel(id=job_id, token=token, reason=reason), common)


def _end(ending: Ending, common: tuple[str, str, bool, list[NewJob], list[KvPair] | None]) -> Ending:
    _, _, ending.keep, ending.then, ending.kv = common
    return ending


class Settled(Told, kw_only=True):
    """What one settlement did: `done`; `repeated`, it had been done before; `lost`, the token no longer holds.

    `refused` carries why, and nothing of it was written.
    """

    outcome: Literal["done", "repeated", "lost", "refused"]
    problem: Problem | None = None


class Renewed(Told, kw_only=True):
    """Until when a claim holds now, and whether its job should stop."""

    lease_expires_at: Moment
    cancel_requested: bool = False


def renewed_told(renewed: seam.Renewed) -> Renewed:
    """Return the new end of a lease as it is told."""
    return Renewed(lease_expires_at=renewed.lease_expires_at, cancel_requested=renewed.cancel_requested)


def renewed_of(told: Renewed) -> seam.Renewed:
    """Return the new end of a lease."""
    return seam.Renewed(told.lease_expires_at, told.cancel_requested)


class LineWritten(Asked, kw_only=True):
    """A line for the log of a running job; the store stamps the time."""

    level: Annotated[str, Meta(max_length=200)]
    text: str


class Note(Asked, kw_only=True):
    """What a running job reports of itself."""

    id: Id
    token: Token
    progress: Progress | None = None
    lines: list[LineWritten] = []


def note_asked(note: core.Note) -> Note:
    """Return what a job reports, as it is sent."""
    progress = note.progress
    return Note(
        id=note.job_id,
        token=note.token,
        progress=None if progress is None else Progress(done=progress.done, total=progress.total, note=progress.note),
        lines=[LineWritten(level=level, text=text) for level, text in note.lines],
    )


def note_of(note: Note) -> core.Note:
    """Return what a job reports."""
    progress = note.progress
    return core.Note(
        JobId(note.id),
        core.Token(note.token),
        None if progress is None else core.Progress(progress.done, progress.total, progress.note),
        [(line.level, line.text) for line in note.lines],
    )


class Stop(Told, kw_only=True):
    """A claim whose job should stop, and why: it was cancelled, or another one holds it."""

    id: str
    reason: Literal["cancel", "claim_lost"]
