"""Queries of a store: every call that only reads, as a value. Every reply is of one moment.

A job whose stored record cannot be read whole is given with `damage` and what can be read. Another record that cannot
be read (a server, an entry of the audit, counts of a minute) is left out, and the log names it once.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import AuditEntry, DeadJob, Death, Finding, Glance, JobPage, Place, ServerRecord
from windlass.core.moving import HeldKey, Moved, Packed, Unpacked
from windlass.core.queue_settings import StoredSettings
from windlass.core.schedule import DueSchedules, ScheduleList
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount
from windlass.core.store_calls import Part, Query, Touches


@dataclass(frozen=True, slots=True)
class GetJobs(Query[list[Job | None]]):
    """Return the jobs with these ids, with history and log, in order; None for each that is not here."""

    ids: Sequence[JobId]
    touches = Touches(Part.JOBS, "ids")


@dataclass(frozen=True, slots=True)
class GetGlances(Query[dict[JobId, Glance]]):
    """Return the state of each of these jobs; those that are not here are left out."""

    ids: Collection[JobId]
    touches = Touches(Part.JOBS, "ids")


@dataclass(frozen=True, slots=True)
class ListJobs(Query[list[Job]]):
    """Return up to `limit` jobs in the order of their enqueue, those past the sequence number `after`."""

    chosen: JobFilter
    after: int | None
    limit: int
    touches = Touches(Part.QUEUES, "chosen.queue")


@dataclass(frozen=True, slots=True)
class ListNewestJobs(Query[JobPage]):
    """Return up to `limit` jobs, the newest first, those before the sequence number `before`.

    It reads about `most` records and no more, so it answers quickly however many there are and however few match;
    where an index leads to what is chosen it finds all there are. `next` of the page is the `before` of the
    look that goes on.
    """

    chosen: JobFilter
    before: int | None
    limit: int
    most: int
    touches = Touches(Part.QUEUES, "chosen.queue")


@dataclass(frozen=True, slots=True)
class ListDeadJobs(Query[list[DeadJob]]):
    """Return up to `limit` dead jobs of a queue or of all, the last to die first, those past the position `before`.

    Jobs that died at the same time come by sequence number, the greatest first. Fewer than `limit` are all there
    are. An index leads to them, however many dead jobs there are.
    """

    queue: str | None
    before: Death | None
    limit: int
    touches = Touches(Part.QUEUES, "queue")


@dataclass(frozen=True, slots=True)
class GetPosition(Query[Place | None]):
    """Return what stands between a job and its claim; None when it is not here."""

    job_id: JobId
    touches = Touches(Part.JOBS, "job_id")


@dataclass(frozen=True, slots=True)
class GetDueTime(Query[timedelta | None]):
    """Return how long it is until the next scheduled job of these queues comes due, by the store's clock.

    Zero when one is due by now; None when there is none. Paused queues do not count.
    """

    queues: Sequence[str]
    touches = Touches(Part.QUEUES, "queues")


@dataclass(frozen=True, slots=True)
class GetStats(Query[list[QueueStats]]):
    """Count by state, exactly, for every queue that is known or for one, in order of name."""

    queue: str | None = None
    touches = Touches(Part.QUEUES, "queue")


@dataclass(frozen=True, slots=True)
class GetQueueSettings(Query[dict[str, StoredSettings]]):
    """Return the settings that hold for those of `queues` that have any but the default; as cheap for many as for one.

    A queue without an entry is not paused; one whose pause was ended may have an entry or none.
    """

    queues: Sequence[str]
    touches = Touches(Part.QUEUES, "queues")


@dataclass(frozen=True, slots=True)
class ListKinds(Query[list[str]]):
    """Return the kinds of the pending jobs of `queue` that are not among `known`, in order of name.

    What it costs is by kinds, not by jobs; and the jobs of those that are known cost nothing.
    """

    queue: str
    known: Collection[str] = ()
    touches = Touches(Part.QUEUE, "queue")


@dataclass(frozen=True, slots=True)
class CountWaiting(Query[list[KindStats]]):
    """Count the pending jobs by queue and kind, exactly, in that order; a pair that has none is left out.

    What it costs is by pending jobs, where no index answers it: it is for metrics, and for no query that is repeated
    every few moments.
    """

    touches = Touches(Part.QUEUES)


@dataclass(frozen=True, slots=True)
class GetMinutes(Query[list[MinuteCounts]]):
    """Return what happened in each minute from `since` up to, not including, `until`."""

    since: datetime
    until: datetime
    touches = Touches(Part.QUEUES)


@dataclass(frozen=True, slots=True)
class GetTimings(Query[list[TimingCount]]):
    """Return how long attempts took in each minute from `since` up to, not including, `until`."""

    since: datetime
    until: datetime
    touches = Touches(Part.STORE)


@dataclass(frozen=True, slots=True)
class ListServers(Query[list[ServerRecord]]):
    """Return every server whose record was not removed, live or not."""

    touches = Touches(Part.STORE)


@dataclass(frozen=True, slots=True)
class ListEndedServers(Query[list[str]]):
    """Return the ids of servers whose process has ended, on proof: never a live one, however silent it is.

    A store without such a proof returns none. The server that has rescued the jobs of an ended one removes its record.
    """

    touches = Touches(Part.STORE)


@dataclass(frozen=True, slots=True)
class ListSchedules(Query[ScheduleList]):
    """Return the schedules, or those with these ids that are here, in order of id, and the store's time."""

    ids: Collection[str] | None = None
    touches = Touches(Part.SCHEDULES, "ids")


@dataclass(frozen=True, slots=True)
class ListDueSchedules(Query[DueSchedules]):
    """Return up to `limit` schedules that are due by the store's clock and not paused.

    Of those that code declares only the ones `declared` here count, for the next time too. A damaged one is given
    with its `damage`: the scheduler skips it, and asks for more.
    """

    declared: Collection[str]
    limit: int
    touches = Touches(Part.SCHEDULES)


@dataclass(frozen=True, slots=True)
class ListAudit(Query[list[AuditEntry]]):
    """Return the newest entries first."""

    limit: int
    touches = Touches(Part.STORE)


@dataclass(frozen=True, slots=True)
class CountStranded(Query[int]):
    """Count the leases that ran out while no server is live that would rescue them, up to 1,000."""

    dead_after: timedelta
    touches = Touches(Part.ALL)


@dataclass(frozen=True, slots=True)
class CheckStore(Query[list[Finding]]):
    """Check the store's health and settings, for `doctor`; the finding `moved` warns that its jobs were moved."""

    touches = Touches(Part.ALL)


@dataclass(frozen=True, slots=True)
class GetKv(Query[list[bytes | None]]):
    """Return the caller's own values."""

    keys: Sequence[bytes]
    touches = Touches(Part.STORE)


@dataclass(frozen=True, slots=True)
class ScanKv(Query[list[tuple[bytes, bytes]]]):
    """Return up to `limit` pairs whose key begins with `prefix`, in the order of their bytes, past `after`."""

    prefix: bytes
    after: bytes | None
    limit: int
    touches = Touches(Part.STORE)


@dataclass(frozen=True, slots=True)
class GetMoved(Query[Moved | None]):
    """Return where the jobs of this store go or went; None while it takes jobs."""

    touches = Touches(Part.STORE)


@dataclass(frozen=True, slots=True)
class PackJobs(Query[Packed]):
    """Return up to `limit` pending and scheduled jobs of `queue`, also of a paused one; they stay until deleted.

    Jobs whose stored record is damaged are left out, and the next ones are given instead.
    """

    queue: str
    limit: int
    touches = Touches(Part.QUEUE, "queue")


@dataclass(frozen=True, slots=True)
class GetUnpacked(Query[Unpacked | None]):
    """Return the last parcel of a move and a queue that was unpacked here."""

    move: str
    queue: str
    touches = Touches(Part.QUEUE, "queue")


@dataclass(frozen=True, slots=True)
class ListTimedKeys(Query[list[HeldKey]]):
    """Return up to `limit` keys that only time frees and whose time is not over, whichever job holds them."""

    limit: int
    touches = Touches(Part.ALL)


QUERIES: Final[tuple[type[Query[Any]], ...]] = (
    GetJobs, GetGlances, ListJobs, ListNewestJobs, ListDeadJobs, GetPosition, GetDueTime, GetStats, GetQueueSettings,
    ListKinds, CountWaiting, GetMinutes, GetTimings, ListServers, ListEndedServers, ListSchedules, ListDueSchedules,
    ListAudit, CountStranded, CheckStore, GetKv, ScanKv, GetMoved, PackJobs, GetUnpacked, ListTimedKeys,
)  # fmt: skip
"""Every query that `Store.ask` executes."""
