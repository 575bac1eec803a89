"""The table of all operations of `/api/v1`: the routes, the OpenAPI document and the `http://` store read it."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from windlass.api import (
    about,
    calls,
    claim_calls,
    claims,
    job_calls,
    jobs,
    kv_calls,
    looks,
    moving,
    news,
    queue_calls,
    reasons,
    schedule_calls,
    schedules,
    server_calls,
    timings,
    upkeep_calls,
)
from windlass.api.roles import Role

A = TypeVar("A", bound=msgspec.Struct)
T = TypeVar("T", bound=msgspec.Struct)

ROOT: Final = "/api/v1"
REQUEST: Final = "windlass-request"
"""The header that names a call: repeated with the same name it is not done again."""
SERVING: Final = "windlass-serving"
"""The header that names the serving process: in every reply, and in a repeat that of the first try."""


class Repeat(Enum):
    """What makes it harmless to repeat a call whose reply was lost."""

    SAME = "same"
    """It changes nothing, or the same again."""
    STORE = "store"
    """The store knows the request, also after a restart of everything."""
    REPLY = "reply"
    """The serving process keeps its replies for a while; after its restart it refuses to guess."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[A, T]):
    """One thing that can be asked for: by GET with a query, by POST with a body."""

    name: str
    method: Literal["GET", "POST"]
    path: str
    asks: type[A]
    tells: type[T]
    roles: frozenset[Role]
    repeat: Repeat
    summary: str
    statuses: tuple[int, ...] = ()
    """Replies beside 200 and those that every operation may have."""

    @property
    def writes(self) -> bool:
        """Whether it may change something."""
        return self.method == "POST" and self.repeat is not Repeat.SAME


_VIEW, _PRODUCE, _WORK, _OPERATE, _ADMIN = Role.VIEW, Role.PRODUCE, Role.WORK, Role.OPERATE, Role.ADMIN
_EVERYONE: Final = frozenset(Role)
_all: Final[list[Operation[Any, Any]]] = []


def _operation(
    name: str,
    way: str,
    asks: type[A],
    tells: type[T],
    summary: str,
    *roles: Role,
    repeat: Repeat = Repeat.SAME,
    statuses: tuple[int, ...] = (),
) -> Operation[A, T]:
    method, _, path = way.partition(" ")
    allowed = frozenset((*roles, _ADMIN))
    made = Operation(
        name, "GET" if method == "GET" else "POST", ROOT + path, asks, tells, allowed, repeat, summary, statuses
    )
    _all.append(made)
    return made


# those of every job's life come first: the router asks in this order
ENQUEUE = _operation(
    "enqueue", "POST /jobs", job_calls.EnqueueAsked, job_calls.EnqueueTold,
    "Put jobs in line, all or none, in their order", _PRODUCE, _WORK, repeat=Repeat.STORE, statuses=(409,),
)  # fmt: skip
CLAIM = _operation(
    "claim", "POST /claims", claims.ClaimRequest, claims.Claims,
    "Take jobs to work on them; with `wait`, as soon as there is one", _WORK, repeat=Repeat.STORE, statuses=(409,),
)  # fmt: skip
SETTLE = _operation(
    "settle", "POST /claims/settle", claim_calls.SettleAsked, claim_calls.SettleTold,
    "Write how claims ended, each as one step of its own", _WORK, repeat=Repeat.STORE, statuses=(409,),
)  # fmt: skip
ENQUEUE_BATCHES = _operation(
    "enqueue_batches", "POST /jobs/batches", job_calls.BatchesAsked, job_calls.BatchesTold,
    "Put several batches in line, each whole or not at all", _PRODUCE, _WORK, repeat=Repeat.STORE,
)  # fmt: skip
RENEW = _operation(
    "renew", "POST /claims/renew", claim_calls.RenewAsked, claim_calls.RenewTold, "Let claims hold longer", _WORK
)
NOTE = _operation(
    "note", "POST /claims/note", claim_calls.NoteAsked, claim_calls.NoteTold,
    "Write progress and log lines of running jobs", _WORK,
    repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip
STOPS = _operation(
    "stops", "POST /claims/stops", claim_calls.StopsAsked, claim_calls.StopsTold,
    "Tell which of these claims should stop; with `wait`, as soon as one should", _WORK,
)  # fmt: skip
ABOUT = _operation("about", "GET ", calls.Nothing, about.About, "Tell what serves here, and who asks", *_EVERYONE)

GLANCE = _operation(
    "glance", "POST /jobs/glance", looks.JobIds, job_calls.GlanceTold, "Tell where jobs stand", *_EVERYONE
)
GET = _operation("get", "POST /jobs/get", job_calls.GetAsked, job_calls.GetTold, "Return jobs by their ids", *_EVERYONE)
JOBS = _operation(
    "jobs", "GET /jobs", looks.Listing, looks.Jobs, "List jobs in the order of their enqueue", _VIEW, _WORK, _OPERATE
)
NEWEST = _operation(
    "newest", "GET /jobs/newest", looks.NewestAsked, looks.Jobs, "List jobs, the newest first", _VIEW, _WORK, _OPERATE
)
JOB = _operation(
    "job", "GET /jobs/{id}", job_calls.JobAsked, jobs.Job, "Return one job, with its history and log", *_EVERYONE,
    statuses=(404,),
)  # fmt: skip
WAIT = _operation(
    "wait", "GET /jobs/{id}/wait", job_calls.WaitAsked, job_calls.Waited, "Wait for the end of a job", *_EVERYONE
)
PLACE = _operation(
    "place", "GET /jobs/{id}/place", calls.Nothing, looks.Place, "Tell what stands between a job and its claim",
    *_EVERYONE, statuses=(404,),
)  # fmt: skip
WHY = _operation(
    "why", "GET /jobs/{id}/why", calls.Nothing, reasons.Why,
    "Tell why a job has not run, where it is, or how it ended", _VIEW, _WORK, _OPERATE, statuses=(404,),
)  # fmt: skip
LOG = _operation(
    "log", "GET /jobs/{id}/log", calls.Nothing, job_calls.Followed,
    "Tell, as server-sent events, the log and the progress of a job until its end", *_EVERYONE, statuses=(404,),
)  # fmt: skip
CANCEL = _operation(
    "cancel", "POST /jobs/cancel", job_calls.CancelAsked, job_calls.CancelTold,
    "End waiting jobs, and ask running ones to stop", _PRODUCE, _WORK, _OPERATE, repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip
RETRY = _operation(
    "retry", "POST /jobs/retry", job_calls.ChangeAsked, job_calls.ChangeTold,
    "Give dead and cancelled jobs a new budget", _OPERATE, repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip
DELETE = _operation(
    "delete", "POST /jobs/delete", job_calls.ChangeAsked, job_calls.ChangeTold, "Delete finished jobs", _OPERATE,
    repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip
RESCHEDULE = _operation(
    "reschedule", "POST /jobs/reschedule", job_calls.RescheduleAsked, job_calls.ChangeTold,
    "Let waiting jobs run at another time", _OPERATE, repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip

QUEUES = _operation(
    "queues", "GET /queues", queue_calls.QueuesAsked, queue_calls.QueuesTold, "Count jobs by queue and state",
    *_EVERYONE,
)  # fmt: skip
PAUSE = _operation(
    "pause", "POST /queues/pause", queue_calls.QueueAsked, calls.Nothing, "Give no claims from a queue", _OPERATE
)
RESUME = _operation(
    "resume", "POST /queues/resume", queue_calls.QueueAsked, calls.Nothing, "Give claims from a queue again", _OPERATE
)
PAUSED = _operation(
    "paused", "POST /queues/paused", queue_calls.NamesAsked, calls.NamesTold, "Tell which of these queues are paused",
    *_EVERYONE,
)  # fmt: skip
DUE_IN = _operation(
    "due_in", "POST /queues/due", queue_calls.NamesAsked, queue_calls.DueTold,
    "Tell when the next scheduled job comes due",
    _VIEW, _WORK, _OPERATE,
)  # fmt: skip
KINDS = _operation(
    "kinds", "POST /queues/kinds", queue_calls.KindsAsked, calls.NamesTold,
    "Tell the kinds of the pending jobs of a queue",
    _VIEW, _WORK, _OPERATE,
)  # fmt: skip
WAITING = _operation(
    "waiting", "GET /queues/waiting", calls.Nothing, queue_calls.WaitingTold,
    "Count the pending jobs by queue and kind",
    _VIEW, _WORK, _OPERATE,
)  # fmt: skip
MINUTES = _operation(
    "minutes", "GET /minutes", queue_calls.MinutesAsked, queue_calls.MinutesTold, "Tell what happened in each minute",
    _VIEW, _WORK, _OPERATE,
)  # fmt: skip

TIMINGS = _operation(
    "timings", "GET /timings", queue_calls.MinutesAsked, timings.TimingsTold,
    "Tell how long attempts took in each minute",
    _VIEW, _WORK, _OPERATE,
)  # fmt: skip
WRITE_TIMINGS = _operation(
    "write_timings", "POST /timings", timings.TimingsWritten, calls.Nothing,
    "Add to the counts of how long attempts took", _WORK, repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip

SERVERS = _operation(
    "servers", "GET /servers", calls.Nothing, server_calls.ServersTold, "List the servers", _VIEW, _WORK, _OPERATE
)
BEAT = _operation(
    "beat", "POST /servers/beat", server_calls.BeatAsked, calls.Nothing, "Tell that a server is live", _WORK
)
LEAVE = _operation("leave", "POST /servers/leave", server_calls.LeaveAsked, calls.Nothing, "Take a server out", _WORK)
ENDED = _operation(
    "ended_servers", "GET /servers/ended", calls.Nothing, calls.NamesTold,
    "List servers whose process has ended for sure", _WORK, _OPERATE,
)  # fmt: skip
STRANDED = _operation(
    "stranded", "GET /servers/stranded", server_calls.StrandedAsked, calls.CountTold,
    "Count the leases that ran out and that nobody will rescue", *_EVERYONE,
)  # fmt: skip

SCHEDULES = _operation(
    "schedules", "POST /schedules/get", schedule_calls.ScheduleIdsAsked, schedules.Schedules, "List schedules",
    _VIEW, _WORK, _OPERATE,
)  # fmt: skip
PUT_SCHEDULE = _operation(
    "put_schedule", "POST /schedules/put", schedules.SchedulePut, schedules.Schedule,
    "Write a schedule, or replace its rule", _OPERATE, repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip
PAUSE_SCHEDULE = _operation(
    "pause_schedule", "POST /schedules/pause", schedule_calls.ScheduleAsked, calls.Nothing,
    "Let a schedule make no jobs",
    _OPERATE, statuses=(404,),
)  # fmt: skip
RESUME_SCHEDULE = _operation(
    "resume_schedule", "POST /schedules/resume", schedule_calls.ScheduleAsked, calls.Nothing,
    "Let a schedule make jobs again",
    _OPERATE, statuses=(404,),
)  # fmt: skip
RUN_SCHEDULE = _operation(
    "run_schedule", "POST /schedules/run", schedule_calls.ScheduleAsked, schedule_calls.Ran,
    "Make a job of a schedule now", _OPERATE,
    repeat=Repeat.REPLY, statuses=(404, 409),
)  # fmt: skip
WRITE_SCHEDULE = _operation(
    "write_schedule", "POST /schedules/write", schedules.ScheduleWritten, schedules.Revision,
    "Write a schedule if nobody has changed it", _WORK, _OPERATE, repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip
REMOVE_SCHEDULE = _operation(
    "remove_schedule", "POST /schedules/remove", schedule_calls.ScheduleAsked, schedule_calls.Removed,
    "Remove a schedule",
    _WORK, _OPERATE, repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip
DUE_SCHEDULES = _operation(
    "due_schedules", "POST /schedules/due", schedules.DueAsked, schedules.DueSchedules, "List schedules that are due",
    _WORK, _OPERATE,
)  # fmt: skip
FIRE = _operation(
    "fire", "POST /schedules/fire", schedules.Firing, schedules.Fired,
    "Make the jobs of a schedule and move its next run on", _WORK, _OPERATE, repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip

KV_GET = _operation(
    "kv_get", "POST /kv/get", kv_calls.KvKeysAsked, kv_calls.KvValuesTold,
    "Return values of the callers' own key space",
    _PRODUCE, _WORK,
)  # fmt: skip
KV_WRITE = _operation(
    "kv_write", "POST /kv/write", kv_calls.KvWriteAsked, kv_calls.Written, "Write a value, if its condition holds",
    _PRODUCE, _WORK, repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip
KV_SCAN = _operation(
    "kv_scan", "POST /kv/scan", kv_calls.KvScanAsked, kv_calls.KvPairsTold, "List keys and values", _PRODUCE, _WORK
)
LOCK = _operation(
    "lock", "POST /locks/take", kv_calls.LockAsked, kv_calls.HeldTold, "Take or renew a lock", _PRODUCE, _WORK
)
UNLOCK = _operation(
    "unlock", "POST /locks/free", kv_calls.UnlockAsked, kv_calls.HeldTold, "Let go of a lock", _PRODUCE, _WORK,
    repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip

RESCUE = _operation(
    "rescue", "POST /services/rescue", upkeep_calls.RescueAsked, upkeep_calls.RescueTold,
    "Take back claims whose lease ran out",
    _WORK, _OPERATE, repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip
PROMOTE = _operation(
    "promote", "POST /services/promote", upkeep_calls.PromoteAsked, calls.CountTold,
    "Make jobs pending that have come due",
    _OPERATE, repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip
PRUNE = _operation(
    "prune", "POST /services/prune", upkeep_calls.PruneAsked, calls.CountTold,
    "Delete finished records past their retention", _OPERATE, repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip
AUDIT = _operation(
    "audit", "GET /audit", upkeep_calls.AuditAsked, upkeep_calls.AuditTold, "Tell what people did", _OPERATE
)
WRITE_AUDIT = _operation(
    "write_audit", "POST /audit", upkeep_calls.AuditWritten, calls.Nothing, "Keep what people did", _OPERATE,
    repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip
CHECK = _operation(
    "check", "GET /check", calls.Nothing, upkeep_calls.CheckTold, "Look over the store's health and settings",
    _VIEW, _WORK, _OPERATE,
)  # fmt: skip
MOVED = _operation(
    "moved", "GET /move", calls.Nothing, moving.MovedTold, "Tell where the jobs of this store go or went", *_EVERYONE
)
SET_MOVED = _operation(
    "set_moved", "POST /move/set", moving.SetMovedAsked, calls.Nothing,
    "Let the store take nothing new, since its jobs go elsewhere, or take jobs again",
)  # fmt: skip
PACK = _operation(
    "pack", "POST /move/pack", moving.PackAsked, moving.Packed, "Return waiting jobs of a queue whole; they stay"
)
UNPACK = _operation(
    "unpack", "POST /move/unpack", moving.Parcel, moving.UnpackTold,
    "Put the jobs of a parcel in line as they are, if it is the next one", repeat=Repeat.STORE,
)  # fmt: skip
UNPACKED = _operation(
    "unpacked", "POST /move/unpacked", moving.UnpackedAsked, moving.UnpackedTold,
    "Tell the last parcel that was unpacked here",
)  # fmt: skip
LET_GO = _operation(
    "let_go", "POST /move/let_go", moving.LetGoAsked, moving.LetGoTold, "Forget what another store has now",
    repeat=Repeat.REPLY, statuses=(409,),
)  # fmt: skip
TIMED_KEYS = _operation(
    "timed_keys", "POST /move/timed_keys", moving.TimedKeysAsked, moving.TimedKeys,
    "List unique keys that only time frees",
)  # fmt: skip
TAKE_KEYS = _operation(
    "take_keys", "POST /move/take_keys", moving.TakeKeysAsked, calls.Nothing,
    "Let keys be held here until their time is over, those that are free",
)  # fmt: skip
NEWS = _operation(
    "news", "GET /news", news.NewsAsked, news.News,
    "Tell, as server-sent events, when there is news on topics", *_EVERYONE,
)  # fmt: skip

OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = tuple(_all)
