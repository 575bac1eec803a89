"""Queries that read the database as it is at one moment, in the process of the owner or in any other."""

from typing import Final

from windlass.core import queries
from windlass.core.duration import later
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import AuditEntry, Glance, ServerRecord
from windlass.core.schedule import ScheduleList
from windlass.core.store_calls import table_of
from windlass.kit.moves import looking
from windlass.stores.slatedb import check, job_pages, keys, newest_jobs, parcel_looks, place, queue_looks, records
from windlass.stores.slatedb.damaged import read_rows, read_schedule
from windlass.stores.slatedb.loading import gets, load_records
from windlass.stores.slatedb.queue_looks import read_queues
from windlass.stores.slatedb.ranges import rows_of
from windlass.stores.slatedb.view import ReadState, View


async def get(state: ReadState, query: queries.GetJobs) -> list[Job | None]:
    """Return jobs with their history and log."""
    found = await load_records(state.view, query.ids)
    jobs = {job_id: loaded.whole_job() for job_id, loaded in found.items()}
    return [jobs.get(job_id) for job_id in query.ids]


async def glance(state: ReadState, query: queries.GetGlances) -> dict[JobId, Glance]:
    """Return the state of each of these jobs."""
    found = await load_records(state.view, query.ids, parts=())
    return {job_id: looking.glance(found[job_id].record) for job_id in query.ids if job_id in found}


async def servers(state: ReadState, query: queries.ListServers) -> list[ServerRecord]:
    """Return every server, in order of id."""
    del query
    return await _servers(state.view)


async def _servers(view: View) -> list[ServerRecord]:
    return read_rows(await rows_of(view, keys.SERVERS), lambda _, value: records.server(value), "a server")


async def schedules(state: ReadState, query: queries.ListSchedules) -> ScheduleList:
    """Return the schedules, or those with these ids that are here, in order of id."""
    if query.ids is None:
        rows = await rows_of(state.view, keys.SCHEDULES)
        return ScheduleList(state.now, [read_schedule(key, value) for key, value in rows])
    wanted = [keys.named(keys.SCHEDULES, schedule_id) for schedule_id in sorted(set(query.ids))]
    values = zip(wanted, await gets(state.view, wanted), strict=True)
    return ScheduleList(state.now, [read_schedule(key, value) for key, value in values if value is not None])


async def audit(state: ReadState, query: queries.ListAudit) -> list[AuditEntry]:
    """Return what people did, the newest first."""
    rows = await state.view.scan(keys.AUDIT, keys.after(keys.AUDIT), limit=query.limit, reverse=True)
    return read_rows(rows, lambda _, value: records.audit_entry(value), "an entry of the audit")


async def stranded(state: ReadState, query: queries.CountStranded) -> int:
    """Count the leases that ran out, up to a bound; none while a server was seen within `dead_after`."""
    view, now, _ = state
    if any(later(server.seen_at, query.dead_after) > now for server in await _servers(view)):
        return 0
    count = 0
    for queue, kept in await read_queues(view):
        left = looking.STRANDED_MOST - count
        if kept.running and left:
            index = keys.leases(queue)
            count += len(await view.scan(index, keys.until(index, now), limit=left))
    return count


async def get_kv(state: ReadState, query: queries.GetKv) -> list[bytes | None]:
    """Return the caller's own values."""
    return await gets(state.view, [keys.value(key) for key in query.keys])


async def scan_kv(state: ReadState, query: queries.ScanKv) -> list[tuple[bytes, bytes]]:
    """Return pairs whose key begins with the prefix, in order."""
    # the key that follows `after` in the order of bytes is `after` with a zero behind it
    start = keys.value(query.prefix if query.after is None else max(query.prefix, query.after + b"\0"))
    end = keys.after(keys.value(query.prefix))
    rows = await state.view.scan(start, end, limit=query.limit) if start < end else []
    return [(key[len(keys.VALUES) :], value) for key, value in rows]


QUERIES: Final = table_of(
    queries.GetJobs.by_coroutine(get),
    queries.GetGlances.by_coroutine(glance),
    queries.ListJobs.by_coroutine(job_pages.jobs),
    queries.ListNewestJobs.by_coroutine(newest_jobs.newest),
    queries.ListDeadJobs.by_coroutine(newest_jobs.dead),
    queries.GetPosition.by_coroutine(place.position),
    queries.GetStats.by_coroutine(queue_looks.stats),
    queries.GetQueueSettings.by_coroutine(queue_looks.queue_settings),
    queries.ListKinds.by_coroutine(queue_looks.kinds),
    queries.CountWaiting.by_coroutine(queue_looks.waiting),
    queries.GetMinutes.by_coroutine(queue_looks.minutes),
    queries.GetTimings.by_coroutine(queue_looks.timings),
    queries.ListServers.by_coroutine(servers),
    queries.ListSchedules.by_coroutine(schedules),
    queries.ListAudit.by_coroutine(audit),
    queries.CountStranded.by_coroutine(stranded),
    queries.CheckStore.by_coroutine(check.check),
    queries.GetKv.by_coroutine(get_kv),
    queries.ScanKv.by_coroutine(scan_kv),
    queries.GetMoved.by_coroutine(parcel_looks.moved),
    queries.GetUnpacked.by_coroutine(parcel_looks.unpacked),
    queries.ListTimedKeys.by_coroutine(parcel_looks.timed_keys),
)
"""The function that executes each query; those of what only the owner knows are steps of the dispatcher."""
