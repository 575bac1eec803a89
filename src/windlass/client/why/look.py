"""Gathers, in a few calls, what is known of a job."""

from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeVar

from windlass.client.claims import DEAD_AFTER
from windlass.client.why.known import LATELY, Known, Reason
from windlass.client.why.reasons import reasons
from windlass.core.errors import NotAllowed
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.schedule import Schedule
from windlass.core.stats import MinuteCounts, QueueStats
from windlass.core.store import Store

T = TypeVar("T")

AUDITED: Final = 200
"""How many of the newest entries are looked at for the job."""
LOOKED_AT: Final = 20_000
"""How many of the newest jobs are looked at for one whose id is much like another."""
HALF: Final = 18
"""Characters: a slip in one half of an id leaves the other one whole."""
MOST_SLIPS: Final = 2
_NO_SERVERS: Final[list[ServerRecord]] = []
_NO_MINUTES: Final[list[MinuteCounts]] = []
_NO_AUDIT: Final[list[AuditEntry]] = []


class Why(NamedTuple):
    """The answer: the job, if it is here, and the reasons at the time `now` of the store."""

    id: JobId
    now: datetime
    job: Job | None
    reasons: list[Reason]


async def why(store: Store, job_id: JobId, *, dead_after: timedelta = DEAD_AFTER, audit: bool = True) -> Why:
    """Tell why a job stands where it stands; a server that was not seen for `dead_after` counts as gone.

    Without `audit` it is not told who did something to the job.
    """
    known = await _known(store, job_id, dead_after, audit=audit)
    return Why(job_id, known.now, known.job, reasons(known))


async def _known(store: Store, job_id: JobId, dead_after: timedelta, *, audit: bool) -> Known:
    [job] = await store.get((job_id,))
    place = await store.place(job_id)
    moved = await _if_allowed(store.moved(), None)
    if job is None or place is None:
        now = (await store.schedules(())).now
        near = await _near(store, job_id)
        return Known(now=now, id=job_id, job=None, moved=moved, near=near, dead_after=dead_after)
    now = place.now
    return Known(
        now=now,
        id=job_id,
        job=job,
        queue=await _queue(store, job.queue),
        ahead=place.ahead,
        key_holder=place.key_holder,
        servers=await _if_allowed(store.servers(), _NO_SERVERS),
        ended_lately=await _ended_lately(store, job.queue, now),
        schedule=await _schedule(store, job.schedule_id),
        moved=moved,
        audit=await _audit(store, job_id) if audit else (),
        dead_after=dead_after,
    )


async def _if_allowed(asked: Awaitable[T], otherwise: T) -> T:
    """Return what is asked for, or what is said instead to whoever may not know it."""
    try:
        return await asked
    except NotAllowed:
        return otherwise


async def _queue(store: Store, queue: str) -> QueueStats:
    rows = await store.stats(queue)
    return rows[0] if rows else QueueStats(queue)


async def _ended_lately(store: Store, queue: str, now: datetime) -> int:
    minutes = await _if_allowed(store.minutes(since=now - LATELY, until=now + LATELY), _NO_MINUTES)
    return sum(
        each.counts.succeeded + each.counts.dead + each.counts.retried for each in minutes if each.queue == queue
    )


async def _schedule(store: Store, schedule_id: str | None) -> Schedule | None:
    if schedule_id is None:
        return None
    _, found = await store.schedules((schedule_id,))
    return found[0] if found else None


async def _audit(store: Store, job_id: JobId) -> list[AuditEntry]:
    entries = await _if_allowed(store.audit(limit=AUDITED), _NO_AUDIT)
    return [entry for entry in entries if _names(entry, job_id)]


def _names(entry: AuditEntry, job_id: JobId) -> bool:
    return entry.target == job_id or job_id in entry.detail.get("ids", "").split()


async def _near(store: Store, job_id: JobId) -> list[JobId]:
    """Return jobs whose id differs by so little that somebody may have mistyped it."""
    found: dict[JobId, None] = {}
    for half in (job_id[:HALF], job_id[HALF:]):
        page = await store.newest(JobFilter(text=half), before=None, limit=10, most=LOOKED_AT)
        found.update((job.id, None) for job in page.jobs if _slips(job.id, job_id) <= MOST_SLIPS)
    return list(found)


def _slips(one: str, other: str) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))
