"""The seam between the engine and where jobs live."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from windlass.core.duration import ZERO
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Claim, Enqueued, Job, Note, PreparedJob, Token
from windlass.core.looks import AuditEntry, Finding, Glance, JobPage, Place, ServerRecord
from windlass.core.moving import Moving
from windlass.core.requests import (
    CancelOutcome,
    Changed,
    ClaimRequest,
    KvWrite,
    Renewed,
    Rescued,
    RescueRequest,
    Settlement,
    SettleResult,
)
from windlass.core.retention import Retention
from windlass.core.schedule import DueSchedules, Fired, Firing, Schedule, ScheduleList
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount
from windlass.core.topics import Topic

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Features:
    """What a store can do, as plain values: nobody asks for a store's name or type."""

    transactional: bool
    """A job can be enqueued and settled in a caller's own transaction."""
    wakes_waiters: bool
    """`listen` rings within milliseconds; else the client looks again each `poll_interval`."""
    between_processes: bool
    """Other processes can work on the same store."""
    survives_process: bool
    """Jobs outlive the process that enqueued them."""
    replies_can_be_lost: bool
    """A call may be done although it raised, so it carries a request id and is repeated."""
    atomic_across_queues: bool = True
    """One call may touch several queues."""
    keeps_at_most: int | None = None
    """Finished records per queue and end, unless `keep_max` says otherwise: where they lie in memory."""
    time_precision: timedelta = timedelta(microseconds=1)
    one_owner: bool = False
    """One process at a time works on it, and others look. Who takes it over fences the former one: there `OWNER` rings,
    and every call raises `Fenced`."""
    most_unsettled: int = 5_000
    """Ends of jobs that wait to be written before a server claims no more: enough to fill its commits."""
    locked_for: timedelta = ZERO
    """How long whoever settles one claim goes on trying while somebody else has its job locked: `settle` does not."""
    served: bool = False
    """Rescue, promotion, pruning and schedules are run by whoever serves it: a server on it runs only workers."""

    @property
    def misses_no_news(self) -> bool:
        """Whether `listen` rings at all news; else whoever waits looks again each `poll_interval`."""
        return self.wakes_waiters and not self.replies_can_be_lost


class Borrowed(Protocol):
    """A caller's own open connection, whatever library it came through.

    A store works by the way that its own database has; every call raises `InvalidValue` on a connection of another one.
    """

    @property
    def owner(self) -> object:
        """What the caller gave."""
        ...

    def run(self, work: Callable[[Any], T]) -> Awaitable[T]:
        """Call `work` with the connection of `sqlite3`, in the thread that it belongs to."""
        ...

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> Awaitable[Sequence[Sequence[Any]]]:
        """Run one statement of Postgres, with $1, $2, ..., in the caller's transaction; return its rows."""
        ...

    def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> Awaitable[None]:
        """Run one statement of Postgres for each of many rows of parameters."""
        ...

    def after_commit(self, ring: Callable[[], None]) -> Awaitable[bool]:
        """Have `ring` called, in any thread, when the caller has committed; False when this library cannot tell.

        A rollback may ring as well: whoever hears it looks once in vain.
        """
        ...


class Joined(Protocol):
    """A store's writes inside a caller's own transaction: they happen if and only if it commits."""

    async def fence(self, claims: Sequence[tuple[JobId, Token]]) -> list[bool]:
        """Tell which claims still hold, and let nobody take these jobs back until the transaction ends.

        It is meant to be the transaction's first statement.
        """
        ...

    async def enqueue(self, jobs: Sequence[PreparedJob]) -> list[Enqueued]:
        """Put jobs in line, as `Store.enqueue`."""
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> list[SettleResult]:
        """Write how claims ended, as `Store.settle`."""
        ...

    async def settle_last(self, settlements: Sequence[Settlement]) -> list[SettleResult]:
        """Write how claims ended as the last step before the commit, so that `was_committed` can tell of it."""
        ...

    async def was_committed(self, error: BaseException) -> bool:
        """Tell whether a transaction that ended by `settle_last` was committed, though its commit raised `error`.

        If it was not, it never will be. Raises `OutcomeUnknown` when the store does not tell in time.
        """
        ...


class Inspector(Protocol):
    """What people look at. Every answer is of one moment."""

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        """Return the jobs with these ids, with history and log, in order; None for each that is not here."""
        ...

    async def glance(self, ids: Collection[JobId]) -> dict[JobId, Glance]:
        """Return where each of these jobs stands; those that are not here are left out."""
        ...

    async def jobs(self, chosen: JobFilter, *, after: int | None, limit: int) -> list[Job]:
        """Return up to `limit` jobs in the order of their enqueue, those past the sequence number `after`."""
        ...

    async def newest(self, chosen: JobFilter, *, before: int | None, limit: int, most: int) -> JobPage:
        """Return up to `limit` jobs, the newest first, those before the sequence number `before`.

        It looks at about `most` records and no more, so it answers quickly however many there are and however few
        match; where an index leads to what is chosen it finds all there are.
        """
        ...

    async def place(self, job_id: JobId) -> Place | None:
        """Return what stands between a job and its claim; None when it is not here."""
        ...

    async def stats(self, queue: str | None = None) -> list[QueueStats]:
        """Count by state, exactly, for every queue that is known or for one, in order of name."""
        ...

    async def paused(self, queues: Sequence[str]) -> list[str]:
        """Return those of `queues` that are paused, in their order; as cheap for many as for one."""
        ...

    async def kinds(self, queue: str, known: Collection[str] = ()) -> list[str]:
        """Return the kinds of the pending jobs of `queue` that are not among `known`, in order of name.

        What it costs is by kinds, not by jobs; and the jobs of those that are known cost nothing.
        """
        ...

    async def waiting(self) -> list[KindStats]:
        """Count the pending jobs by queue and kind, exactly, in that order; a pair that has none is left out.

        What it costs is by pending jobs, where no index answers it: it is for metrics, and for no look that is
        repeated every few moments.
        """
        ...

    async def minutes(self, *, since: datetime, until: datetime) -> list[MinuteCounts]:
        """Return what happened in each minute from `since` up to, not including, `until`."""
        ...

    async def timings(self, *, since: datetime, until: datetime) -> list[TimingCount]:
        """Return how long attempts took in each minute from `since` up to, not including, `until`."""
        ...

    async def servers(self) -> list[ServerRecord]:
        """Return every server that has not taken itself out, live or not."""
        ...

    async def schedules(self, ids: Collection[str] | None = None) -> ScheduleList:
        """Return the schedules, or those with these ids that are here, in order of id, and the store's time."""
        ...

    async def audit(self, *, limit: int) -> list[AuditEntry]:
        """Return the newest entries first."""
        ...

    async def stranded(self, *, dead_after: timedelta) -> int:
        """Count the leases that ran out and that nobody will rescue, up to 1,000: none while a server is live."""
        ...

    async def check(self) -> list[Finding]:
        """Look over the store's health and settings, for `doctor`."""
        ...


class Store(Inspector, Moving, Protocol):
    """Where jobs live. Every method is one atomic step, for many jobs at a time.

    Where each job has an answer of its own (`settle`, `renew`, `note`, `cancel`, `retry`, `delete`, `reschedule`,
    `rescue`), each is a step of its own: what others do at the same moment may come between two of them.

    The store's clock judges leases and due times, so durations are given, not times. A call that is repeated with
    the same `request_id` after its reply was lost does nothing again and gives the first answer; a call of another kind
    may have that id too. The three calls of every job's life may return any awaitable: a coroutine around a future
    costs as much as the future.
    """

    @property
    def features(self) -> Features:
        """What this store can do."""
        ...

    async def open(self) -> None:
        """Connect, and make the schema when there is none."""
        ...

    async def close(self) -> None:
        """Let go of everything; what was accepted is finished first."""
        ...

    def sibling(self) -> "Store":
        """Return another store on the same jobs, for an event loop of its own; it is opened and closed apart."""
        ...

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring`, from any thread, soon after news on `topics` is committed by any process; return how to stop."""
        ...

    def join(self, borrowed: Borrowed) -> Joined:
        """Work inside a caller's own transaction; raises `NotTransactional` where there is none to join."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Begin a transaction that may write, and give its connection, which `join` works in; any thread may use it.

        It is committed at the end of the block, and whoever waits for what was joined is woken then; an exception
        rolls it back. Raises `NotTransactional` where there are no transactions.
        """
        ...

    def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> Awaitable[list[Enqueued]]:
        """Put jobs in line, all or none, in their order.

        An id that is here already, or a unique key that is held, yields that job with `created=False`. Raises
        `UniqueConflict` when a key with `on_conflict="raise"` is held or a matched payload differs.
        """
        ...

    def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> Awaitable[list[Claim]]:
        """Give up to `limit` ready jobs to the caller, the most urgent first, each with a token of its own.

        Each claim charges an attempt. Jobs of these queues that have come due are promoted first; nothing is given
        from a paused queue. Where jobs are large fewer may be given than there are, one at least, and then none of
        those behind them.
        """
        ...

    async def due_in(self, queues: Sequence[str]) -> timedelta | None:
        """Return how long it is until the next scheduled job of these queues comes due, by the store's clock.

        Zero when one is due by now; None when there is none. Paused queues do not count.
        """
        ...

    def settle(
        self, settlements: Sequence[Settlement], *, request_id: str | None = None
    ) -> Awaitable[list[SettleResult]]:
        """Write how claims ended, each as one step of its own; a stale token changes nothing and yields `LOST`.

        What is in the way of one is the answer for that one: a `UniqueConflict`, or a `StoreUnavailable`, which is
        retryable when its job is locked by somebody. What is in the way of all is raised, and nothing was written.
        """
        ...

    async def renew(self, claims: Sequence[tuple[JobId, Token]], lease: timedelta) -> list[Renewed | None]:
        """Let these claims hold for `lease` from now; None for each whose token no longer holds."""
        ...

    async def note(self, notes: Sequence[Note]) -> Sequence[bool | None]:
        """Write progress and log lines of running jobs; False for each whose token no longer holds.

        None for each whose job is locked by somebody: it was not written, and may be once that one lets go.
        """
        ...

    async def cancel(self, ids: Sequence[JobId], retention: Retention) -> list[CancelOutcome]:
        """End waiting jobs, and flag running ones; the flag survives rescue and retry of the attempt."""
        ...

    async def retry(self, ids: Sequence[JobId]) -> list[Changed]:
        """Give dead and cancelled jobs a full new budget, no last error and no cancel flag, pending now."""
        ...

    async def delete(self, ids: Sequence[JobId]) -> list[Changed]:
        """Delete finished jobs."""
        ...

    async def reschedule(self, ids: Sequence[JobId], run_at: datetime | None) -> list[Changed]:
        """Let waiting jobs run at `run_at`, or now when it is None or past."""
        ...

    async def set_paused(self, queue: str, *, paused: bool) -> None:
        """Stop or start giving claims from `queue`, which need not exist yet; a pause rings `PAUSES`."""
        ...

    async def rescue(self, request: RescueRequest, retention: Retention) -> list[Rescued]:
        """Take back claims: to pending now while attempts are left, else to dead. Each job is a step of its own."""
        ...

    async def promote(self, *, limit: int) -> int:
        """Make up to `limit` scheduled jobs that have come due pending; return how many."""
        ...

    async def prune(self, retention: Retention, *, limit: int) -> int:
        """Delete up to `limit` finished records past their retention, and housekeeping records; count the jobs."""
        ...

    async def write_schedule(self, schedule: Schedule, *, expected: int | None) -> int | None:
        """Write a schedule if its revision is still `expected` (None: if there is none of this id).

        Returns the revision that the store gave it, and None when the condition did not hold. Rings `SCHEDULES`.
        """
        ...

    async def remove_schedule(self, schedule_id: str) -> bool:
        """Remove a schedule, whatever it is; return whether it was there. Its jobs stay. Rings `SCHEDULES`."""
        ...

    async def due_schedules(self, declared: Collection[str], *, limit: int) -> DueSchedules:
        """Return up to `limit` schedules that are due by the store's clock and not paused.

        Of those that code declares only the ones `declared` here count, for the next time too.
        """
        ...

    async def fire(self, firing: Firing) -> Fired:
        """Enqueue the jobs of a schedule and move its next run on, both or neither.

        Nothing is done (`LOST`) unless the schedule has this revision and, with a `tick`, is due by the store's clock
        and not paused. Whether an unfinished last job stands in the way is judged in the same step.
        """
        ...

    async def kv_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the caller's own values."""
        ...

    async def kv_write(self, write: KvWrite) -> bool:
        """Write one of the caller's own values if its condition holds; return whether it did."""
        ...

    async def kv_scan(self, prefix: bytes, *, after: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` pairs whose key begins with `prefix`, in the order of their bytes, past `after`."""
        ...

    async def lock(self, name: str, holder: str, ttl: timedelta) -> bool:
        """Take or renew the lock `name` for `ttl` from now; False while another holder has it."""
        ...

    async def unlock(self, name: str, holder: str) -> bool:
        """Let go of a lock; False when `holder` no longer had it."""
        ...

    async def beat(self, server: ServerRecord) -> None:
        """Write that a server of this process is live; the store stamps `seen_at`.

        One whose clock is not that of this machine stamps `started_at` too, at the first beat.
        """
        ...

    async def write_timings(self, timings: Sequence[TimingCount]) -> None:
        """Add counts to those that are kept; they are pruned as the counts of minutes are."""
        ...

    async def ended_servers(self) -> list[str]:
        """Return the ids of servers whose process has ended, on proof: never one that lives, however silent it is.

        A store without such a proof returns none. Whoever has rescued the jobs of such a server lets it `leave`.
        """
        ...

    async def leave(self, server_id: str) -> None:
        """Take a server out."""
        ...

    async def write_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Keep what people did."""
        ...
