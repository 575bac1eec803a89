"""What people look at: each look is one script, and of one moment but for a page of jobs that needs many."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, Final, cast

import msgspec

from windlass.core.duration import from_micros, to_micros
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job, Token
from windlass.core.looks import AuditEntry, Glance, JobPage, Place, ServerRecord
from windlass.core.schedule import DueSchedules, ScheduleList
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount
from windlass.kit.moves.looking import AHEAD_MOST, STRANDED_MOST
from windlass.kit.records import STATES, server_of
from windlass.stores.redis.replies import (
    JobRow,
    Page,
    ScheduleRow,
    StatsRow,
    WholeRow,
    job_of,
    maybe_id,
    maybe_time,
    minutes_of,
    schedule_of,
    stats_of,
    time_of,
    timings_of,
    whole_job_of,
)
from windlass.stores.redis.requests import RAW, Ask, as_text, chosen_of, names, span
from windlass.stores.redis.rounds import Runs

LOOKED_AT: Final = 500
"""Jobs that one script looks at for a page: the server does nothing else meanwhile."""
MOST_SHOWN: Final = 16 * 1024 * 1024
"""Bytes after which a script reads no more jobs, of which it always reads one."""
MINUTE: Final = 60_000_000
MINUTES_LOOKED_AT: Final = 24 * 60
"""Minutes that one script looks at, for the same reason: a week of them would take it tens of milliseconds."""
COUNTS_LOOKED_AT: Final = 10_000
"""Counts in these minutes after which it ends: there are some for each queue and kind."""

_whole = msgspec.msgpack.Decoder(list[WholeRow | None])
_page = msgspec.msgpack.Decoder(Page)
_newest = msgspec.msgpack.Decoder(tuple[int | None, bool, int, list[JobRow]])
_place = msgspec.msgpack.Decoder(tuple[int, int | None, str | None] | None)
_stats = msgspec.msgpack.Decoder(list[StatsRow])
_waiting = msgspec.msgpack.Decoder(list[tuple[str, str, int, int]])
_schedules = msgspec.msgpack.Decoder(tuple[int, list[ScheduleRow]])
_due = msgspec.msgpack.Decoder(tuple[int, list[ScheduleRow], int | None])
_glances = msgspec.msgpack.Decoder(list[tuple[str, str, bool, str | None]])
_minutes = msgspec.msgpack.Decoder(tuple[int | None, list[tuple[int, list[str]]]])
_servers = msgspec.msgpack.Decoder(list[tuple[str, int, int]])
_audit = msgspec.msgpack.Decoder(list[AuditEntry])
_values = msgspec.msgpack.Decoder(list[bytes | None])
_pairs = msgspec.msgpack.Decoder(list[tuple[bytes, bytes]])
_decode = msgspec.msgpack.Decoder().decode


class Looks:
    """The looks at the keys that begin with one prefix."""

    def __init__(self, runner: Runs, prefix: str) -> None:
        """Look through `runner`."""
        self._runner = runner
        self._prefix = prefix

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        """Return jobs with history and log; many that are large are of several moments."""
        rows: list[WholeRow | None] = []
        while len(rows) < len(ids):
            rows += _whole.decode(await self._look("get", {"ids": list(ids[len(rows) :]), "bytes": MOST_SHOWN}))
        return [None if row is None else whole_job_of(row) for row in rows]

    async def glance(self, ids: Collection[JobId]) -> dict[JobId, Glance]:
        """Return where jobs stand."""
        rows = _glances.decode(await self._look("glance", {"ids": list(ids)}))
        return {
            JobId(job_id): Glance(STATES[state], flag, None if token is None else Token(token))
            for job_id, state, flag, token in rows
        }

    async def jobs(self, chosen: JobFilter, *, after: int | None, limit: int) -> list[Job]:
        """Return a page of jobs; while others change them, they are of the moments at which they were looked at."""
        ask: Ask = {**chosen_of(chosen), "most": LOOKED_AT, "bytes": MOST_SHOWN}
        found: list[Job] = []
        while len(found) < limit:
            ask |= {"after": after, "limit": limit - len(found)}
            after, more, rows = _page.decode(await self._look("jobs", ask))
            found += [job_of(row) for row in rows]
            if not more:
                break
        return found

    async def newest(self, chosen: JobFilter, *, before: int | None, limit: int, most: int) -> JobPage:
        """Return a page of jobs, the newest first; as `jobs` they are of several moments."""
        ask: Ask = {**chosen_of(chosen), "bytes": MOST_SHOWN}
        found: list[Job] = []
        more = True
        while more and most > 0 and len(found) < limit:
            ask |= {"before": before, "limit": limit - len(found), "most": min(most, LOOKED_AT)}
            before, more, looked, rows = _newest.decode(await self._look("newest", ask))
            found += [job_of(row) for row in rows]
            most -= looked
        return JobPage(found, before if more else None)

    async def place(self, job_id: JobId) -> Place | None:
        """Return what stands between a job and its claim."""
        found = _place.decode(await self._look("place", {"id": job_id, "most": AHEAD_MOST}))
        if found is None:
            return None
        now, ahead, holder = found
        return Place(time_of(now), ahead, maybe_id(holder))

    async def stats(self, queue: str | None = None) -> list[QueueStats]:
        """Count by state."""
        rows = _stats.decode(await self._look("stats", {"queues": None if queue is None else [queue]}))
        return [stats_of(row) for row in sorted(rows, key=itemgetter(0))]

    async def due_in(self, queues: Sequence[str]) -> timedelta | None:
        """Return how long it is until the next scheduled job comes due."""
        micros = _decode(await self._look("due_in", {"queues": list(queues)}))
        return None if micros is None else timedelta(microseconds=micros)

    async def paused(self, queues: Sequence[str]) -> list[str]:
        """Return which queues are paused."""
        return cast("list[str]", _decode(await self._look("paused", {"queues": list(queues)})))

    async def kinds(self, queue: str, known: Collection[str] = ()) -> list[str]:
        """Return the kinds of pending jobs that are not known."""
        return sorted({*_decode(await self._look("kinds", {"queue": queue}))} - {*known, RAW})

    async def waiting(self) -> list[KindStats]:
        """Count the pending jobs by queue and kind."""
        rows = _waiting.decode(await self._look("waiting", {}))
        return sorted(KindStats(queue, kind, pending, time_of(oldest)) for queue, kind, pending, oldest in rows)

    async def minutes(self, *, since: datetime, until: datetime) -> list[MinuteCounts]:
        """Return the counts of each minute."""
        return minutes_of(await self._counts("minute", since, until))

    async def timings(self, *, since: datetime, until: datetime) -> list[TimingCount]:
        """Return how long attempts took in each minute."""
        return timings_of(await self._counts("timing", since, until))

    async def _counts(self, line: str, since: datetime, until: datetime) -> list[tuple[int, list[str]]]:
        found: list[tuple[int, list[str]]] = []
        first: int | None = -(-to_micros(since) // MINUTE) * MINUTE
        ask: Ask = {"line": line, "till": to_micros(until) - 1, "most": MINUTES_LOOKED_AT, "pairs": COUNTS_LOOKED_AT}
        while first is not None:
            first, some = _minutes.decode(await self._look("minutes", {**ask, "since": first}))
            found += some
        return found

    async def servers(self) -> list[ServerRecord]:
        """Return every server."""
        rows = _servers.decode(await self._look("servers", {}))
        return [
            replace(server_of(record), started_at=from_micros(started), seen_at=from_micros(seen))
            for record, started, seen in rows
        ]

    async def schedules(self, ids: Collection[str] | None = None) -> ScheduleList:
        """Return schedules, and the store's time."""
        ask: Ask = {"ids": None if ids is None else sorted(set(ids))}
        now, rows = _schedules.decode(await self._look("schedules", ask))
        return ScheduleList(time_of(now), [schedule_of(row) for row in sorted(rows, key=itemgetter(0))])

    async def due_schedules(self, declared: Collection[str], *, limit: int) -> DueSchedules:
        """Return what is due."""
        ask: Ask = {"declared": names(declared), "limit": limit}
        now, rows, next_run_at = _due.decode(await self._look("due_schedules", ask))
        return DueSchedules(time_of(now), [schedule_of(row) for row in rows], maybe_time(next_run_at))

    async def audit(self, *, limit: int) -> list[AuditEntry]:
        """Return what people did."""
        return _audit.decode(await self._look("audit", {"limit": limit}))

    async def stranded(self, *, dead_after: timedelta) -> int:
        """Count leases that nobody will rescue."""
        ask: Ask = {"dead_after": span(dead_after), "most": STRANDED_MOST}
        return cast("int", _decode(await self._look("stranded", ask)))

    async def kv_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the caller's own values."""
        return _values.decode(await self._look("kv_get", {"keys": [as_text(key) for key in keys]}))

    async def kv_scan(self, prefix: bytes, *, after: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        """Return the caller's own values by prefix."""
        past = after is not None and after >= prefix
        ask: Ask = {"from": as_text(after if past and after is not None else prefix), "past": past, "limit": limit}
        pairs = _pairs.decode(await self._look("kv_scan", ask))
        return [pair for pair in pairs if pair[0].startswith(prefix)]

    async def _look(self, name: str, ask: dict[str, Any]) -> bytes:
        return await self._runner.look(self._prefix, name, ask)
