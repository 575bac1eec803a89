"""What one look at a store shows: a frame; and how fast things go, by the frames before it."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from windlass.client.client import Client
from windlass.core.errors import NotAllowed
from windlass.core.filters import JobFilter
from windlass.core.job import Job
from windlass.core.looks import ServerRecord
from windlass.core.moving import Moved
from windlass.core.states import State
from windlass.core.stats import MinuteCounts, QueueStats, Totals

SPARK_MINUTES: Final = 30
RUNNING: Final = 50
NEWEST: Final = 100
DEAD: Final = 200
LOOKED_AT: Final = 20_000
"""How many jobs each list looks at, at most: a look answers soon, however many there are."""
MINUTES_EACH: Final = timedelta(seconds=10)
"""How often the minutes are asked for: they change slowly."""
WINDOW: Final = 5
"""How many looks a rate is taken over."""
MINUTE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Frame:
    """A store at one moment, as far as it is shown."""

    now: datetime
    queues: Sequence[QueueStats]
    servers: Sequence[ServerRecord]
    jobs: Sequence[Job]
    """Those that run, then the newest; or the newest of those that were asked for."""
    dead: Sequence[Job]
    """The newest of the dead."""
    minutes: Sequence[MinuteCounts]
    moved: Moved | None
    all_jobs_seen: bool = True
    """Whether every job that was asked for would be here, if there are fewer than are listed."""


class Rate(NamedTuple):
    """Jobs in a second."""

    enqueued: float = 0.0
    ended: float = 0.0


class Looker:
    """Looks at a store again and again, by one set of calls each time."""

    def __init__(self, client: Client) -> None:
        """Look through `client`, which is open."""
        self._client = client
        self._minutes: Sequence[MinuteCounts] = ()
        self._minutes_at: datetime | None = None
        self._dead: Sequence[Job] = ()
        self._dead_counts: list[tuple[str | None, int, int]] = []
        self._before: deque[tuple[datetime, dict[str, Totals]]] = deque(maxlen=WINDOW)

    async def look(self, chosen: JobFilter | None = None) -> Frame:
        """Return a frame, with the jobs that are chosen."""
        store = self._client.store
        now = (await store.schedules(())).now
        queues = await store.stats()
        servers = await store.servers()
        jobs, all_seen = await self._jobs(chosen)
        dead = await self._dead_of(queues)
        frame = Frame(now, queues, servers, jobs, dead, await self._minutes_of(now), await self._moved(), all_seen)
        self._before.append((now, _totals(frame)))
        return frame

    def rates(self, frame: Frame) -> dict[str, Rate]:
        """Return how fast each queue goes: by the last looks, or at first by the last minutes."""
        then, totals = self._before[0] if self._before else (frame.now, {})
        seconds = (frame.now - then).total_seconds()
        if seconds <= 0:
            return minute_rates(frame)
        return {queue: _rate(totals.get(queue, Totals()), now, seconds) for queue, now in _totals(frame).items()}

    async def _jobs(self, chosen: JobFilter | None) -> tuple[list[Job], bool]:
        store = self._client.store
        if chosen is not None:
            page = await store.newest(chosen, before=None, limit=NEWEST, most=LOOKED_AT)
            return page.jobs, page.next is None or len(page.jobs) == NEWEST
        running = await store.newest(JobFilter(state=State.RUNNING), before=None, limit=RUNNING, most=LOOKED_AT)
        newest = await store.newest(JobFilter(), before=None, limit=NEWEST, most=LOOKED_AT)
        first = {job.id for job in running.jobs}
        return [*running.jobs, *(job for job in newest.jobs if job.id not in first)], True

    async def _dead_of(self, queues: Sequence[QueueStats]) -> Sequence[Job]:
        """Return the last jobs that died; those of the last look while the counts say that they are the same."""
        counts = [(row.queue, row.dead, row.totals.dead) for row in queues]
        if counts != self._dead_counts:
            dead = await self._client.store.dead(None, before=None, limit=DEAD)
            self._dead, self._dead_counts = [each.job for each in dead], counts
        return self._dead

    async def _minutes_of(self, now: datetime) -> Sequence[MinuteCounts]:
        if self._minutes_at is None or now - self._minutes_at >= MINUTES_EACH or now < self._minutes_at:
            since = now - SPARK_MINUTES * MINUTE
            self._minutes = await self._client.store.minutes(since=since, until=now + MINUTE)
            self._minutes_at = now
        return self._minutes

    async def _moved(self) -> Moved | None:
        try:
            return await self._client.store.moved()
        except NotAllowed:
            return None


def minute_rates(frame: Frame) -> dict[str, Rate]:
    """Return how fast each queue went in the last whole minute."""
    last = frame.now.replace(second=0, microsecond=0) - MINUTE
    sums: dict[str, Totals] = {}
    for each in frame.minutes:
        if each.minute == last:
            sums[each.queue] = sums.get(each.queue, Totals()).plus(each.counts)
    return {queue: _rate(Totals(), counts, MINUTE.total_seconds()) for queue, counts in sums.items()}


def ended_by_minute(frame: Frame, queue: str | None = None, minutes: int = SPARK_MINUTES) -> list[int]:
    """Return how many jobs of a queue, or of all, ended in each of the last minutes, up to this one."""
    this = frame.now.replace(second=0, microsecond=0)
    sums = dict.fromkeys((this - back * MINUTE for back in range(minutes - 1, -1, -1)), 0)
    for each in frame.minutes:
        if queue in (None, each.queue) and each.minute in sums:
            sums[each.minute] += _ended(each.counts)
    return list(sums.values())


def _totals(frame: Frame) -> dict[str, Totals]:
    return {row.queue: row.totals for row in frame.queues if row.queue is not None}


def _rate(then: Totals, now: Totals, seconds: float) -> Rate:
    return Rate(
        max(0, now.enqueued - then.enqueued) / seconds,
        max(0, _ended(now) - _ended(then)) / seconds,
    )


def _ended(counts: Totals) -> int:
    return counts.succeeded + counts.dead + counts.cancelled
