"""Commands of a store: every call that changes something, as a value with its facts.

Where each job has an answer of its own (`RenewClaims`, `WriteNotes`, `CancelJobs`, `RetryJobs`, `DeleteJobs`,
`RescheduleJobs`, `RescueClaims`), each is a step of its own: the calls of others may come between two of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from windlass.core.errors import InvalidValue
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, Note, PreparedJob, Token
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.moving import HeldKey, Moved, Parcel
from windlass.core.queue_settings import Layer, StoredSettings
from windlass.core.requests import (
    CancelOutcome,
    Changed,
    Claimed,
    ClaimRequest,
    KvWrite,
    Renewed,
    Rescued,
    RescueRequest,
    Settlement,
    SettleResult,
)
from windlass.core.retention import Retention
from windlass.core.schedule import Fired, Firing, Schedule
from windlass.core.stats import TimingCount
from windlass.core.store_calls import Command, Part, RepeatSafety, Touches

_SAME, _STORE, _REPLY = RepeatSafety.SAME, RepeatSafety.STORE, RepeatSafety.REPLY


@dataclass(frozen=True, slots=True)
class EnqueueJobs(Command[list[Enqueued]]):
    """Enqueue jobs, all or none, in their order.

    A unique key that is held, or an id that a job of the same queue, kind and tenant has, yields that job with
    `created=False`. Raises `IdConflict` when any other job has the id, and `UniqueConflict` when a key with
    `on_conflict="raise"` is held or a matched payload differs.
    """

    jobs: Sequence[PreparedJob]
    repeat = _STORE
    begins_work = True
    touches = Touches(Part.QUEUES, "jobs")


@dataclass(frozen=True, slots=True)
class ClaimJobs(Command[Claimed]):
    """Give up to `limit` ready jobs to the caller, the most urgent first, each with a token of its own.

    Each claim charges an attempt. Jobs of these queues that have come due are promoted first; a paused queue gives
    none. Where jobs are large fewer may be given than there are, one at least, and then none of those behind them.

    A job whose stored record cannot be read is set aside in the same step, and takes the place of no other: it
    becomes dead with `windlass.kit.damage.dead_reason` as its last error, and no attempt is charged.
    """

    request: ClaimRequest
    repeat = _STORE
    begins_work = True
    touches = Touches(Part.QUEUES, "request.queues")


@dataclass(frozen=True, slots=True)
class SettleClaims(Command[list[SettleResult]]):
    """Write how claims ended, each as one step of its own; a stale token changes nothing and yields `LOST`.

    An obstacle of one settlement is its answer: a `JobConflict`, or a `StoreUnavailable`, which is retryable when
    another transaction has locked its job. An obstacle of all is raised, and nothing was written.
    """

    settlements: Sequence[Settlement]
    repeat = _STORE
    touches = Touches(Part.CLAIMS, "settlements")


@dataclass(frozen=True, slots=True)
class RenewClaims(Command[list[Renewed | None]]):
    """Let these claims hold for `lease` from now; None for each whose token no longer holds."""

    claims: Sequence[tuple[JobId, Token]]
    lease: timedelta
    repeat = _SAME
    touches = Touches(Part.CLAIMS, "claims")


@dataclass(frozen=True, slots=True)
class WriteNotes(Command[Sequence[bool | None]]):
    """Write progress and log lines of running jobs; False for each whose token no longer holds.

    None for each whose job another transaction has locked: it was not written, and may be written later.
    """

    notes: Sequence[Note]
    repeat = _REPLY
    touches = Touches(Part.CLAIMS, "notes")


@dataclass(frozen=True, slots=True)
class CancelJobs(Command[list[CancelOutcome]]):
    """End waiting jobs, and flag running ones; the flag survives rescue and retry of the attempt."""

    ids: Sequence[JobId]
    retention: Retention
    repeat = _REPLY
    begins_work = True
    touches = Touches(Part.JOBS, "ids")


@dataclass(frozen=True, slots=True)
class RetryJobs(Command[list[Changed]]):
    """Give dead and cancelled jobs a full new budget, no last error and no cancel flag, pending now."""

    ids: Sequence[JobId]
    repeat = _REPLY
    begins_work = True
    touches = Touches(Part.JOBS, "ids")


@dataclass(frozen=True, slots=True)
class DeleteJobs(Command[list[Changed]]):
    """Delete finished jobs."""

    ids: Sequence[JobId]
    repeat = _REPLY
    touches = Touches(Part.JOBS, "ids")


@dataclass(frozen=True, slots=True)
class RescheduleJobs(Command[list[Changed]]):
    """Let waiting jobs run at `run_at`, or now when it is None or past."""

    ids: Sequence[JobId]
    run_at: datetime | None
    repeat = _REPLY
    begins_work = True
    touches = Touches(Part.JOBS, "ids")


@dataclass(frozen=True, slots=True)
class SetQueueSettings(Command[None]):
    """Set those fields of a layer of the settings of `queue` that are not None; the queue need not exist yet.

    The settings that hold are read by each claim. A layer that pauses the queue notifies `PAUSES`, and when the call
    returns, no claim that began before it is in progress; one that ends a pause notifies the queue.
    """

    queue: str
    settings: StoredSettings
    layer: Layer = "override"
    repeat = _SAME
    begins_work = True
    touches = Touches(Part.QUEUE, "queue")


@dataclass(frozen=True, slots=True)
class RescueClaims(Command[list[Rescued]]):
    """Take back claims: to pending now while attempts are left, else to dead."""

    request: RescueRequest
    retention: Retention
    repeat = _REPLY
    touches = Touches(Part.QUEUES, "request.queues")


@dataclass(frozen=True, slots=True)
class PromoteJobs(Command[int]):
    """Make up to `limit` scheduled jobs that have come due pending; return how many."""

    limit: int
    repeat = _REPLY
    touches = Touches(Part.QUEUES)


@dataclass(frozen=True, slots=True)
class PruneRecords(Command[int]):
    """Delete up to `limit` finished records past their retention, and housekeeping records; count the jobs."""

    retention: Retention
    limit: int
    repeat = _REPLY
    touches = Touches(Part.ALL)


@dataclass(frozen=True, slots=True)
class WriteSchedule(Command[int | None]):
    """Write a schedule if its revision is still `expected` (None: if there is none of this id).

    Returns the revision that the store gave it, and None when the condition did not hold. Notifies `SCHEDULES`.
    """

    schedule: Schedule
    expected: int | None
    repeat = _REPLY
    begins_work = True
    touches = Touches(Part.SCHEDULES, "schedule.id")


@dataclass(frozen=True, slots=True)
class RemoveSchedule(Command[bool]):
    """Remove a schedule, whatever its revision; return whether it was there. Its jobs stay. Notifies `SCHEDULES`."""

    schedule_id: str
    repeat = _REPLY
    begins_work = True
    touches = Touches(Part.SCHEDULES, "schedule_id")


@dataclass(frozen=True, slots=True)
class FireSchedule(Command[Fired]):
    """Enqueue the jobs of a schedule and move its next run on, both or neither.

    Nothing is done (`LOST`) unless the schedule has this revision and, with a `tick`, is due by the store's clock
    and not paused. The same step decides whether an unfinished last job stands in the way.
    """

    firing: Firing
    repeat = _REPLY
    begins_work = True
    touches = Touches(Part.SCHEDULES, "firing.schedule_id")


@dataclass(frozen=True, slots=True)
class WriteKv(Command[bool]):
    """Write one of the caller's own values if its condition holds; return whether it did."""

    write: KvWrite
    repeat = _REPLY
    begins_work = True
    touches = Touches(Part.STORE)


@dataclass(frozen=True, slots=True)
class TakeLock(Command[bool]):
    """Take or renew the lock `name` for `ttl` from now; False while another holder has it."""

    name: str
    holder: str
    ttl: timedelta
    repeat = _SAME
    touches = Touches(Part.STORE)


@dataclass(frozen=True, slots=True)
class FreeLock(Command[bool]):
    """Free a lock; False when `holder` no longer had it."""

    name: str
    holder: str
    repeat = _REPLY
    touches = Touches(Part.STORE)


@dataclass(frozen=True, slots=True)
class WriteHeartbeat(Command[None]):
    """Write that a server of this process is live; the store stamps `seen_at`.

    A store whose clock is not that of this machine stamps `started_at` too, at the first heartbeat.
    """

    server: ServerRecord
    repeat = _SAME
    touches = Touches(Part.STORE)


@dataclass(frozen=True, slots=True)
class RemoveServer(Command[None]):
    """Remove the record of a server."""

    server_id: str
    repeat = _SAME
    touches = Touches(Part.STORE)


@dataclass(frozen=True, slots=True)
class WriteTimings(Command[None]):
    """Add counts to those that are kept; they are pruned as the counts of minutes are."""

    timings: Sequence[TimingCount]
    repeat = _REPLY
    touches = Touches(Part.STORE)


@dataclass(frozen=True, slots=True)
class WriteAudit(Command[None]):
    """Keep what people did."""

    entries: Sequence[AuditEntry]
    repeat = _REPLY
    touches = Touches(Part.STORE)


@dataclass(frozen=True, slots=True)
class SetMoved(Command[None]):
    """Let this store take nothing new from now on, or with None let it take jobs again. Notifies `PAUSES`.

    When it returns, no call that began before it is in progress: what `PackJobs` does not give from now on is running
    or was never enqueued.
    """

    moved: Moved | None
    repeat = _SAME
    touches = Touches(Part.ALL)


@dataclass(frozen=True, slots=True)
class UnpackJobs(Command[bool]):
    """Enqueue the jobs of a parcel unchanged: with id, state, times, attempts, deliveries, history and log.

    Each gets a new sequence number, in their order; a job that is due is ready at once. A job whose id is here already
    is left out; a job whose key is held here comes without it. They count as enqueued. False, and nothing is done,
    unless this is parcel `unpacked(move, queue).number + 1`, or the first. The number makes a repeat harmless. Raises
    `IdConflict` when a job of another queue, kind or tenant has the id, and `InvalidValue` for jobs that do not wait,
    or are of another queue.
    """

    parcel: Parcel
    repeat = _STORE
    begins_work = True
    touches = Touches(Part.QUEUE, "parcel.queue")

    def __post_init__(self) -> None:
        """Check that the jobs wait, and are of the parcel's queue."""
        for job in self.parcel.packed.jobs:
            if job.queue != self.parcel.queue or not job.state.waiting:
                message = (
                    f"a parcel of {self.parcel.queue!r} holds waiting jobs of that queue; job {job.id} is {job.state} "
                    f"in {job.queue!r}: pack it anew"
                )
                raise InvalidValue(message)


@dataclass(frozen=True, slots=True)
class DeleteMoved(Command[bool]):
    """Delete what another store has now, without a trace but in the counts of waiting jobs; `keys` by their names.

    A job goes with its history, its log and the key that it holds, and only while it waits: a running job stays. With
    `move` it is done only while the jobs of this store go by that move, else False is returned: a mover that slept
    since, and finds the jobs back here, must not take them.
    """

    move: str | None = None
    jobs: Sequence[JobId] = ()
    keys: Sequence[str] = ()
    kv: Sequence[bytes] = ()
    schedules: Sequence[str] = ()
    repeat = _REPLY
    touches = Touches(Part.ALL)


@dataclass(frozen=True, slots=True)
class TakeKeys(Command[None]):
    """Let these keys be held here until their time is over, those that are free."""

    keys: Sequence[HeldKey]
    repeat = _SAME
    begins_work = True
    touches = Touches(Part.ALL)


COMMANDS: Final[tuple[type[Command[Any]], ...]] = (
    RenewClaims, WriteNotes, CancelJobs, RetryJobs, DeleteJobs, RescheduleJobs, SetQueueSettings, RescueClaims,
    PromoteJobs, PruneRecords, WriteSchedule, RemoveSchedule, FireSchedule, WriteKv, TakeLock, FreeLock, WriteHeartbeat,
    RemoveServer, WriteTimings, WriteAudit, SetMoved, UnpackJobs, DeleteMoved, TakeKeys,
)  # fmt: skip
"""Every command that `Store.do` executes; enqueue, claim and settle have methods of their own."""
