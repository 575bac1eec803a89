"""What single operations ask for and tell, where it is no record of its own."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from windlass.api.claims import Ending, Held, Note, Renewed, Settled, Stop, Wait
from windlass.api.jobs import Enqueued, Job, LogLine, NewJob, Progress
from windlass.api.looks import Audit, Chosen, Finding, Glance, Minute, Queue, Retained, Server, Waiting
from windlass.api.problems import Problem
from windlass.api.roles import Role
from windlass.api.shape import Asked, Blob, Id, KvPair, Limit, Moment, Name, Seconds, Told
from windlass.core.requests import CancelOutcome, Changed
from windlass.core.states import State

MOST_JOBS = 10_000
"""How many jobs one call may name; more of them are more calls."""


class Nothing(Told, kw_only=True):
    """It is done, and there is nothing to tell."""


class About(Told, kw_only=True):
    """What serves here, and who asks."""

    version: str
    serving: str
    """The id of the serving process: another one after each start."""
    atomic_across_queues: bool = True
    """Whether one call may touch several queues."""
    name: str
    roles: list[Role]
    queues: list[str] | None = None
    """The queues that the caller's token is limited to."""


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


class SettleAsked(Asked, kw_only=True):
    """How claims ended, each as one step of its own."""

    settlements: Annotated[list[Ending], Meta(max_length=MOST_JOBS)]


class SettleTold(Told, kw_only=True):
    """What each settlement did, in their order."""

    settled: list[Settled]


class RenewAsked(Asked, kw_only=True):
    """Claims that are to hold for `lease` seconds from now."""

    claims: Annotated[list[Held], Meta(max_length=MOST_JOBS)]
    lease: Seconds


class RenewTold(Told, kw_only=True):
    """Each claim in their order, null where the token no longer holds."""

    renewed: list[Renewed | None]


class NoteAsked(Asked, kw_only=True):
    """What running jobs report of themselves."""

    notes: Annotated[list[Note], Meta(max_length=MOST_JOBS)]


class NoteTold(Told, kw_only=True):
    """Whether each was written: false where the token no longer holds."""

    written: list[bool]


class StopsAsked(Asked, kw_only=True):
    """Claims whose holder wants to know when one should stop."""

    claims: Annotated[list[Held], Meta(max_length=MOST_JOBS)]
    wait: Wait = 0.0


class StopsTold(Told, kw_only=True):
    """The claims that should stop; none when the time was over."""

    stops: list[Stop]


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


class NamesTold(Told, kw_only=True):
    """Names, in order."""

    names: list[str]


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


class ServersTold(Told, kw_only=True):
    """Every server that has not taken itself out."""

    servers: list[Server]


class BeatAsked(Asked, kw_only=True):
    """That a server is live."""

    server: Server


class LeaveAsked(Asked, kw_only=True):
    """A server that has stopped."""

    id: Annotated[str, Meta(min_length=1, max_length=300)]


class StrandedAsked(Asked, kw_only=True):
    """After how many seconds of silence a server counts as gone."""

    dead_after: Seconds = 60.0


class CountTold(Told, kw_only=True):
    """How many."""

    count: int


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


class KvKeysAsked(Asked, kw_only=True):
    """Keys of the caller's own key space."""

    keys: Annotated[list[Blob], Meta(max_length=MOST_JOBS)]


class KvValuesTold(Told, kw_only=True):
    """The values in the order of their keys, null for each that is not here."""

    values: list[Blob | None]


class KvWriteAsked(Asked, kw_only=True):
    """A value to be written, null deletes; with `expected` only if the key now holds that, null for absent."""

    key: Blob
    value: Blob | None = None
    expected: Blob | UnsetType | None = UNSET


class Written(Told, kw_only=True):
    """Whether the condition held and it was written."""

    written: bool


class KvScanAsked(Asked, kw_only=True):
    """Pairs whose key begins with `prefix`, in the order of their bytes, past `after`."""

    prefix: Blob = ""
    after: Blob | None = None
    limit: Limit = 100


class KvPairsTold(Told, kw_only=True):
    """A page of pairs."""

    pairs: list[KvPair]


class LockAsked(Asked, kw_only=True):
    """A lock to be taken or renewed for `ttl` seconds."""

    name: Name
    holder: Name
    ttl: Seconds


class UnlockAsked(Asked, kw_only=True):
    """A lock to be let go."""

    name: Name
    holder: Name


class HeldTold(Told, kw_only=True):
    """Whether the holder has it, or had it."""

    held: bool


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


class NewsAsked(Asked, kw_only=True):
    """What is to be told of: `ends`, `flags`, `pauses`, `schedules`, `queue:NAME`, `lock:NAME`."""

    topic: Annotated[list[Annotated[str, Meta(min_length=1, max_length=300)]], Meta(min_length=1, max_length=1_000)]


class News(Told, kw_only=True):
    """Topics that have news; each event of the stream is one of these."""

    topics: list[str]


class Health(Told, kw_only=True):
    """Whether this process can serve; the reasons why not are told to whoever has a token."""

    ready: bool
    reasons: list[str] = []


class SessionTold(Told, kw_only=True):
    """Who has logged in, and until when."""

    name: str
    roles: list[Role]
    expires_at: Moment
