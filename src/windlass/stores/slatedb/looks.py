"""What people look at, but for pages of jobs: each look is of the moment that the view is of."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from windlass.core.duration import later
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import AuditEntry, Glance, ServerRecord
from windlass.core.schedule import ScheduleList
from windlass.kit.moves import looking
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.loading import gets, load_records
from windlass.stores.slatedb.queue_looks import read_queues
from windlass.stores.slatedb.ranges import rows_of
from windlass.stores.slatedb.view import View


async def get(view: View, ids: Sequence[JobId]) -> list[Job | None]:
    """Return jobs with their history and log."""
    found = await load_records(view, ids)
    jobs = {job_id: loaded.record.whole_job() for job_id, loaded in found.items()}
    return [jobs.get(job_id) for job_id in ids]


async def glance(view: View, ids: Collection[JobId]) -> dict[JobId, Glance]:
    """Return where each of these jobs stands."""
    found = await load_records(view, ids, parts=())
    return {job_id: looking.glance(found[job_id].record) for job_id in ids if job_id in found}


async def servers(view: View) -> list[ServerRecord]:
    """Return every server that has not taken itself out, in order of id."""
    return [records.server(value) for _, value in await rows_of(view, keys.SERVERS)]


async def schedules(view: View, ids: Collection[str] | None, now: datetime) -> ScheduleList:
    """Return the schedules, or those with these ids that are here, in order of id."""
    if ids is None:
        values: Sequence[bytes | None] = [value for _, value in await rows_of(view, keys.SCHEDULES)]
    else:
        values = await gets(view, [keys.named(keys.SCHEDULES, schedule_id) for schedule_id in sorted(set(ids))])
    return ScheduleList(now, [records.schedule(value) for value in values if value is not None])


async def audit(view: View, limit: int) -> list[AuditEntry]:
    """Return what people did, the newest first."""
    rows = await view.scan(keys.AUDIT, keys.after(keys.AUDIT), limit=limit, reverse=True)
    return [records.audit_entry(value) for _, value in rows]


async def stranded(view: View, dead_after: timedelta, now: datetime) -> int:
    """Count the leases that ran out, up to a bound; none while a server was seen within `dead_after`."""
    if any(later(server.seen_at, dead_after) > now for server in await servers(view)):
        return 0
    count = 0
    for queue, kept in await read_queues(view):
        left = looking.STRANDED_MOST - count
        if kept.running and left:
            index = keys.leases(queue)
            count += len(await view.scan(index, keys.until(index, now), limit=left))
    return count


async def kv_get(view: View, wanted: Sequence[bytes]) -> list[bytes | None]:
    """Return the caller's own values."""
    return await gets(view, [keys.value(key) for key in wanted])


async def kv_scan(view: View, prefix: bytes, after: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
    """Return up to `limit` pairs whose key begins with `prefix`, past `after`, in order."""
    # the key that follows `after` in the order of bytes is `after` with a zero behind it
    start = keys.value(prefix if after is None else max(prefix, after + b"\0"))
    end = keys.after(keys.value(prefix))
    rows = await view.scan(start, end, limit=limit) if start < end else []
    return [(key[len(keys.VALUES) :], value) for key, value in rows]
