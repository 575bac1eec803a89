"""Queries: each function executes one, while no command runs."""

from datetime import datetime, timedelta
from typing import Final

from examples.dictionary_store.tables import Tables, lease_is_over, plain
from windlass.core import queries
from windlass.core.duration import ZERO, later
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import AuditEntry, DeadJob, Finding, Glance, JobPage, Place, ServerRecord, death_of
from windlass.core.moving import HeldKey, Moved, Packed, Unpacked
from windlass.core.queue_settings import NO_SETTINGS, StoredSettings
from windlass.core.schedule import DueSchedules, ScheduleList
from windlass.core.states import State
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount, Totals
from windlass.core.store_calls import check_tables, table_of

MOST_COUNTED: Final = 1_000
"""Up to this many are counted of the jobs ahead of another one, and of the leases that ran out."""


def get_jobs(tables: Tables, query: queries.GetJobs) -> list[Job | None]:
    return [None if (record := tables.jobs.get(job_id)) is None else record.job for job_id in query.ids]


def get_glances(tables: Tables, query: queries.GetGlances) -> dict[JobId, Glance]:
    glances: dict[JobId, Glance] = {}
    for job_id in query.ids:
        if (record := tables.jobs.get(job_id)) is not None:
            job, token = record.job, record.token if record.job.state is State.RUNNING else None
            glances[job_id] = Glance(job.state, job.cancel_requested, token)
    return glances


def list_jobs(tables: Tables, query: queries.ListJobs) -> list[Job]:
    jobs = [record.job for record in tables.records(*State) if query.chosen.matches(record.job)]
    return [plain(job) for job in jobs if query.after is None or job.seq > query.after][: query.limit]


def list_newest_jobs(tables: Tables, query: queries.ListNewestJobs) -> JobPage:
    jobs = [record.job for record in reversed(tables.records(*State))]
    jobs = [job for job in jobs if query.before is None or job.seq < query.before]
    page: list[Job] = []
    for place, job in enumerate(jobs):
        if place == query.most or len(page) == query.limit:
            return JobPage(page, job.seq + 1)
        if query.chosen.matches(job):
            page.append(plain(job))
    return JobPage(page, None)


def list_dead_jobs(tables: Tables, query: queries.ListDeadJobs) -> list[DeadJob]:
    queues = None if query.queue is None else [query.queue]
    dead = [DeadJob(death_of(r.job), plain(r.job)) for r in tables.records(State.DEAD, queues=queues)]
    found = [each for each in dead if query.before is None or each.death < query.before]
    return sorted(found, key=lambda each: each.death, reverse=True)[: query.limit]


def get_position(tables: Tables, query: queries.GetPosition) -> Place | None:
    record = tables.jobs.get(query.job_id)
    if record is None:
        return None
    job, ahead = record.job, None
    if job.state is State.PENDING:
        line = tables.records(State.PENDING, queues=[job.queue])
        place = (job.priority, job.run_at, job.seq)
        ahead = sum((r.job.priority, r.job.run_at, r.job.seq) < place for r in line)
    holder = None if record.key is None else tables.holder(record.key.name)
    most = None if ahead is None else min(ahead, MOST_COUNTED)
    return Place(tables.now, most, None if holder is None else holder.job_id)


def get_due_time(tables: Tables, query: queries.GetDueTime) -> timedelta | None:
    queues = [queue for queue in query.queues if not tables.is_paused(queue)]
    due = [max(ZERO, record.job.run_at - tables.now) for record in tables.records(State.SCHEDULED, queues=queues)]
    return min(due, default=None)


def get_stats(tables: Tables, query: queries.GetStats) -> list[QueueStats]:
    names = sorted(name for name in tables.queues if query.queue in {None, name})
    return [stats_of(tables, name) for name in names]


def stats_of(tables: Tables, queue: str) -> QueueStats:
    jobs = [record.job for record in tables.records(*State, queues=[queue])]
    return QueueStats(
        queue,
        tables.is_paused(queue),
        **{state.value: sum(job.state is state for job in jobs) for state in State},
        oldest_waiting=min((job.run_at for job in jobs if job.state is State.PENDING), default=None),
        totals=tables.totals.get(queue, Totals()),
    )


def get_queue_settings(tables: Tables, query: queries.GetQueueSettings) -> dict[str, StoredSettings]:
    found = {name: tables.queues[name].settings for name in query.queues if name in tables.queues}
    return {name: settings for name, settings in found.items() if settings != NO_SETTINGS}


def list_kinds(tables: Tables, query: queries.ListKinds) -> list[str]:
    kinds = {record.job.kind for record in tables.records(State.PENDING, queues=[query.queue])}
    return sorted(kind for kind in kinds if kind is not None and kind not in query.known)


def count_waiting(tables: Tables, _query: queries.CountWaiting) -> list[KindStats]:
    waiting: dict[tuple[str, str], list[datetime]] = {}
    for record in tables.records(State.PENDING):
        waiting.setdefault((record.job.queue, record.job.kind or ""), []).append(record.job.run_at)
    return [KindStats(queue, kind, len(times), min(times)) for (queue, kind), times in sorted(waiting.items())]


def get_minutes(tables: Tables, query: queries.GetMinutes) -> list[MinuteCounts]:
    rows = sorted(MinuteCounts(*key, counts) for key, counts in tables.minutes.items())
    return [row for row in rows if query.since <= row.minute < query.until]


def get_timings(tables: Tables, query: queries.GetTimings) -> list[TimingCount]:
    rows = [key._replace(attempts=attempts) for key, attempts in tables.timings.items()]
    return [row for row in rows if query.since <= row.minute < query.until]


def list_servers(tables: Tables, _query: queries.ListServers) -> list[ServerRecord]:
    return list(tables.servers.values())


def list_ended_servers(_tables: Tables, _query: queries.ListEndedServers) -> list[str]:
    return []


def list_schedules(tables: Tables, query: queries.ListSchedules) -> ScheduleList:
    ids = sorted(tables.schedules if query.ids is None else tables.schedules.keys() & set(query.ids))
    return ScheduleList(tables.now, [tables.schedules[schedule_id] for schedule_id in ids])


def list_due_schedules(tables: Tables, query: queries.ListDueSchedules) -> DueSchedules:
    counting = [each for each in tables.schedules.values() if not each.declared or each.id in query.declared]
    timed = sorted((each.next_run_at, each.id) for each in counting if each.next_run_at and not each.paused)
    due = [tables.schedules[schedule_id] for at, schedule_id in timed if at <= tables.now][: query.limit]
    return DueSchedules(tables.now, due, min((at for at, _ in timed[len(due) :]), default=None))


def list_audit(tables: Tables, query: queries.ListAudit) -> list[AuditEntry]:
    return tables.audit[::-1][: query.limit]


def count_stranded(tables: Tables, query: queries.CountStranded) -> int:
    if any(later(server.seen_at, query.dead_after) > tables.now for server in tables.servers.values()):
        return 0
    return min(sum(lease_is_over(tables, r.job) for r in tables.records(State.RUNNING)), MOST_COUNTED)


def check_store(tables: Tables, _query: queries.CheckStore) -> list[Finding]:
    findings = [Finding("jobs", "ok", f"{len(tables.jobs):,} jobs in dictionaries: they end with the process")]
    if tables.moved is not None:
        said = f"nothing new begins here: its jobs go to {tables.moved.to}"
        findings.append(Finding("moved", "warning", said, f"let programs connect to {tables.moved.to}"))
    return findings


def get_kv(tables: Tables, query: queries.GetKv) -> list[bytes | None]:
    return [tables.kv.get(key) for key in query.keys]


def scan_kv(tables: Tables, query: queries.ScanKv) -> list[tuple[bytes, bytes]]:
    pairs = sorted(pair for pair in tables.kv.items() if pair[0].startswith(query.prefix))
    return [pair for pair in pairs if query.after is None or pair[0] > query.after][: query.limit]


def get_moved(tables: Tables, _query: queries.GetMoved) -> Moved | None:
    return tables.moved


def pack(tables: Tables, query: queries.PackJobs) -> Packed:
    waiting = tables.records(State.SCHEDULED, State.PENDING, queues=[query.queue])[: query.limit]
    ids = {record.job.id for record in waiting}
    return Packed([record.job for record in waiting], [key for key in tables.keys.values() if key.job_id in ids])


def get_unpacked(tables: Tables, query: queries.GetUnpacked) -> Unpacked | None:
    return tables.unpacked.get((query.move, query.queue))


def list_timed_keys(tables: Tables, query: queries.ListTimedKeys) -> list[HeldKey]:
    timed = [key for name, key in tables.keys.items() if key.until == "time" and tables.holder(name) is not None]
    return timed[: query.limit]


READS: Final = table_of(
    queries.GetJobs.by(get_jobs),
    queries.GetGlances.by(get_glances),
    queries.ListJobs.by(list_jobs),
    queries.ListNewestJobs.by(list_newest_jobs),
    queries.ListDeadJobs.by(list_dead_jobs),
    queries.GetPosition.by(get_position),
    queries.GetDueTime.by(get_due_time),
    queries.GetStats.by(get_stats),
    queries.GetQueueSettings.by(get_queue_settings),
    queries.ListKinds.by(list_kinds),
    queries.CountWaiting.by(count_waiting),
    queries.GetMinutes.by(get_minutes),
    queries.GetTimings.by(get_timings),
    queries.ListServers.by(list_servers),
    queries.ListEndedServers.by(list_ended_servers),
    queries.ListSchedules.by(list_schedules),
    queries.ListDueSchedules.by(list_due_schedules),
    queries.ListAudit.by(list_audit),
    queries.CountStranded.by(count_stranded),
    queries.CheckStore.by(check_store),
    queries.GetKv.by(get_kv),
    queries.ScanKv.by(scan_kv),
    queries.GetMoved.by(get_moved),
    queries.PackJobs.by(pack),
    queries.GetUnpacked.by(get_unpacked),
    queries.ListTimedKeys.by(list_timed_keys),
)
check_tables(queries.QUERIES, READS)
