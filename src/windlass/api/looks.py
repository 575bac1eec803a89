"""What people look at, as the API writes and reads it."""

from typing import Annotated, Literal

from msgspec import Meta

from windlass.api.jobs import Job
from windlass.api.shape import Asked, Count, Id, Limit, Moment, Name, SearchText, Seconds, Told, seconds, span
from windlass.core import looks as seam
from windlass.core import stats as core
from windlass.core.filters import FILTER_FIELDS, JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Token
from windlass.core.retention import Keep, Retention
from windlass.core.states import State

MOST_LOOKED = 100_000
"""Records that one look for the newest jobs may take in."""


class Chosen(Asked, kw_only=True):
    """Jobs that match everything that is given."""

    queue: Name | None = None
    kind: Name | None = None
    state: State | None = None
    tenant: Name | None = None
    schedule_id: Name | None = None
    error: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    text: str | None = None
    parent_id: Id | None = None
    unique_key: Name | None = None
    error_type: SearchText | None = None
    payload_text: SearchText | None = None

    def filter(self) -> JobFilter:
        """Return which jobs are meant."""
        return JobFilter(**{name: getattr(self, name) for name in FILTER_FIELDS})


class Listing(Chosen, kw_only=True):
    """A page of jobs, in the order of their enqueue: those past the sequence number `after`."""

    after: Count | None = None
    limit: Limit = 100
    payload: Literal["json", "base64"] = "json"


class NewestAsked(Chosen, kw_only=True):
    """A page of jobs, the newest first: those before the sequence number `before`.

    About `most` records are looked at, however few of them match.
    """

    before: Count | None = None
    limit: Limit = 100
    most: Annotated[int, Meta(ge=1, le=MOST_LOOKED)] = 10_000
    payload: Literal["json", "base64"] = "json"


class Jobs(Told, kw_only=True):
    """A page of jobs, perhaps an empty one; with `next` there may be more, past it or, the newest first, before it."""

    jobs: list[Job]
    next: int | None = None


class DeadAsked(Asked, kw_only=True):
    """A page of the dead jobs of a queue or of all, the last to die first: those past the cursor `before`."""

    queue: Name | None = None
    before: Annotated[str, Meta(pattern=seam.DEATH)] | None = None
    limit: Limit = 100
    payload: Literal["json", "base64"] = "json"


class DeadJobs(Told, kw_only=True):
    """A page of dead jobs, perhaps an empty one, and the cursor of each; with `next` there may be more past it."""

    jobs: list[Job]
    cursors: list[str]
    next: str | None = None


class Place(Told, kw_only=True):
    """What stands between a job and its claim: pending jobs `ahead` of it, up to 1,000, and who holds its unique key.

    `now` is the time of the store at that look. Without `ahead` the job is not pending.
    """

    now: Moment
    ahead: int | None = None
    key_holder: str | None = None


def place_of(told: Place) -> seam.Place:
    """Return what stands between a job and its claim."""
    return seam.Place(told.now, told.ahead, None if told.key_holder is None else JobId(told.key_holder))


class Glance(Told, kw_only=True):
    """Where a job stands; its token is told to those who work alone."""

    state: State
    cancel_requested: bool = False
    token: str | None = None


def glance_of(told: Glance) -> seam.Glance:
    """Return where a job stands."""
    return seam.Glance(told.state, told.cancel_requested, None if told.token is None else Token(told.token))


class Totals(Told, kw_only=True, omit_defaults=False):
    """What ever happened; no number here ever falls."""

    enqueued: int = 0
    succeeded: int = 0
    dead: int = 0
    cancelled: int = 0
    retried: int = 0
    rescued: int = 0


class Queue(Told, kw_only=True, omit_defaults=False):
    """The records of a queue by state, now; `oldest_waiting` is the earliest `run_at` of its pending jobs."""

    queue: str
    paused: bool = False
    scheduled: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    dead: int = 0
    cancelled: int = 0
    oldest_waiting: Moment | None = None
    totals: Totals


def queue_told(row: core.QueueStats) -> Queue:
    """Return what a queue holds, as it is told."""
    return Queue(
        queue=row.queue or "",
        paused=row.paused,
        scheduled=row.scheduled,
        pending=row.pending,
        running=row.running,
        succeeded=row.succeeded,
        dead=row.dead,
        cancelled=row.cancelled,
        oldest_waiting=row.oldest_waiting,
        totals=Totals(**row.totals._asdict()),
    )


def queue_of(told: Queue) -> core.QueueStats:
    """Return what a queue holds."""
    return core.QueueStats(
        told.queue, told.paused, told.scheduled, told.pending, told.running, told.succeeded, told.dead,
        told.cancelled, told.oldest_waiting, totals_of(told.totals),
    )  # fmt: skip


def totals_of(told: Totals) -> core.Totals:
    """Return what ever happened."""
    return core.Totals(told.enqueued, told.succeeded, told.dead, told.cancelled, told.retried, told.rescued)


class Waiting(Told, kw_only=True):
    """The pending jobs of a queue and a kind (empty for raw jobs), now, and the earliest `run_at` of them."""

    queue: str
    kind: str
    pending: int
    oldest_waiting: Moment | None = None


def waiting_told(row: core.KindStats) -> Waiting:
    """Return how many jobs of a kind wait, as it is told."""
    return Waiting(queue=row.queue, kind=row.kind, pending=row.pending, oldest_waiting=row.oldest_waiting)


def waiting_of(told: Waiting) -> core.KindStats:
    """Return how many jobs of a kind wait."""
    return core.KindStats(told.queue, told.kind, told.pending, told.oldest_waiting)


class Minute(Told, kw_only=True):
    """What happened on a queue with a kind (empty for raw jobs) in one minute."""

    minute: Moment
    queue: str
    kind: str
    counts: Totals


def minute_told(row: core.MinuteCounts) -> Minute:
    """Return what happened in a minute, as it is told."""
    return Minute(minute=row.minute, queue=row.queue, kind=row.kind, counts=Totals(**row.counts._asdict()))


def minute_of(told: Minute) -> core.MinuteCounts:
    """Return what happened in a minute."""
    return core.MinuteCounts(told.minute, told.queue, told.kind, totals_of(told.counts))


class Server(Told, kw_only=True):
    """A process that runs workers or services, as it last told the store."""

    id: Annotated[str, Meta(min_length=1, max_length=300)]
    name: str
    host: str
    pid: int
    version: str
    started_at: Moment
    seen_at: Moment
    queues: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    running: int = 0
    details: dict[str, str] = {}


def server_told(record: seam.ServerRecord) -> Server:
    """Return a server as it is told."""
    return Server(
        id=record.id,
        name=record.name,
        host=record.host,
        pid=record.pid,
        version=record.version,
        started_at=record.started_at,
        seen_at=record.seen_at,
        queues=record.queues,
        kinds=record.kinds,
        schedules=record.schedules,
        running=record.running,
        details=dict(record.details),
    )


def server_of(told: Server) -> seam.ServerRecord:
    """Return the record of a server."""
    return seam.ServerRecord(
        told.id, told.name, told.host, told.pid, told.version, told.started_at, told.seen_at, told.queues, told.kinds,
        told.schedules, told.running, told.details,
    )  # fmt: skip


class Audit(Told, kw_only=True):
    """What a person did."""

    at: Moment
    actor: str
    action: str
    target: str
    detail: dict[str, str] = {}


def audit_told(entry: seam.AuditEntry) -> Audit:
    """Return an entry of the audit as it is told."""
    return Audit(at=entry.at, actor=entry.actor, action=entry.action, target=entry.target, detail=dict(entry.detail))


def audit_of(told: Audit) -> seam.AuditEntry:
    """Return an entry of the audit."""
    return seam.AuditEntry(told.at, told.actor, told.action, told.target, told.detail)


class Finding(Told, kw_only=True):
    """One thing that was looked at; `advice` says what to do when it is not well."""

    name: str
    level: Literal["ok", "warning", "error"]
    message: str
    advice: str | None = None


def finding_told(found: seam.Finding) -> Finding:
    """Return a finding as it is told."""
    return Finding(name=found.name, level=found.level, message=found.message, advice=found.advice)


def finding_of(told: Finding) -> seam.Finding:
    """Return a finding."""
    return seam.Finding(told.name, told.level, told.message, told.advice)


class Kept(Asked, kw_only=True):
    """How many seconds each end is kept: zero, the record goes with the end of the job; null, it stays for ever."""

    succeeded: Seconds | None
    dead: Seconds | None
    cancelled: Seconds | None


class Retained(Asked, kw_only=True):
    """What is kept, for all queues and for single ones."""

    default: Kept
    queues: dict[Name, Kept] = {}
    most: Count | None = None

    def retention(self) -> Retention:
        """Return what is kept."""
        return Retention(_keep(self.default), {queue: _keep(kept) for queue, kept in self.queues.items()}, self.most)


def retained(retention: Retention) -> Retained:
    """Return what is kept, as it is sent."""
    return Retained(
        default=_kept(retention.default),
        queues={queue: _kept(keep) for queue, keep in retention.queues.items()},
        most=retention.most,
    )


def _keep(kept: Kept) -> Keep:
    return Keep(span(kept.succeeded), span(kept.dead), span(kept.cancelled))


def _kept(keep: Keep) -> Kept:
    return Kept(succeeded=seconds(keep.succeeded), dead=seconds(keep.dead), cancelled=seconds(keep.cancelled))


class JobIds(Asked, kw_only=True):
    """Jobs by their ids."""

    ids: Annotated[list[Id], Meta(max_length=10_000)]
