"""Queries where every queue has a hash tag of its own: each queue is of one moment, not all of them together."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from operator import itemgetter
from typing import Any, Final, TypeVar, cast

from windlass.core import queries
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import DeadJob, Glance, JobPage, Place
from windlass.core.queue_settings import StoredSettings
from windlass.core.schedule import DueSchedules, ScheduleList
from windlass.core.stats import KindStats, MinuteCounts, QueueStats
from windlass.core.store_calls import Part, Query, table_of
from windlass.kit.moves.looking import STRANDED_MOST
from windlass.stores.redis import keyspace
from windlass.stores.redis.failures import Failures
from windlass.stores.redis.queues import Queues

T = TypeVar("T")
R = TypeVar("R")


async def _ask_each(
    queues: Queues,
    query: Query[R],
    *,
    is_enough: Callable[[list[R]], bool] = lambda _: False,
    in_round: bool = True,
) -> list[R]:
    """Ask each queue that a query touches; return the replies in the order of the queues.

    The error of a queue that is not available is raised, unless the replies of the others are enough. In a round one
    of several queues that does not answer is given up soon.
    """
    names = await _names_of(queues, query)
    in_round = in_round and len(names) > 1
    failures = Failures()
    replies = await failures.gather(
        [keyspace.ask(queues.caller(name, in_round=in_round), _part_of(query, name)) for name in names]
    )
    failures.throw_unless(is_enough(replies))
    return replies


async def _names_of(queues: Queues, query: Query[Any]) -> Sequence[str]:
    """Return the queues that a query touches: those that it names, or all."""
    named = query.touches.names(query) if query.touches.part is Part.QUEUES else None
    if named is None:
        return await queues.names()
    return [named] if isinstance(named, str) else cast("Sequence[str]", named)


def _part_of(query: Query[R], name: str) -> Query[R]:
    """Return the part of a query that one queue answers."""
    match query.touches.field:
        case "queue":
            return cast("Query[R]", replace(cast("Any", query), queue=name))
        case "queues":
            return cast("Query[R]", replace(cast("Any", query), queues=[name]))
        case _:
            return query


def _chained(replies: Sequence[list[T]]) -> list[T]:
    return [*chain.from_iterable(replies)]


def _first_of_each(replies: Sequence[Sequence[T | None]]) -> list[T | None]:
    """Return at each place what the first queue has there that has something."""
    return [next((one for one in found if one is not None), None) for found in zip(*replies, strict=True)]


def _first_by_key(replies: Sequence[dict[JobId, T]]) -> dict[JobId, T]:
    """Return for each key what the first queue has for it."""
    return {key: value for found in reversed(replies) for key, value in found.items()}


async def get(queues: Queues, query: queries.GetJobs) -> list[Job | None]:
    """Return jobs with history and log; one that was not found may be in a queue that does not answer."""

    def has_all(replies: Sequence[list[Job | None]]) -> bool:
        return bool(replies) and None not in _first_of_each(replies)

    replies = await _ask_each(queues, query, is_enough=has_all)
    return _first_of_each(replies) or [None for _ in query.ids]


async def glance(queues: Queues, query: queries.GetGlances) -> dict[JobId, Glance]:
    """Return where jobs stand; one that was not found may be in a queue that does not answer."""

    def has_all(replies: Sequence[dict[JobId, Glance]]) -> bool:
        return _first_by_key(replies).keys() >= set(query.ids)

    return _first_by_key(await _ask_each(queues, query, is_enough=has_all))


async def jobs(queues: Queues, query: queries.ListJobs) -> list[Job]:
    """Return a page of jobs; those of two queues stand nearly in the order of their enqueue."""
    found = _chained(await _ask_each(queues, query, in_round=False))
    return sorted(found, key=itemgetter(0))[: query.limit]


async def dead(queues: Queues, query: queries.ListDeadJobs) -> list[DeadJob]:
    """Return a page of the dead jobs, the last to die first."""
    found = _chained(await _ask_each(queues, query, in_round=False))
    return sorted(found, key=itemgetter(0), reverse=True)[: query.limit]


async def due_in(queues: Queues, query: queries.GetDueTime) -> timedelta | None:
    """Return how long it is until the next scheduled job comes due, of those queues that answer."""
    found = await _ask_each(queues, query, is_enough=bool)
    return min((time for time in found if time is not None), default=None)


async def stats(queues: Queues, query: queries.GetStats) -> list[QueueStats]:
    """Count by state."""
    return _chained(await _ask_each(queues, query))


async def queue_settings(queues: Queues, query: queries.GetQueueSettings) -> dict[str, StoredSettings]:
    """Return the settings of those of the queues that have any, of those that answer."""
    found = await _ask_each(queues, query, is_enough=bool)
    return {queue: settings for part in found for queue, settings in part.items()}


async def waiting(queues: Queues, query: queries.CountWaiting) -> list[KindStats]:
    """Count the pending jobs by queue and kind."""
    return sorted(_chained(await _ask_each(queues, query)))


async def minutes(queues: Queues, query: queries.GetMinutes) -> list[MinuteCounts]:
    """Return the counts of each minute."""
    return sorted(_chained(await _ask_each(queues, query)))


async def newest(queues: Queues, query: queries.ListNewestJobs) -> JobPage:
    """Return a page of jobs, the newest first; each queue is looked at as far back as the others."""
    names = await _names_of(queues, query)
    part = replace(query, most=max(query.most // max(len(names), 1), 1))
    pages = await asyncio.gather(*[keyspace.ask(queues.caller(name), part) for name in names])
    horizon = max((page.next for page in pages if page.next is not None), default=None)
    found = sorted((job for page in pages for job in page.jobs), key=itemgetter(0), reverse=True)
    # beyond it a queue may have jobs that were not looked at
    seen = [job for job in found if horizon is None or job.seq >= horizon]
    if len(seen) <= query.limit:
        return JobPage(seen, horizon)
    return JobPage(seen[: query.limit], seen[query.limit - 1].seq)


async def position(queues: Queues, query: queries.GetPosition) -> Place | None:
    """Return what stands between a job and its claim."""
    at = (await queues.places_of([query.job_id])).get(query.job_id)
    return None if at is None else await keyspace.ask(queues.caller(at), query)


async def schedules(queues: Queues, query: queries.ListSchedules) -> ScheduleList:
    """Return schedules, and the store's time."""
    now = await _now(queues)

    def has_all(replies: Sequence[ScheduleList]) -> bool:
        found = {schedule.id for part in replies for schedule in part.schedules}
        return query.ids is not None and found >= set(query.ids)

    found = await _ask_each(queues, query, is_enough=has_all)
    return ScheduleList(now, sorted(_chained([part.schedules for part in found]), key=lambda schedule: schedule.id))


async def due_schedules(queues: Queues, query: queries.ListDueSchedules) -> DueSchedules:
    """Return what is due, in those queues that answer: schedules of the others must not keep these waiting."""
    now = await _now(queues)
    found = await _ask_each(queues, query, is_enough=bool)
    due = [(schedule.next_run_at or now, schedule.id, schedule) for part in found for schedule in part.due]
    due.sort(key=lambda one: one[:2])
    ahead = [part.next_run_at for part in found if part.next_run_at is not None] + [
        one[0] for one in due[query.limit :]
    ]
    return DueSchedules(now, [schedule for _, _, schedule in due[: query.limit]], min(ahead, default=None))


async def stranded(queues: Queues, query: queries.CountStranded) -> int:
    """Count the leases that ran out while no server is live."""
    now = await _now(queues)
    if any(server.seen_at > now - query.dead_after for server in await queues.home.ask(queries.ListServers())):
        return 0
    return min(sum(await _ask_each(queues, query)), STRANDED_MOST)


async def _now(queues: Queues) -> datetime:
    """Return the store's time."""
    return (await queues.home.ask(queries.ListSchedules([]))).now


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
    queries.CountWaiting.by_coroutine(waiting),
    queries.GetMinutes.by_coroutine(minutes),
    queries.ListSchedules.by_coroutine(schedules),
    queries.ListDueSchedules.by_coroutine(due_schedules),
    queries.CountStranded.by_coroutine(stranded),
)
"""The coroutine function that executes a query which touches several queues."""
