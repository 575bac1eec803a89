"""The table of all operations of `/api/v1`: the routes, the OpenAPI document and the `http://` store read it."""

from collections.abc import Mapping
from dataclasses import dataclass
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
from windlass.api.carried_call import CarriedCall
from windlass.api.roles import Role
from windlass.core.store_calls import RepeatSafety, StoreCall

A = TypeVar("A", bound=msgspec.Struct)
T = TypeVar("T", bound=msgspec.Struct)

ROOT: Final = "/api/v1"
REQUEST: Final = "windlass-request"
"""The header that names a call: repeated with the same name it is not done again."""
IDEMPOTENCY_KEY: Final = "idempotency-key"
"""The name of that header in other APIs, which is understood too."""
SERVING: Final = "windlass-serving"
"""The header that names the serving process: in every reply, and in a repeat that of the first try."""


@dataclass(frozen=True, slots=True)
class Operation(Generic[A, T]):
    """One thing that can be asked for: by GET with a query, by POST with a body."""

    name: str
    method: Literal["GET", "POST"]
    path: str
    asks: type[A]
    tells: type[T]
    roles: frozenset[Role]
    repeat: RepeatSafety
    summary: str
    statuses: tuple[int, ...] = ()
    """Replies beside 200 and those that every operation may have."""
    carries: CarriedCall[Any, Any, A, T] | None = None
    """The call of a store that it is; None where it is more than one, or has no store call's arguments."""

    @property
    def writes(self) -> bool:
        """Whether it may change something."""
        return self.method == "POST" and self.repeat is not RepeatSafety.SAME


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
    repeat: RepeatSafety = RepeatSafety.SAME,
    statuses: tuple[int, ...] = (),
    carries: CarriedCall[Any, Any, A, T] | None = None,
) -> Operation[A, T]:
    method, _, path = way.partition(" ")
    get_or_post: Literal["GET", "POST"] = "GET" if method == "GET" else "POST"
    allowed = frozenset((*roles, _ADMIN))
    made = Operation(name, get_or_post, ROOT + path, asks, tells, allowed, repeat, summary, statuses, carries)
    _all.append(made)
    return made


def _carrying(
    name: str,
    way: str,
    carries: CarriedCall[Any, Any, A, T],
    summary: str,
    *roles: Role,
    statuses: tuple[int, ...] = (),
) -> Operation[A, T]:
    # a query has none: it changes nothing
    repeat: RepeatSafety = getattr(carries.call, "repeat", RepeatSafety.SAME)
    return _operation(
        name, way, carries.asks, carries.tells, summary, *roles, repeat=repeat, statuses=statuses, carries=carries
    )


# those of every job's life come first: the router asks in this order
ENQUEUE = _operation(
    "enqueue", "POST /jobs", job_calls.EnqueueAsked, job_calls.EnqueueTold,
    "Put jobs in line, all or none, in their order", _PRODUCE, _WORK, repeat=RepeatSafety.STORE, statuses=(409,),
)  # fmt: skip
CLAIM = _operation(
    "claim", "POST /claims", claims.ClaimRequest, claims.Claims,
    "Take jobs to work on them; with `wait`, as soon as there is one", _WORK,
    repeat=RepeatSafety.STORE, statuses=(409,),
)  # fmt: skip
SETTLE = _operation(
    "settle", "POST /claims/settle", claim_calls.SettleAsked, claim_calls.SettleTold,
    "Write how claims ended, each as one step of its own", _WORK, repeat=RepeatSafety.STORE, statuses=(409,),
)  # fmt: skip
ENQUEUE_BATCHES = _operation(
    "enqueue_batches", "POST /jobs/batches", job_calls.BatchesAsked, job_calls.BatchesTold,
    "Put several batches in line, each whole or not at all", _PRODUCE, _WORK, repeat=RepeatSafety.STORE,
)  # fmt: skip
RENEW = _carrying("renew", "POST /claims/renew", claim_calls.RENEW, "Let claims hold longer", _WORK)
NOTE = _carrying(
    "note", "POST /claims/note", claim_calls.NOTE, "Write progress and log lines of running jobs",
    _WORK, statuses=(409,),
)  # fmt: skip
STOPS = _operation(
    "stops", "POST /claims/stops", claim_calls.StopsAsked, claim_calls.StopsTold,
    "Tell which of these claims should stop; with `wait`, as soon as one should", _WORK,
)  # fmt: skip
ABOUT = _operation("about", "GET ", calls.Nothing, about.About, "Tell what serves here, and who asks", *_EVERYONE)

GLANCE = _carrying("glance", "POST /jobs/glance", job_calls.GLANCE, "Tell where jobs stand", *_EVERYONE)
GET = _carrying("get", "POST /jobs/get", job_calls.GET, "Return jobs by their ids", *_EVERYONE)
JOBS = _operation(
    "jobs", "GET /jobs", looks.Listing, looks.Jobs, "List jobs in the order of their enqueue", _VIEW, _WORK, _OPERATE
)
NEWEST = _operation(
    "newest", "GET /jobs/newest", looks.NewestAsked, looks.Jobs, "List jobs, the newest first", _VIEW, _WORK, _OPERATE
)
DEAD = _operation(
    "dead", "GET /jobs/dead", looks.DeadAsked, looks.DeadJobs, "List dead jobs, the last to die first",
    _VIEW, _WORK, _OPERATE,
)  # fmt: skip
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
CANCEL = _carrying(
    "cancel", "POST /jobs/cancel", job_calls.CANCEL, "End waiting jobs, and ask running ones to stop",
    _PRODUCE, _WORK, _OPERATE, statuses=(409,),
)  # fmt: skip
RETRY = _carrying(
    "retry", "POST /jobs/retry", job_calls.RETRY, "Give dead and cancelled jobs a new budget", _OPERATE, statuses=(409,)
)
DELETE = _carrying("delete", "POST /jobs/delete", job_calls.DELETE, "Delete finished jobs", _OPERATE, statuses=(409,))
RESCHEDULE = _carrying(
    "reschedule", "POST /jobs/reschedule", job_calls.RESCHEDULE, "Let waiting jobs run at another time",
    _OPERATE, statuses=(409,),
)  # fmt: skip

QUEUES = _carrying("queues", "GET /queues", queue_calls.QUEUES, "Count jobs by queue and state", *_EVERYONE)
PAUSE = _carrying("pause", "POST /queues/pause", queue_calls.PAUSE, "Give no claims from a queue", _OPERATE)
RESUME = _carrying("resume", "POST /queues/resume", queue_calls.RESUME, "Give claims from a queue again", _OPERATE)
PAUSED = _carrying(
    "paused", "POST /queues/paused", queue_calls.PAUSED, "Tell which of these queues are paused", *_EVERYONE
)
DUE_IN = _carrying(
    "due_in", "POST /queues/due", queue_calls.DUE_IN, "Tell when the next scheduled job comes due",
    _VIEW, _WORK, _OPERATE,
)  # fmt: skip
KINDS = _carrying(
    "kinds", "POST /queues/kinds", queue_calls.KINDS, "Tell the kinds of the pending jobs of a queue",
    _VIEW, _WORK, _OPERATE,
)  # fmt: skip
WAITING = _carrying(
    "waiting", "GET /queues/waiting", queue_calls.WAITING, "Count the pending jobs by queue and kind",
    _VIEW, _WORK, _OPERATE,
)  # fmt: skip
MINUTES = _carrying(
    "minutes", "GET /minutes", queue_calls.MINUTES, "Tell what happened in each minute", _VIEW, _WORK, _OPERATE
)

TIMINGS = _carrying(
    "timings", "GET /timings", timings.TIMINGS, "Tell how long attempts took in each minute", _VIEW, _WORK, _OPERATE
)
WRITE_TIMINGS = _carrying(
    "write_timings", "POST /timings", timings.WRITE_TIMINGS, "Add to the counts of how long attempts took",
    _WORK, statuses=(409,),
)  # fmt: skip

SERVERS = _carrying("servers", "GET /servers", server_calls.SERVERS, "List the servers", _VIEW, _WORK, _OPERATE)
BEAT = _carrying("beat", "POST /servers/beat", server_calls.BEAT, "Tell that a server is live", _WORK)
LEAVE = _carrying("leave", "POST /servers/leave", server_calls.LEAVE, "Take a server out", _WORK)
ENDED = _carrying(
    "ended_servers", "GET /servers/ended", server_calls.ENDED, "List servers whose process has ended for sure",
    _WORK, _OPERATE,
)  # fmt: skip
STRANDED = _carrying(
    "stranded", "GET /servers/stranded", server_calls.STRANDED,
    "Count the leases that ran out and that nobody will rescue", *_EVERYONE,
)  # fmt: skip

SCHEDULES = _carrying(
    "schedules", "POST /schedules/get", schedule_calls.SCHEDULES, "List schedules", _VIEW, _WORK, _OPERATE
)
PUT_SCHEDULE = _operation(
    "put_schedule", "POST /schedules/put", schedules.SchedulePut, schedules.Schedule,
    "Write a schedule, or replace its rule", _OPERATE, repeat=RepeatSafety.REPLY, statuses=(409,),
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
    repeat=RepeatSafety.REPLY, statuses=(404, 409),
)  # fmt: skip
WRITE_SCHEDULE = _carrying(
    "write_schedule", "POST /schedules/write", schedules.WRITE_SCHEDULE, "Write a schedule if nobody has changed it",
    _WORK, _OPERATE, statuses=(409,),
)  # fmt: skip
REMOVE_SCHEDULE = _carrying(
    "remove_schedule", "POST /schedules/remove", schedule_calls.REMOVE_SCHEDULE, "Remove a schedule",
    _WORK, _OPERATE, statuses=(409,),
)  # fmt: skip
DUE_SCHEDULES = _carrying(
    "due_schedules", "POST /schedules/due", schedules.DUE_SCHEDULES, "List schedules that are due", _WORK, _OPERATE
)
FIRE = _carrying(
    "fire", "POST /schedules/fire", schedules.FIRE, "Make the jobs of a schedule and move its next run on",
    _WORK, _OPERATE, statuses=(409,),
)  # fmt: skip

KV_GET = _carrying(
    "kv_get", "POST /kv/get", kv_calls.KV_GET, "Return values of the callers' own key space", _PRODUCE, _WORK
)
KV_WRITE = _carrying(
    "kv_write", "POST /kv/write", kv_calls.KV_WRITE, "Write a value, if its condition holds",
    _PRODUCE, _WORK, statuses=(409,),
)  # fmt: skip
KV_SCAN = _carrying("kv_scan", "POST /kv/scan", kv_calls.KV_SCAN, "List keys and values", _PRODUCE, _WORK)
LOCK = _carrying("lock", "POST /locks/take", kv_calls.LOCK, "Take or renew a lock", _PRODUCE, _WORK)
UNLOCK = _carrying("unlock", "POST /locks/free", kv_calls.UNLOCK, "Let go of a lock", _PRODUCE, _WORK, statuses=(409,))

RESCUE = _carrying(
    "rescue", "POST /services/rescue", upkeep_calls.RESCUE, "Take back claims whose lease ran out",
    _WORK, _OPERATE, statuses=(409,),
)  # fmt: skip
PROMOTE = _carrying(
    "promote", "POST /services/promote", upkeep_calls.PROMOTE, "Make jobs pending that have come due",
    _OPERATE, statuses=(409,),
)  # fmt: skip
PRUNE = _carrying(
    "prune", "POST /services/prune", upkeep_calls.PRUNE, "Delete finished records past their retention",
    _OPERATE, statuses=(409,),
)  # fmt: skip
AUDIT = _carrying("audit", "GET /audit", upkeep_calls.AUDIT, "Tell what people did", _OPERATE)
WRITE_AUDIT = _carrying(
    "write_audit", "POST /audit", upkeep_calls.WRITE_AUDIT, "Keep what people did", _OPERATE, statuses=(409,)
)
CHECK = _carrying(
    "check", "GET /check", upkeep_calls.CHECK, "Look over the store's health and settings", _VIEW, _WORK, _OPERATE
)
MOVED = _carrying("moved", "GET /move", moving.MOVED, "Tell where the jobs of this store go or went", *_EVERYONE)
SET_MOVED = _carrying(
    "set_moved", "POST /move/set", moving.SET_MOVED,
    "Let the store take nothing new, since its jobs go elsewhere, or take jobs again",
)  # fmt: skip
PACK = _carrying("pack", "POST /move/pack", moving.PACK, "Return waiting jobs of a queue whole; they stay")
UNPACK = _carrying(
    "unpack", "POST /move/unpack", moving.UNPACK, "Put the jobs of a parcel in line as they are, if it is the next one"
)
UNPACKED = _carrying("unpacked", "POST /move/unpacked", moving.UNPACKED, "Tell the last parcel that was unpacked here")
LET_GO = _carrying("let_go", "POST /move/let_go", moving.LET_GO, "Forget what another store has now", statuses=(409,))
TIMED_KEYS = _carrying(
    "timed_keys", "POST /move/timed_keys", moving.TIMED_KEYS, "List unique keys that only time frees"
)
TAKE_KEYS = _carrying(
    "take_keys", "POST /move/take_keys", moving.TAKE_KEYS,
    "Let keys be held here until their time is over, those that are free",
)  # fmt: skip
NEWS = _operation(
    "news", "GET /news", news.NewsAsked, news.News,
    "Tell, as server-sent events, when there is news on topics", *_EVERYONE,
)  # fmt: skip

OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = tuple(_all)


def _carried() -> dict[type[StoreCall[Any]], Operation[Any, Any]]:
    calls = [operation.carries.call for operation in OPERATIONS if operation.carries is not None]
    return {
        operation.carries.call: operation
        for operation in OPERATIONS
        if operation.carries is not None and calls.count(operation.carries.call) == 1
    }


CARRIED: Final[Mapping[type[StoreCall[Any]], Operation[Any, Any]]] = _carried()
"""The operation that carries each call of a store, where there is one."""
