"""The job, and the records around it.

What a field of a job is, is said in `Job` alone: the reference, the JSON of the API, the columns of the stores and what
reads damaged records follow from it, or are compared with it by tests.

Records that are made once per job and call are tuples: they cannot be changed, and cost a tenth of a frozen dataclass.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from functools import partial
from typing import Annotated, Any, Final, NamedTuple, NewType, Protocol, cast
from uuid import UUID

from windlass.core.duration import Duration
from windlass.core.ids import JobId
from windlass.core.states import State
from windlass.core.unique import Hold, Unique

PRIORITY_HIGH: Final = 100
PRIORITY_NORMAL: Final = 1_000
PRIORITY_LOW: Final = 10_000

Token = NewType("Token", str)
"""The fence of one claim: made anew for every claimed job, with 128 random bits."""

NO_HEADERS: Final[Mapping[str, str]] = {}


class Progress(NamedTuple):
    """How far a running job says it is."""

    done: float
    total: float | None = None
    note: str | None = None


class LogLine(NamedTuple):
    """One line that a job wrote while it ran."""

    at: datetime
    level: str
    text: str
    delivery: int


class Failure(NamedTuple):
    """Why an attempt failed, as text: nothing that is stored is ever imported or built again."""

    message: str
    type: str | None = None
    traceback: str | None = None
    module: str | None = None
    """Where the class of the exception is defined; `builtins` for one of Python's own."""

    @property
    def summary(self) -> str:
        """The text that is shown as the job's last error."""
        return f"{self.type}: {self.message}" if self.type else self.message

    @property
    def full_summary(self) -> str:
        """The same with the import path of the type, as Python writes it at the end of a traceback."""
        is_plain = self.type is None or self.module in {None, "builtins", "__main__"}
        return self.summary if is_plain else f"{self.module}.{self.summary}"


class Delivery(NamedTuple):
    """One claim in a job's life and how it ended; `outcome` is None while it runs.

    `retried_at` is when an operator retried the job after this delivery. A job that was retried before its first claim
    has a delivery 0, which tells how and when it had ended.
    """

    delivery: int
    attempt: int
    started_at: datetime
    ended_at: datetime | None
    worker: str | None
    outcome: str | None
    failure: Failure | None = None
    retried_at: datetime | None = None


class Written(Enum):
    """When a field of a job is first written."""

    ENQUEUE = "enqueue"
    CLAIM = "claim"
    """Only a job that runs or has ended has such a field."""
    RUNNING = "while it runs"
    ATTEMPT = "the end of an attempt"
    END = "the end"
    """Only a job that has ended has such a field."""
    READ = "each reading"
    """It is not stored: it says how the record reads."""


class JobField(NamedTuple):
    """What a field of a job is. `name` and `type` are taken from the line in `Job` where it stands."""

    written: Written
    text: str
    """What it holds, in Markdown: a row of the reference."""
    may_hold_secrets: bool = False
    """Whether a caller who may only look sees the value with its secrets hidden."""
    name: str = ""
    type: Any = None


class Job(NamedTuple):
    """One piece of work, as it was when it was read. Times are UTC.

    `history` and `log` are filled by `get` alone. `seq` is the place in the order of all enqueues of the store.
    """

    seq: Annotated[int, JobField(Written.ENQUEUE, "the place in the order of all enqueues of the store")]
    id: Annotated[JobId, JobField(Written.ENQUEUE, "a UUID as text; version 7 when it was made for you")]
    queue: Annotated[str, JobField(Written.ENQUEUE, "the queue's name")]
    kind: Annotated[str | None, JobField(Written.ENQUEUE, "the name of the job's type, or None")]
    payload: Annotated[
        bytes, JobField(Written.ENQUEUE, "bytes; `client.decode(job)` gives the value", may_hold_secrets=True)
    ]
    codec: Annotated[str, JobField(Written.ENQUEUE, "what made the bytes: `raw` for bytes as they were given, `json`")]
    headers: Annotated[
        Mapping[str, str],
        JobField(
            Written.ENQUEUE,
            "strings by name; [`windlass-secret`](#secret-fields) tells what is secret",
            may_hold_secrets=True,
        ),
    ]
    tenant: Annotated[str | None, JobField(Written.ENQUEUE, "a name, or None")]
    priority: Annotated[int, JobField(Written.ENQUEUE, "lower is more urgent")]
    state: Annotated[State, JobField(Written.ENQUEUE, "one of six, below")]
    attempt: Annotated[int, JobField(Written.ENQUEUE, "how many attempts were charged")]
    max_attempts: Annotated[int, JobField(Written.ENQUEUE, "how many may be")]
    delivery: Annotated[int, JobField(Written.ENQUEUE, "how many claims there were in the job's life")]
    created_at: Annotated[datetime, JobField(Written.ENQUEUE, "when it was enqueued")]
    run_at: Annotated[datetime, JobField(Written.ENQUEUE, "from when on it may run, and its place in the line")]
    claimed_at: Annotated[
        datetime | None, JobField(Written.CLAIM, "when the claim that holds it, or that ended it, was made")
    ]
    lease_expires_at: Annotated[
        datetime | None, JobField(Written.CLAIM, "until when that claim holds; None unless it runs")
    ]
    finished_at: Annotated[datetime | None, JobField(Written.END, "when it ended")]
    worker: Annotated[str | None, JobField(Written.CLAIM, "the name of the process that holds it, or that ended it")]
    last_error: Annotated[str | None, JobField(Written.ATTEMPT, "the last failure in short, or why it was cancelled")]
    result: Annotated[bytes | None, JobField(Written.END, "bytes, or None", may_hold_secrets=True)]
    result_codec: Annotated[str | None, JobField(Written.END, "what made them")]
    progress: Annotated[
        Progress | None,
        JobField(
            Written.RUNNING,
            "how far the running job says it is: `Progress(done, total, note)`; written through the store",
        ),
    ]
    cancel_requested: Annotated[bool, JobField(Written.RUNNING, "whether it was asked to stop")]
    unique_key: Annotated[str | None, JobField(Written.ENQUEUE, "the key that it holds, or could hold again")]
    parent_id: Annotated[JobId | None, JobField(Written.ENQUEUE, "the job whose settlement made it, by `then`")]
    schedule_id: Annotated[
        str | None, JobField(Written.ENQUEUE, "the [schedule](schedules.md) that made it, if one did")
    ]
    limit_key: Annotated[str | None, JobField(Written.ENQUEUE, "reserved")]
    history: Annotated[
        tuple[Delivery, ...],
        JobField(Written.ATTEMPT, "a `Delivery` for each claim, the last 20; filled by `get` alone"),
    ] = ()
    log: Annotated[
        tuple[LogLine, ...],
        JobField(
            Written.RUNNING,
            "lines that it wrote while it ran, the last 500; filled by `get` alone; written through the store",
        ),
    ] = ()
    damage: Annotated[
        str | None,
        JobField(
            Written.READ,
            "which fields of the stored record cannot be read, and why; None for a sound record. Such a field has a "
            "stand-in: no bytes, no text, or the first moment of 1970. See [damaged records](damaged-records.md)",
        ),
    ] = None

    @property
    def retrying(self) -> bool:
        """Whether the job waits for another attempt after one that failed."""
        return self.state is State.SCHEDULED and self.attempt > 0


job_from_columns: Final[Callable[[tuple[object, ...]], Job]] = partial(cast("Any", tuple).__new__, Job)
"""Return the job that has these values, in the order of its fields, for hot decoders.

A call of `Job` builds a tuple of more than 30 parts, which Python does from a list: it takes half as long again.
"""
NOTHING_APART: Final[tuple[tuple[Delivery, ...], tuple[LogLine, ...], None]] = ((), (), None)
"""The last three of them, of a job that is read without history, log and damage."""


def _fields_of(annotations: Mapping[str, Any]) -> Iterator[JobField]:
    for name, annotation in annotations.items():
        field: JobField = annotation.__metadata__[0]
        yield field._replace(name=name, type=annotation.__origin__)


JOB_FIELDS: Final = tuple(_fields_of(Job.__annotations__))
"""All fields of a job, in their order."""
STORED_FIELDS: Final = JOB_FIELDS[: -len(NOTHING_APART)]
"""Those that a store keeps in the record itself, mostly each in a column of its own."""
WAITING_FIELDS: Final = tuple(field for field in STORED_FIELDS if field.written not in {Written.CLAIM, Written.END})
"""Those that a waiting job has, before its first attempt or another one: they move to another store with it."""
ID_FIELDS: Final = tuple(field.name for field in JOB_FIELDS if field.type in (JobId, JobId | None))
TIME_FIELDS: Final = tuple(field.name for field in JOB_FIELDS if field.type in (datetime, datetime | None))
FIELDS_WITH_SECRETS: Final = frozenset(field.name for field in JOB_FIELDS if field.may_hold_secrets)
ORIGIN_FIELDS: Final = ("parent_id", "schedule_id", "limit_key")
"""Fields by which a job is counted to another job, a schedule or a limit."""


class NewJob(NamedTuple):
    """A job to be enqueued, as a caller writes it; what is None is taken from the queue's settings."""

    queue: str
    payload: object = b""
    id: UUID | str | None = None
    kind: str | None = None
    priority: int | None = None
    run_at: datetime | None = None
    delay: Duration | None = None
    max_attempts: int | None = None
    unique: Unique | str | None = None
    headers: Mapping[str, str] | None = None
    tenant: str | None = None
    kv: Mapping[bytes | str, bytes | None] | None = None


class PreparedJob(NamedTuple):
    """A job to be enqueued, as stores take it: checked, encoded, with its id and all defaults.

    With neither `run_at` nor `delay` it runs at once. `kv` is written with the job, and not when its key is held;
    a value of None deletes.
    """

    id: JobId
    queue: str
    kind: str | None
    payload: bytes
    codec: str
    headers: Mapping[str, str]
    tenant: str | None
    priority: int
    max_attempts: int
    run_at: datetime | None
    delay: timedelta | None
    unique: Hold | None
    kv: Mapping[bytes, bytes | None]
    parent_id: JobId | None = None
    schedule_id: str | None = None
    limit_key: str | None = None


def new_job(new: PreparedJob, seq: int, now: datetime, wanted: datetime | None) -> Job:
    """Return a job as it is enqueued, to run at the time `wanted` or at once."""
    state, run_at = waiting_place(wanted, now)
    nothing: dict[str, Any] = dict.fromkeys(field.name for field in STORED_FIELDS)
    given = {name: value for name, value in new._asdict().items() if name in Job._fields}
    begins: dict[str, Any] = {
        "seq": seq,
        "state": state,
        "created_at": now,
        "run_at": run_at,
        "attempt": 0,
        "delivery": 0,
        "cancel_requested": False,
        "unique_key": None if new.unique is None else new.unique.key,
    }
    return Job(**nothing | given | begins)


def waiting_place(run_at: datetime | None, now: datetime) -> tuple[State, datetime]:
    """Return the state and the `run_at` of a waiting job that is to run at a time, or at once."""
    return (State.PENDING, now) if run_at is None or run_at <= now else (State.SCHEDULED, run_at)


class Enqueued(NamedTuple):
    """What an enqueue did: `created` is False when the job was there already, by its id or its unique key."""

    id: JobId
    created: bool


class CancelEvent(Protocol):
    """Tells the holder of a claim that its job should stop."""

    @property
    def reason(self) -> str | None:
        """Why: `cancel`, `stop`, `timeout` or `claim_lost`; None while the event is not set."""
        ...

    def is_set(self) -> bool:
        """Whether the job should stop."""
        ...

    async def wait(self) -> None:
        """Return when the job should stop."""
        ...

    def wait_sync(self, timeout: Duration | None = None) -> bool:
        """Block this thread until the job should stop, at most `timeout`; return whether it should."""
        ...


class Claim:
    """One job taken to work on it, and the proof of it. The client gives each claim its `cancelled` event."""

    __slots__ = ("cancelled", "job", "settled", "token")

    job: Job
    token: Token
    cancelled: CancelEvent
    settled: bool

    def __init__(self, job: Job, token: Token) -> None:
        """Prove with `token` that `job` is held."""
        self.job = job
        self.token = token
        self.settled = False

    @property
    def delivery(self) -> int:
        """The number of this claim in the job's life; an outside system can fence by it."""
        return self.job.delivery

    def __repr__(self) -> str:
        """Show the job, not the token, which is a secret of the holder."""
        return f"<Claim of job {self.job.id} on {self.job.queue!r}, delivery {self.job.delivery}>"


class Note(NamedTuple):
    """What a running job reports of itself; refused with a stale token."""

    job_id: JobId
    token: Token
    progress: Progress | None = None
    lines: Sequence[tuple[str, str]] = ()
    """Pairs of level and text; the store stamps the time."""
