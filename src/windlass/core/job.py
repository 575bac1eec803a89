"""The job, and the records around it.

Records that are made once per job and call are tuples: they cannot be changed, and cost a tenth of a frozen dataclass.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple, NewType, Protocol, cast
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


class Job(NamedTuple):
    """One piece of work, as it was when it was read. Times are UTC.

    `history` and `log` are filled by `get` alone. `seq` is the place in the order of all enqueues of the store.
    """

    seq: int
    id: JobId
    queue: str
    kind: str | None
    payload: bytes
    codec: str
    headers: Mapping[str, str]
    tenant: str | None
    priority: int
    state: State
    attempt: int
    max_attempts: int
    delivery: int
    created_at: datetime
    run_at: datetime
    claimed_at: datetime | None
    lease_expires_at: datetime | None
    finished_at: datetime | None
    worker: str | None
    last_error: str | None
    result: bytes | None
    result_codec: str | None
    progress: Progress | None
    cancel_requested: bool
    unique_key: str | None
    parent_id: JobId | None
    schedule_id: str | None
    limit_key: str | None
    history: tuple[Delivery, ...] = ()
    log: tuple[LogLine, ...] = ()
    damage: str | None = None
    """The fields of the stored record that cannot be read, each with the reason; None for a sound record.

    Such a field has a stand-in here: no bytes, no text, or the first moment of 1970.
    """

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
