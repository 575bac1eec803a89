"""Store: the seam between the engine and the place where jobs live."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from windlass.core import commands, queries
from windlass.core.duration import ZERO
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, Job, Note, PreparedJob, Token
from windlass.core.joined_transaction import BorrowedConnection, JoinedTransaction
from windlass.core.looks import AuditEntry, DeadJob, Death, Finding, Glance, JobPage, Place, ServerRecord
from windlass.core.moving import HeldKey, Moved, Packed, Parcel, Unpacked
from windlass.core.queue_settings import StoredSettings
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
from windlass.core.schedule import DueSchedules, Fired, Firing, Schedule, ScheduleList
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount
from windlass.core.store_calls import Command, Query
from windlass.core.topics import Topic

R = TypeVar("R")
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


class Inspector(ABC):
    """Queries of a store: `ask` executes them, and each has a method; `core.queries` says what each promises."""

    @abstractmethod
    def ask(self, query: Query[R]) -> Coroutine[Any, Any, R]:
        """Execute a query, and return its reply."""
        ...

    def get(self, ids: Sequence[JobId]) -> Coroutine[Any, Any, list[Job | None]]:
        """Return the jobs with these ids, with history and log, in order; None for each that is not here."""
        return self.ask(queries.GetJobs(ids))

    def glance(self, ids: Collection[JobId]) -> Coroutine[Any, Any, dict[JobId, Glance]]:
        """Return the state of each of these jobs; those that are not here are left out."""
        return self.ask(queries.GetGlances(ids))

    def jobs(self, chosen: JobFilter, *, after: int | None, limit: int) -> Coroutine[Any, Any, list[Job]]:
        """Return up to `limit` jobs in the order of their enqueue, those past the sequence number `after`."""
        return self.ask(queries.ListJobs(chosen, after, limit))

    def newest(self, chosen: JobFilter, *, before: int | None, limit: int, most: int) -> Coroutine[Any, Any, JobPage]:
        """Return up to `limit` jobs, the newest first, of about `most` records that are read."""
        return self.ask(queries.ListNewestJobs(chosen, before, limit, most))

    def dead(self, queue: str | None, *, before: Death | None, limit: int) -> Coroutine[Any, Any, list[DeadJob]]:
        """Return up to `limit` dead jobs of a queue or of all, the last to die first."""
        return self.ask(queries.ListDeadJobs(queue, before, limit))

    def place(self, job_id: JobId) -> Coroutine[Any, Any, Place | None]:
        """Return what stands between a job and its claim; None when it is not here."""
        return self.ask(queries.GetPosition(job_id))

    def due_in(self, queues: Sequence[str]) -> Coroutine[Any, Any, timedelta | None]:
        """Return how long it is until the next scheduled job of these queues comes due."""
        return self.ask(queries.GetDueTime(queues))

    def stats(self, queue: str | None = None) -> Coroutine[Any, Any, list[QueueStats]]:
        """Count by state, exactly, for every queue that is known or for one, in order of name."""
        return self.ask(queries.GetStats(queue))

    async def paused(self, queues: Sequence[str]) -> list[str]:
        """Return those of `queues` that are paused, in their order."""
        found = await self.ask(queries.GetQueueSettings(queues))
        return [queue for queue in queues if queue in found and found[queue].paused]

    def kinds(self, queue: str, known: Collection[str] = ()) -> Coroutine[Any, Any, list[str]]:
        """Return the kinds of the pending jobs of `queue` that are not among `known`, in order of name."""
        return self.ask(queries.ListKinds(queue, known))

    def waiting(self) -> Coroutine[Any, Any, list[KindStats]]:
        """Count the pending jobs by queue and kind, exactly, in that order."""
        return self.ask(queries.CountWaiting())

    def minutes(self, *, since: datetime, until: datetime) -> Coroutine[Any, Any, list[MinuteCounts]]:
        """Return what happened in each minute from `since` up to, not including, `until`."""
        return self.ask(queries.GetMinutes(since, until))

    def timings(self, *, since: datetime, until: datetime) -> Coroutine[Any, Any, list[TimingCount]]:
        """Return how long attempts took in each minute from `since` up to, not including, `until`."""
        return self.ask(queries.GetTimings(since, until))

    def servers(self) -> Coroutine[Any, Any, list[ServerRecord]]:
        """Return every server whose record was not removed, live or not."""
        return self.ask(queries.ListServers())

    def ended_servers(self) -> Coroutine[Any, Any, list[str]]:
        """Return the ids of servers whose process has ended, on proof."""
        return self.ask(queries.ListEndedServers())

    def schedules(self, ids: Collection[str] | None = None) -> Coroutine[Any, Any, ScheduleList]:
        """Return the schedules, or those with these ids that are here, in order of id, and the store's time."""
        return self.ask(queries.ListSchedules(ids))

    def due_schedules(self, declared: Collection[str], *, limit: int) -> Coroutine[Any, Any, DueSchedules]:
        """Return up to `limit` schedules that are due by the store's clock and not paused."""
        return self.ask(queries.ListDueSchedules(declared, limit))

    def audit(self, *, limit: int) -> Coroutine[Any, Any, list[AuditEntry]]:
        """Return the newest entries first."""
        return self.ask(queries.ListAudit(limit))

    def stranded(self, *, dead_after: timedelta) -> Coroutine[Any, Any, int]:
        """Count the leases that ran out while no server is live that would rescue them, up to 1,000."""
        return self.ask(queries.CountStranded(dead_after))

    def check(self) -> Coroutine[Any, Any, list[Finding]]:
        """Check the store's health and settings, for `doctor`."""
        return self.ask(queries.CheckStore())

    def kv_get(self, keys: Sequence[bytes]) -> Coroutine[Any, Any, list[bytes | None]]:
        """Return the caller's own values."""
        return self.ask(queries.GetKv(keys))

    def kv_scan(
        self, prefix: bytes, *, after: bytes | None, limit: int
    ) -> Coroutine[Any, Any, list[tuple[bytes, bytes]]]:
        """Return up to `limit` pairs whose key begins with `prefix`, in the order of their bytes, past `after`."""
        return self.ask(queries.ScanKv(prefix, after, limit))

    def moved(self) -> Coroutine[Any, Any, Moved | None]:
        """Return where the jobs of this store go or went; None while it takes jobs."""
        return self.ask(queries.GetMoved())

    def pack(self, queue: str, *, limit: int) -> Coroutine[Any, Any, Packed]:
        """Return up to `limit` pending and scheduled jobs of `queue`, also of a paused one; they stay."""
        return self.ask(queries.PackJobs(queue, limit))

    def unpacked(self, move: str, queue: str) -> Coroutine[Any, Any, Unpacked | None]:
        """Return the last parcel of a move and a queue that was unpacked here."""
        return self.ask(queries.GetUnpacked(move, queue))

    def timed_keys(self, *, limit: int) -> Coroutine[Any, Any, list[HeldKey]]:
        """Return up to `limit` keys that only time frees and whose time is not over."""
        return self.ask(queries.ListTimedKeys(limit))


class Store(Inspector):
    """Jobs, and all calls that read and change them. Every call is one atomic step, for many jobs at a time.

    `do` executes a command and `ask` a query; `core.commands` and `core.queries` say what each promises. The three
    calls of every job's life have methods of their own, which may return any awaitable: a coroutine around a future
    costs as much as the future. The other methods are written here, once for all stores.

    The store's clock judges leases and due times, so durations are given, not times. A call that is repeated with
    the same `request_id` after its reply was lost does nothing again and gives the first answer; a call of another kind
    may have that id too.
    """

    @property
    @abstractmethod
    def features(self) -> Features:
        """What this store can do."""
        ...

    @abstractmethod
    async def open(self) -> None:
        """Connect, and make the schema when there is none."""
        ...

    async def is_prepared(self) -> bool:
        """Whether `open` needs no lock that an open transaction of a caller may hold; harmless before it.

        Else `join` works also before `open`: where the schema is missing it is made in the caller's transaction.
        """
        return True

    @abstractmethod
    async def close(self) -> None:
        """Let go of everything; what was accepted is finished first."""
        ...

    @abstractmethod
    def sibling(self) -> "Store":
        """Return another store on the same jobs, for an event loop of its own; it is opened and closed apart."""
        ...

    @abstractmethod
    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring`, from any thread, soon after news on `topics` is committed by any process; return how to stop."""
        ...

    @abstractmethod
    def join(self, borrowed: BorrowedConnection) -> JoinedTransaction:
        """Work inside a caller's own transaction; raises `NotTransactional` where there is none to join."""
        ...

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Begin a transaction that may write, and give its connection, which `join` works in; any thread may use it.

        It is committed at the end of the block, and all that wait for what was joined are woken then; an exception
        rolls it back. Raises `NotTransactional` where there are no transactions.
        """
        ...

    @abstractmethod
    def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> Awaitable[list[Enqueued]]:
        """Execute `EnqueueJobs`."""
        ...

    @abstractmethod
    def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> Awaitable[Claimed]:
        """Execute `ClaimJobs`."""
        ...

    @abstractmethod
    def settle(
        self, settlements: Sequence[Settlement], *, request_id: str | None = None
    ) -> Awaitable[list[SettleResult]]:
        """Execute `SettleClaims`."""
        ...

    @abstractmethod
    def do(self, command: Command[R], *, request_id: str | None = None) -> Coroutine[Any, Any, R]:
        """Execute a command, and return its reply.

        A command that is repeated with the same `request_id` gets its first reply, if it is one whose `repeat` is known
        by the store.
        """
        ...

    def renew(
        self, claims: Sequence[tuple[JobId, Token]], lease: timedelta
    ) -> Coroutine[Any, Any, list[Renewed | None]]:
        """Let these claims hold for `lease` from now; None for each whose token no longer holds."""
        return self.do(commands.RenewClaims(claims, lease))

    def note(self, notes: Sequence[Note]) -> Coroutine[Any, Any, Sequence[bool | None]]:
        """Write progress and log lines of running jobs; False for each whose token no longer holds."""
        return self.do(commands.WriteNotes(notes))

    def cancel(self, ids: Sequence[JobId], retention: Retention) -> Coroutine[Any, Any, list[CancelOutcome]]:
        """End waiting jobs, and flag running ones."""
        return self.do(commands.CancelJobs(ids, retention))

    def retry(self, ids: Sequence[JobId]) -> Coroutine[Any, Any, list[Changed]]:
        """Give dead and cancelled jobs a full new budget, pending now."""
        return self.do(commands.RetryJobs(ids))

    def delete(self, ids: Sequence[JobId]) -> Coroutine[Any, Any, list[Changed]]:
        """Delete finished jobs."""
        return self.do(commands.DeleteJobs(ids))

    def reschedule(self, ids: Sequence[JobId], run_at: datetime | None) -> Coroutine[Any, Any, list[Changed]]:
        """Let waiting jobs run at `run_at`, or now when it is None or past."""
        return self.do(commands.RescheduleJobs(ids, run_at))

    def set_paused(self, queue: str, *, paused: bool) -> Coroutine[Any, Any, None]:
        """Stop or start giving claims from `queue`, which need not exist yet."""
        return self.do(commands.SetQueueSettings(queue, StoredSettings(paused=paused)))

    def rescue(self, request: RescueRequest, retention: Retention) -> Coroutine[Any, Any, list[Rescued]]:
        """Take back claims: to pending now while attempts are left, else to dead."""
        return self.do(commands.RescueClaims(request, retention))

    def promote(self, *, limit: int) -> Coroutine[Any, Any, int]:
        """Make up to `limit` scheduled jobs that have come due pending; return how many."""
        return self.do(commands.PromoteJobs(limit))

    def prune(self, retention: Retention, *, limit: int) -> Coroutine[Any, Any, int]:
        """Delete up to `limit` finished records past their retention, and housekeeping records; count the jobs."""
        return self.do(commands.PruneRecords(retention, limit))

    def write_schedule(self, schedule: Schedule, *, expected: int | None) -> Coroutine[Any, Any, int | None]:
        """Write a schedule if its revision is still `expected`; return the new one, or None."""
        return self.do(commands.WriteSchedule(schedule, expected))

    def remove_schedule(self, schedule_id: str) -> Coroutine[Any, Any, bool]:
        """Remove a schedule; return whether it was there."""
        return self.do(commands.RemoveSchedule(schedule_id))

    def fire(self, firing: Firing) -> Coroutine[Any, Any, Fired]:
        """Enqueue the jobs of a schedule and move its next run on, both or neither."""
        return self.do(commands.FireSchedule(firing))

    def kv_write(self, write: KvWrite) -> Coroutine[Any, Any, bool]:
        """Write one of the caller's own values if its condition holds; return whether it did."""
        return self.do(commands.WriteKv(write))

    def lock(self, name: str, holder: str, ttl: timedelta) -> Coroutine[Any, Any, bool]:
        """Take or renew the lock `name` for `ttl` from now; False while another holder has it."""
        return self.do(commands.TakeLock(name, holder, ttl))

    def unlock(self, name: str, holder: str) -> Coroutine[Any, Any, bool]:
        """Free a lock; False when `holder` no longer had it."""
        return self.do(commands.FreeLock(name, holder))

    def beat(self, server: ServerRecord) -> Coroutine[Any, Any, None]:
        """Write that a server of this process is live."""
        return self.do(commands.WriteHeartbeat(server))

    def leave(self, server_id: str) -> Coroutine[Any, Any, None]:
        """Remove the record of a server."""
        return self.do(commands.RemoveServer(server_id))

    def write_timings(self, timings: Sequence[TimingCount]) -> Coroutine[Any, Any, None]:
        """Add counts to those that are kept."""
        return self.do(commands.WriteTimings(timings))

    def write_audit(self, entries: Sequence[AuditEntry]) -> Coroutine[Any, Any, None]:
        """Keep what people did."""
        return self.do(commands.WriteAudit(entries))

    def set_moved(self, moved: Moved | None) -> Coroutine[Any, Any, None]:
        """Let this store take nothing new from now on, or with None let it take jobs again."""
        return self.do(commands.SetMoved(moved))

    def unpack(self, parcel: Parcel) -> Coroutine[Any, Any, bool]:
        """Enqueue the jobs of a parcel unchanged, if it is the next one of its move and queue."""
        return self.do(commands.UnpackJobs(parcel))

    def let_go(
        self,
        *,
        move: str | None = None,
        jobs: Sequence[JobId] = (),
        keys: Sequence[str] = (),
        kv: Sequence[bytes] = (),
        schedules: Sequence[str] = (),
    ) -> Coroutine[Any, Any, bool]:
        """Delete what another store has now, without a trace but in the counts of waiting jobs."""
        return self.do(commands.DeleteMoved(move, jobs, keys, kv, schedules))

    def take_keys(self, keys: Sequence[HeldKey]) -> Coroutine[Any, Any, None]:
        """Let these keys be held here until their time is over, those that are free."""
        return self.do(commands.TakeKeys(keys))
