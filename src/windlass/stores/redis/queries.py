"""Queries of a store on Redis: each is one script, and of one moment but for a page of jobs that needs many."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Final, cast

import msgspec

from windlass.core import queries
from windlass.core.duration import from_micros, to_micros
from windlass.core.ids import JobId
from windlass.core.job import Job, Token
from windlass.core.looks import AuditEntry, DeadJob, Death, Glance, JobPage, Place, ServerRecord
from windlass.core.schedule import DueSchedules, Schedule, ScheduleList
from windlass.core.states import State
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount
from windlass.core.store_calls import table_of
from windlass.kit.damage import is_sound, read_each
from windlass.kit.moves.looking import AHEAD_MOST, STRANDED_MOST
from windlass.kit.records import STATES, server_of
from windlass.stores.redis.caller import Caller
from windlass.stores.redis.damaged import left_out
from windlass.stores.redis.queue_settings import queue_settings
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
from windlass.stores.redis.stored_jobs import FramedRow, damaged_schedule_of, decoded

LOOKED_AT: Final = 500
"""Jobs that one script looks at for a page: the server does nothing else meanwhile."""
MOST_SHOWN: Final = 16 * 1024 * 1024
"""Bytes after which a script reads no more jobs, of which it always reads one."""
MINUTE: Final = 60_000_000
MINUTES_LOOKED_AT: Final = 24 * 60
"""Minutes that one script looks at, for the same reason: a week of them would take it tens of milliseconds."""
COUNTS_LOOKED_AT: Final = 10_000
"""Counts in these minutes after which it ends: there are some for each queue and kind."""

_framed = msgspec.msgpack.Decoder(list[FramedRow | None])
_page = msgspec.msgpack.Decoder(Page)
_newest = msgspec.msgpack.Decoder(tuple[int | None, bool, int, list[FramedRow]])
_deaths = msgspec.msgpack.Decoder(tuple[bool, list[FramedRow], list[tuple[str, int, int]]])
_schedule = msgspec.msgpack.Decoder(ScheduleRow)
_fields = msgspec.msgpack.Decoder(list[list[bytes] | None])
_whole = msgspec.msgpack.Decoder(WholeRow)
_job = msgspec.msgpack.Decoder(JobRow)
_place = msgspec.msgpack.Decoder(tuple[int, int | None, str | None] | None)
_rows = msgspec.msgpack.Decoder(list[msgspec.Raw])
_stats = msgspec.msgpack.Decoder(StatsRow)
_waiting = msgspec.msgpack.Decoder(tuple[str, str, int, int])
_schedules = msgspec.msgpack.Decoder(tuple[int, list[FramedRow]])
_due = msgspec.msgpack.Decoder(tuple[int, list[FramedRow], int | None])
_glances = msgspec.msgpack.Decoder(list[tuple[str, str, bool, str | None]])
_minutes = msgspec.msgpack.Decoder(tuple[int | None, list[tuple[int, list[msgspec.Raw]]]])
_server = msgspec.msgpack.Decoder(tuple[str, int, int])
_entries = msgspec.msgpack.Decoder(list[bytes])
_entry = msgspec.msgpack.Decoder(AuditEntry)
_values = msgspec.msgpack.Decoder(list[bytes | None])
_pairs = msgspec.msgpack.Decoder(list[tuple[bytes, bytes]])
_decode = msgspec.msgpack.Decoder().decode


async def get(caller: Caller, query: queries.GetJobs) -> list[Job | None]:
    """Return jobs with history and log; many that are large are of several moments."""
    rows: list[FramedRow | None] = []
    while len(rows) < len(query.ids):
        ask: Ask = {"ids": list(query.ids[len(rows) :]), "bytes": MOST_SHOWN}
        rows += _framed.decode(await caller.look("get", ask))
    return await caller.stored.read_all(rows, lambda row: whole_job_of(_whole.decode(row)))


async def glance(caller: Caller, query: queries.GetGlances) -> dict[JobId, Glance]:
    """Return where jobs stand."""
    rows = _glances.decode(await caller.look("glance", {"ids": list(query.ids)}))
    return {
        # a state that cannot be read is shown as everywhere
        JobId(job_id): Glance(STATES.get(state, State.DEAD), flag, None if token is None else Token(token))
        for job_id, state, flag, token in rows
    }


async def jobs(caller: Caller, query: queries.ListJobs) -> list[Job]:
    """Return a page of jobs; while others change them, they are of the moments at which they were looked at."""
    ask: Ask = {**chosen_of(query.chosen), "most": LOOKED_AT, "bytes": MOST_SHOWN}
    found: list[Job] = []
    after, more = query.after, True
    while more and len(found) < query.limit:
        ask |= {"after": after, "limit": query.limit - len(found)}
        after, more, rows = _page.decode(await caller.look("jobs", ask))
        found += await caller.stored.read(rows, _job_of)
    return found


async def newest(caller: Caller, query: queries.ListNewestJobs) -> JobPage:
    """Return a page of jobs, the newest first; as `jobs` they are of several moments."""
    ask: Ask = {**chosen_of(query.chosen), "bytes": MOST_SHOWN}
    found: list[Job] = []
    before, most, more = query.before, query.most, True
    while more and most > 0 and len(found) < query.limit:
        ask |= {"before": before, "limit": query.limit - len(found), "most": min(most, LOOKED_AT)}
        before, more, looked, rows = _newest.decode(await caller.look("newest", ask))
        found += await caller.stored.read(rows, _job_of)
        most -= looked
    return JobPage(found, before if more else None)


async def dead(caller: Caller, query: queries.ListDeadJobs) -> list[DeadJob]:
    """Return a page of the dead jobs, the last to die first; as `jobs` they are of several moments."""
    ask: Ask = {"queues": None if query.queue is None else [query.queue], "most": LOOKED_AT, "bytes": MOST_SHOWN}
    found: list[DeadJob] = []
    before, more = query.before, True
    while more and len(found) < query.limit:
        begin = {} if before is None else before._asdict()
        reply = await caller.look("deaths", {**ask, **begin, "limit": query.limit - len(found)})
        more, rows, places = _deaths.decode(reply)
        deaths = {job_id: Death(at, seq) for job_id, at, seq in places}
        found += [DeadJob(deaths[job.id], job) for job in await caller.stored.read(rows, _job_of)]
        before = min(deaths.values(), default=before)
    return found


async def position(caller: Caller, query: queries.GetPosition) -> Place | None:
    """Return what stands between a job and its claim."""
    found = _place.decode(await caller.look("place", {"id": query.job_id, "most": AHEAD_MOST}))
    if found is None:
        return None
    now, ahead, holder = found
    return Place(time_of(now), ahead, maybe_id(holder))


async def stats(caller: Caller, query: queries.GetStats) -> list[QueueStats]:
    """Count by state."""
    rows = _rows.decode(await caller.look("stats", {"queues": None if query.queue is None else [query.queue]}))
    found = read_each(map(bytes, rows), lambda row: stats_of(_stats.decode(row)), left_out("a queue"))
    return sorted(found, key=lambda stats: str(stats.queue))


async def due_in(caller: Caller, query: queries.GetDueTime) -> timedelta | None:
    """Return how long it is until the next scheduled job comes due."""
    micros = _decode(await caller.look("due_in", {"queues": list(query.queues)}))
    return None if micros is None else timedelta(microseconds=micros)


async def kinds(caller: Caller, query: queries.ListKinds) -> list[str]:
    """Return the kinds of pending jobs that are not known."""
    return sorted({*_decode(await caller.look("kinds", {"queue": query.queue}))} - {*query.known, RAW})


async def waiting(caller: Caller, query: queries.CountWaiting) -> list[KindStats]:
    """Count the pending jobs by queue and kind."""
    del query
    rows = _rows.decode(await caller.look("waiting", {}))
    return sorted(read_each(map(bytes, rows), _kind_of, left_out("a queue")))


async def minutes(caller: Caller, query: queries.GetMinutes) -> list[MinuteCounts]:
    """Return the counts of each minute."""
    return minutes_of(await _counts(caller, "minute", query.since, query.until))


async def timings(caller: Caller, query: queries.GetTimings) -> list[TimingCount]:
    """Return how long attempts took in each minute."""
    return timings_of(await _counts(caller, "timing", query.since, query.until))


async def _counts(caller: Caller, line: str, since: datetime, until: datetime) -> list[tuple[int, list[msgspec.Raw]]]:
    found: list[tuple[int, list[msgspec.Raw]]] = []
    first: int | None = -(-to_micros(since) // MINUTE) * MINUTE
    ask: Ask = {"line": line, "till": to_micros(until) - 1, "most": MINUTES_LOOKED_AT, "pairs": COUNTS_LOOKED_AT}
    while first is not None:
        first, some = _minutes.decode(await caller.look("minutes", {**ask, "since": first}))
        found += some
    return found


async def servers(caller: Caller, query: queries.ListServers) -> list[ServerRecord]:
    """Return every server."""
    del query
    return read_each(map(bytes, _rows.decode(await caller.look("servers", {}))), _server_of, left_out("a server"))


async def ended_servers(caller: Caller, query: queries.ListEndedServers) -> list[str]:
    """Return none: a process on another machine that is silent may still be alive."""
    del caller, query
    return []


async def schedules(caller: Caller, query: queries.ListSchedules) -> ScheduleList:
    """Return schedules, and the store's time."""
    ask: Ask = {"ids": None if query.ids is None else sorted(set(query.ids))}
    now, rows = _schedules.decode(await caller.look("schedules", ask))
    return ScheduleList(time_of(now), await _read_schedules(caller, sorted(rows, key=itemgetter(0))))


async def due_schedules(caller: Caller, query: queries.ListDueSchedules) -> DueSchedules:
    """Return what is due."""
    ask: Ask = {"declared": names(query.declared), "limit": query.limit}
    now, rows, next_run_at = _due.decode(await caller.look("due_schedules", ask))
    return DueSchedules(time_of(now), await _read_schedules(caller, rows), maybe_time(next_run_at))


async def _read_schedules(caller: Caller, rows: Sequence[FramedRow]) -> list[Schedule]:
    """Return the schedules of rows; of a damaged one what can be read."""
    found = {schedule_id: None if row is None else decoded(row, _schedule_of) for schedule_id, row in rows}
    damaged = [schedule_id for schedule_id, schedule in found.items() if schedule is None]
    if damaged:
        stored = _fields.decode(await caller.look("schedule_records", {"ids": damaged}))
        for schedule_id, fields in zip(damaged, stored, strict=True):
            found[schedule_id] = damaged_schedule_of(schedule_id, fields)
    return [schedule for schedule in found.values() if schedule is not None]


async def audit(caller: Caller, query: queries.ListAudit) -> list[AuditEntry]:
    """Return what people did."""
    rows = _entries.decode(await caller.look("audit", {"limit": query.limit}))
    return read_each(rows, _entry.decode, left_out("an entry of the audit"))


async def stranded(caller: Caller, query: queries.CountStranded) -> int:
    """Count the leases that ran out while no server is live."""
    ask: Ask = {"dead_after": span(query.dead_after), "most": STRANDED_MOST}
    return cast("int", _decode(await caller.look("stranded", ask)))


async def get_kv(caller: Caller, query: queries.GetKv) -> list[bytes | None]:
    """Return the caller's own values."""
    return _values.decode(await caller.look("kv_get", {"keys": [as_text(key) for key in query.keys]}))


async def scan_kv(caller: Caller, query: queries.ScanKv) -> list[tuple[bytes, bytes]]:
    """Return the caller's own values by prefix."""
    prefix, after, limit = query.prefix, query.after, query.limit
    past = after is not None and after >= prefix
    ask: Ask = {"from": as_text(after if past and after is not None else prefix), "past": past, "limit": limit}
    pairs = _pairs.decode(await caller.look("kv_scan", ask))
    return [pair for pair in pairs if pair[0].startswith(prefix)]


def _job_of(row: bytes) -> Job:
    return job_of(_job.decode(row))


def _schedule_of(row: bytes) -> Schedule:
    schedule = schedule_of(_schedule.decode(row))
    if not is_sound(schedule):
        message = "a field is not one that a schedule is written with"
        raise ValueError(message)
    return schedule


def _kind_of(row: bytes) -> KindStats:
    queue, kind, pending, oldest = _waiting.decode(row)
    return KindStats(queue, kind, pending, time_of(oldest))


def _server_of(row: bytes) -> ServerRecord:
    record, started, seen = _server.decode(row)
    return replace(server_of(record), started_at=from_micros(started), seen_at=from_micros(seen))


QUERIES: Final = table_of(
    queries.GetJobs.by_coroutine(get),
    queries.GetGlances.by_coroutine(glance),
    queries.ListJobs.by_coroutine(jobs),
    queries.ListNewestJobs.by_coroutine(newest),
    queries.ListDeadJobs.by_coroutine(dead),
    queries.GetPosition.by_coroutine(position),
    queries.GetDueTime.by_coroutine(due_in),
    queries.GetStats.by_coroutine(stats),
    queries.GetQueueSettings.by_coroutine(queue_settings),
    queries.ListKinds.by_coroutine(kinds),
    queries.CountWaiting.by_coroutine(waiting),
    queries.GetMinutes.by_coroutine(minutes),
    queries.GetTimings.by_coroutine(timings),
    queries.ListServers.by_coroutine(servers),
    queries.ListEndedServers.by_coroutine(ended_servers),
    queries.ListSchedules.by_coroutine(schedules),
    queries.ListDueSchedules.by_coroutine(due_schedules),
    queries.ListAudit.by_coroutine(audit),
    queries.CountStranded.by_coroutine(stranded),
    queries.GetKv.by_coroutine(get_kv),
    queries.ScanKv.by_coroutine(scan_kv),
)
"""The coroutine function that executes each query, but for those of `windlass move` and the check."""
