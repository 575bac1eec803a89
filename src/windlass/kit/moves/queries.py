"""Queries that all stores of Python records execute alike; each function runs inside an atomic step of its store."""

from itertools import islice
from typing import Final

from windlass.core import queries
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import AuditEntry, Glance, ServerRecord
from windlass.core.moving import HeldKey, Moved, Unpacked
from windlass.core.schedule import DueSchedules, ScheduleList
from windlass.core.stats import TimingCount
from windlass.core.store_calls import table_of
from windlass.kit.moves import looking
from windlass.kit.moves.store_state import StoreState


def get(state: StoreState, query: queries.GetJobs) -> list[Job | None]:
    """Return jobs with their history and log."""
    found = [state.table.jobs.get(job_id) for job_id in query.ids]
    return [None if record is None else record.whole_job() for record in found]


def glance(state: StoreState, query: queries.GetGlances) -> dict[JobId, Glance]:
    """Return the state of each of these jobs."""
    found = [(job_id, state.table.jobs.get(job_id)) for job_id in query.ids]
    return {job_id: looking.glance(record) for job_id, record in found if record is not None}


def timings(state: StoreState, query: queries.GetTimings) -> list[TimingCount]:
    """Return how long attempts took in each minute."""
    return state.house.timings_between(query.since, query.until)


def servers(state: StoreState, query: queries.ListServers) -> list[ServerRecord]:
    """Return every server, in order of id."""
    del query
    return sorted(state.house.servers.values(), key=lambda server: server.id)


def schedules(state: StoreState, query: queries.ListSchedules) -> ScheduleList:
    """Return the schedules, or those with these ids, and the store's time."""
    return ScheduleList(state.now, state.schedules.chosen(query.ids))


def due_schedules(state: StoreState, query: queries.ListDueSchedules) -> DueSchedules:
    """Return schedules that are due and not paused."""
    return state.schedules.due(query.declared, query.limit, state.now)


def audit(state: StoreState, query: queries.ListAudit) -> list[AuditEntry]:
    """Return the newest entries first."""
    return state.house.audit[::-1][: query.limit]


def get_kv(state: StoreState, query: queries.GetKv) -> list[bytes | None]:
    """Return the caller's own values."""
    return [state.keyspace.get(key) for key in query.keys]


def scan_kv(state: StoreState, query: queries.ScanKv) -> list[tuple[bytes, bytes]]:
    """Return pairs whose key begins with the prefix."""
    return state.keyspace.scan(query.prefix, query.after, query.limit)


def moved(state: StoreState, query: queries.GetMoved) -> Moved | None:
    """Return where the jobs of this store go or went."""
    del query
    return state.house.moved


def unpacked(state: StoreState, query: queries.GetUnpacked) -> Unpacked | None:
    """Return the last parcel of a move and a queue that was unpacked here."""
    return state.house.parcels.get((query.move, query.queue))


def timed_keys(state: StoreState, query: queries.ListTimedKeys) -> list[HeldKey]:
    """Return keys that only time frees."""
    return list(islice(state.table.holds.timed(state.now), query.limit))


QUERIES: Final = table_of(
    queries.GetJobs.by(get),
    queries.GetGlances.by(glance),
    queries.GetTimings.by(timings),
    queries.ListServers.by(servers),
    queries.ListSchedules.by(schedules),
    queries.ListDueSchedules.by(due_schedules),
    queries.ListAudit.by(audit),
    queries.GetKv.by(get_kv),
    queries.ScanKv.by(scan_kv),
    queries.GetMoved.by(moved),
    queries.GetUnpacked.by(unpacked),
    queries.ListTimedKeys.by(timed_keys),
)
"""The function that executes each of them."""
