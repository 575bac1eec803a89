"""The job, and the records around it.

Records that are made once per job and call are tuples: they cannot be changed, and cost a tenth of a frozen dataclass.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, NewType, Protocol
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

    @property
    def summary(self) -> str:
        """The text that is shown as the job's last error."""
        return f"{self.type}: {self.message}" if self.type else self.message


class Delivery(NamedTuple):
    """One claim in a job's life and how it ended; `outcome` is None while it runs."""

    delivery: int
    attempt: int
    started_at: datetime
    ended_at: datetime | None
    worker: str | None
    outcome: str | None
    failure: Failure | None = None


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

    @property
    def retrying(self) -> bool:
        """Whether the job waits for another attempt after one that failed."""
        return self.state is State.SCHEDULED and self.attempt > 0


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
    """What an enqueue did: `created` is False when a job with this id or unique key was there already."""

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
