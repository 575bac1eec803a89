"""What the calls of a store are given, and what they answer."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from typing import Final, Literal, NamedTuple, TypeAlias

from windlass.core.errors import WindlassError
from windlass.core.ids import JobId
from windlass.core.job import Claim, PreparedJob, Token
from windlass.core.states import State
from windlass.core.verdict import Verdict


class ClaimRequest(NamedTuple):
    """What a worker wants: up to `limit` ready jobs, strictly in the order of `queues`.

    With `by_priority` the most urgent of all of `queues` come first, by (priority, run_at, sequence number). With
    `kinds` only jobs of these kinds are given, however many others are ahead; None among them stands for raw jobs.
    `worker` names the holder.
    """

    queues: Sequence[str]
    limit: int
    lease: timedelta
    kinds: Collection[str | None] | None = None
    worker: str | None = None
    by_priority: bool = False


class Claimed(NamedTuple):
    """What a claim was given.

    `next_at` is when a later claim may be given something although no job comes due or is enqueued, by the store's
    clock; None when no such time is known.
    """

    jobs: list[Claim]
    next_at: datetime | None = None

    def __bool__(self) -> bool:
        """Return whether there is any job."""
        return bool(self.jobs)

    def and_then(self, later: "Claimed") -> "Claimed":
        """Return what this claim and a later one were given together."""
        times = [at for at in (self.next_at, later.next_at) if at is not None]
        return Claimed([*self.jobs, *later.jobs], min(times, default=None))


class Settlement(NamedTuple):
    """How one claim ended. `then` and `kv` commit with it; `keep` is False when the record goes with the job's end."""

    job_id: JobId
    token: Token
    verdict: Verdict
    keep: bool = True
    then: Sequence[PreparedJob] = ()
    kv: Mapping[bytes, bytes | None] | None = None


class Settled(Enum):
    """What a settlement did."""

    DONE = "done"
    REPEATED = "repeated"
    """The same token had settled the job before: nothing changed, and nothing needed to."""
    LOST = "lost"
    """The token no longer holds the job: nothing changed."""


SettleResult: TypeAlias = Settled | WindlassError
"""A settlement that was refused (a `then` job met an id or a unique key) is its error; nothing of it was written."""


class Renewed(NamedTuple):
    """The new end of a lease, and whether the job was asked to stop meanwhile."""

    lease_expires_at: datetime
    cancel_requested: bool


class CancelOutcome(StrEnum):
    """What a cancel did."""

    REMOVED = "removed"
    """It was waiting and is cancelled now."""
    REQUESTED = "requested"
    """It is running: its holder is told."""
    NOT_FOUND = "not_found"
    """There is no such job, or it has ended."""

    def __bool__(self) -> bool:
        """Return whether anything was done: in a condition `NOT_FOUND` is false, and the others are true."""
        return self is not CancelOutcome.NOT_FOUND


REMOVED: Final = CancelOutcome.REMOVED
REQUESTED: Final = CancelOutcome.REQUESTED
NOT_FOUND: Final = CancelOutcome.NOT_FOUND


class Changed(Enum):
    """What an operator's call did to one job."""

    DONE = "done"
    NOT_FOUND = "not_found"
    WRONG_STATE = "wrong_state"
    KEY_HELD = "key_held"
    """Another live job holds its unique key."""


class Rescued(NamedTuple):
    """A job that was taken back, and where it went."""

    id: JobId
    state: State


class RescueRequest(NamedTuple):
    """Which claims to take back: expired ones, or with `force` all, of these queues (None for all) and workers.

    `to="dead"` ends the jobs instead of letting them try again.
    """

    queues: Collection[str] | None = None
    workers: Collection[str] | None = None
    force: bool = False
    to: Literal["retry", "dead"] = "retry"
    limit: int = 1000


class KvAny(Enum):
    """Marks a kv write without a condition."""

    ANY = "any"


class KvWrite(NamedTuple):
    """Write `value` (None deletes) if the key now holds `expected`: `ANY` for whatever, None for absent."""

    key: bytes
    value: bytes | None
    expected: bytes | KvAny | None = KvAny.ANY
