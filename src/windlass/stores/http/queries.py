"""Queries of a store over HTTP that need more than the operation that carries them."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from windlass.api import operations
from windlass.api.calls import MOST_JOBS, Nothing
from windlass.api.carried_call import pages
from windlass.api.jobs import job_of
from windlass.api.looks import MOST_LOOKED, DeadAsked, Listing, NewestAsked, place_of
from windlass.core import queries
from windlass.core.errors import JobNotFound, StoreUnavailable
from windlass.core.job import Job
from windlass.core.looks import DeadJob, Death, Finding, JobPage, Place
from windlass.core.stats import TimingCount
from windlass.core.store_calls import table_of
from windlass.stores.http.operation_client import OperationClient
from windlass.stores.http.reply import ReplyTooLarge
from windlass.stores.http.room import Room

SHORTEST: Final = timedelta(minutes=1)
"""Of a time whose counts are not asked for in halves any more."""


async def get(room: Room, query: queries.GetJobs) -> list[Job | None]:
    """Return jobs with history and log."""
    found: list[Job | None] = []
    for page in pages(query.ids, MOST_JOBS):
        found += await _get(room.client, replace(query, ids=page))
    return found


async def _get(client: OperationClient, query: queries.GetJobs) -> list[Job | None]:
    """Return a page of jobs, in halves where one reply would be too large."""
    try:
        return await client.execute(query)
    except StoreUnavailable as error:
        if len(query.ids) == 1 or not isinstance(error.__cause__, ReplyTooLarge):
            raise
    half = len(query.ids) // 2
    first = await _get(client, replace(query, ids=query.ids[:half]))
    return [*first, *await _get(client, replace(query, ids=query.ids[half:]))]


async def jobs(room: Room, query: queries.ListJobs) -> list[Job]:
    """Return a page of jobs; one that is too large for one request is of several moments."""
    found: list[Job] = []
    after = query.after
    while len(found) < query.limit:
        most = min(query.limit - len(found), MOST_JOBS)
        wanted = Listing(**query.chosen.by_field(), after=after, limit=most, payload="base64")
        told = await room.client.look(operations.JOBS, wanted)
        found += [job_of(one) for one in told.jobs]
        after = told.next
        if after is None:
            break
    return found


async def newest(room: Room, query: queries.ListNewestJobs) -> JobPage:
    """Return a page of the newest jobs, as many as one request may."""
    if query.limit < 1 or query.most < 1:
        return JobPage([], query.before)
    wanted = NewestAsked(
        **query.chosen.by_field(),
        before=query.before,
        limit=min(query.limit, MOST_JOBS),
        most=min(query.most, MOST_LOOKED),
        payload="base64",
    )
    told = await room.client.look(operations.NEWEST, wanted)
    return JobPage([job_of(one) for one in told.jobs], told.next)


async def dead(room: Room, query: queries.ListDeadJobs) -> list[DeadJob]:
    """Return a page of the dead jobs; one that is too large for one request is of several moments."""
    found: list[DeadJob] = []
    begin = None if query.before is None else str(query.before)
    while len(found) < query.limit:
        most = min(query.limit - len(found), MOST_JOBS)
        wanted = DeadAsked(queue=query.queue, before=begin, limit=most, payload="base64")
        told = await room.client.look(operations.DEAD, wanted)
        found += [DeadJob(Death.read(at), job_of(one)) for at, one in zip(told.cursors, told.jobs, strict=True)]
        begin = told.next
        if begin is None:
            break
    return found


async def position(room: Room, query: queries.GetPosition) -> Place | None:
    """Return what stands between a job and its claim; the path of the operation names the job."""
    try:
        return place_of(await room.client.look(operations.PLACE, Nothing(), job_id=query.job_id))
    except JobNotFound:
        return None


async def timings(room: Room, query: queries.GetTimings) -> list[TimingCount]:
    """Return how long attempts took, in halves of the time where one reply would be too large."""
    half = (query.until - query.since) / 2
    try:
        return await room.client.execute(query)
    except StoreUnavailable as error:
        if half < SHORTEST or not isinstance(error.__cause__, ReplyTooLarge):
            raise
    earlier = await timings(room, replace(query, until=query.since + half))
    return earlier + await timings(room, replace(query, since=query.since + half))


async def kv_scan(room: Room, query: queries.ScanKv) -> list[tuple[bytes, bytes]]:
    """Return the caller's own values by prefix."""
    found: list[tuple[bytes, bytes]] = []
    after = query.after
    while len(found) < query.limit:
        most = min(query.limit - len(found), MOST_JOBS)
        page = await _kv_scan(room.client, replace(query, after=after, limit=most))
        found += page
        if len(page) < most:
            break
        after = found[-1][0]
    return found


async def _kv_scan(client: OperationClient, query: queries.ScanKv) -> list[tuple[bytes, bytes]]:
    """Return a page of values, in halves where one reply would be too large."""
    try:
        return await client.execute(query)
    except StoreUnavailable as error:
        if query.limit == 1 or not isinstance(error.__cause__, ReplyTooLarge):
            raise
    half = query.limit // 2
    first = await _kv_scan(client, replace(query, limit=half))
    if len(first) < half:
        return first
    return [*first, *await _kv_scan(client, replace(query, after=first[-1][0], limit=query.limit - half))]


async def check(room: Room, query: queries.CheckStore) -> list[Finding]:
    """Check the store that is served, and whether its news arrives."""
    found = await room.client.execute(query)
    return found if room.hub.silent else [*found, _news(arrives=room.listener.connected)]


def _news(*, arrives: bool) -> Finding:
    if arrives:
        return Finding("news over HTTP", "ok", "new jobs are heard of at once")
    message = "news is not heard: everybody looks each second"
    return Finding("news over HTTP", "warning", message, "look at the log of `windlass serve`")


QUERIES: Final = table_of(
    queries.GetJobs.by_coroutine(get),
    queries.ListJobs.by_coroutine(jobs),
    queries.ListNewestJobs.by_coroutine(newest),
    queries.ListDeadJobs.by_coroutine(dead),
    queries.GetPosition.by_coroutine(position),
    queries.GetTimings.by_coroutine(timings),
    queries.ScanKv.by_coroutine(kv_scan),
    queries.CheckStore.by_coroutine(check),
)
"""The function that executes each query for which one request is not enough."""
