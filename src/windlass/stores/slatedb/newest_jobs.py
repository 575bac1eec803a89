"""Pages of jobs that match a filter, the newest first, and of dead jobs, the last to die first."""

from collections.abc import Sequence
from typing import Final, Protocol

from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import DeadJob, Death, JobPage
from windlass.core.queries import ListDeadJobs, ListNewestJobs
from windlass.core.states import State
from windlass.stores.slatedb import keys
from windlass.stores.slatedb.job_pages import indexes_of, matching
from windlass.stores.slatedb.queue_looks import read_queues
from windlass.stores.slatedb.ranges import PAGE, rows_of
from windlass.stores.slatedb.view import ReadState, View

_PAST_ALL: Final = 2**63
"""A sequence number that no job has."""


async def newest(state: ReadState, query: ListNewestJobs) -> JobPage:
    """Return a page of the jobs that match, the newest first; up to `most` jobs are looked at.

    Where queue or state are given, and no more jobs than that could match, the indexes lead to all of them.
    """
    view, chosen, limit, most = state.view, query.chosen, query.limit, query.most
    indexes = await indexes_of(view, chosen)
    if indexes is not None and not indexes.members:
        return JobPage([], None)
    end = _PAST_ALL if query.before is None else min(max(query.before, 0), _PAST_ALL)
    source: _Source = _Order(view, end)
    if indexes is not None and indexes.members <= most:
        source = _Listed(view, indexes.prefixes, end)
    found: list[Job] = []
    looked_at, size = 0, min(limit, PAGE)
    while len(found) < limit and looked_at < most:
        turns = await source.take(min(size, most - looked_at))
        if not turns:
            return JobPage(found, None)
        found += await matching(view, [keys.id_of(turn) for turn in turns], chosen, limit - len(found))
        looked_at += len(turns)
        end = keys.seq_of(turns[-1])
        size = min(2 * size, PAGE)
    # of the last ones that were looked at, those behind the end of the page come again
    return JobPage(found, found[-1].seq if found and len(found) >= limit else end)


async def dead(state: ReadState, query: ListDeadJobs) -> list[DeadJob]:
    """Return a page of the dead jobs, the last to die first; of each queue only as many are read as are wanted."""
    view, before, limit = state.view, query.before, query.limit
    queues = [name for name, kept in await read_queues(view) if kept.dead and query.queue in {None, name}]
    found: list[DeadJob] = []
    while len(found) < limit:
        size = min(limit - len(found), PAGE)
        last = await _last_deaths(view, queues, before, size)
        # a reader follows the owner: one that stands in the index may have gone since
        jobs = {job.id: job for job in await matching(view, list(last), JobFilter(state=State.DEAD), size)}
        found += [DeadJob(death, jobs[job_id]) for job_id, death in last.items() if job_id in jobs]
        if len(last) < size:
            break
        before = min(last.values())
    return found


async def _last_deaths(view: View, queues: Sequence[str], before: Death | None, size: int) -> dict[JobId, Death]:
    """Return the dead jobs of these queues before a position, the last to die first."""
    found: list[tuple[Death, JobId]] = []
    for queue in queues:
        index = keys.ends(queue, State.DEAD)
        end = keys.after(index) if before is None else keys.before_death(index, before)
        rows = await view.scan(index, end, limit=size, reverse=True)
        found += [(keys.death_of(key), keys.id_of(key)) for key, _ in rows]
    return {job_id: death for death, job_id in sorted(found, reverse=True)[:size]}


class _Source(Protocol):
    """Where turns come from: sequence number and id, the newest first."""

    async def take(self, count: int) -> list[bytes]:
        """Return the next turns, up to `count`; none when there are no more."""
        ...


class _Order:
    """All jobs before the sequence number `end`."""

    def __init__(self, view: View, end: int) -> None:
        self._view = view
        self._end = keys.order(end)

    async def take(self, count: int) -> list[bytes]:
        rows = await self._view.scan(keys.ORDER, self._end, limit=count, reverse=True)
        if rows:
            self._end = rows[-1][0]
        return [key[len(keys.ORDER) :] + value for key, value in rows]


class _Listed:
    """The jobs of some indexes, few enough to be read whole, before the sequence number `end`."""

    def __init__(self, view: View, prefixes: Sequence[bytes], end: int) -> None:
        self._view = view
        self._prefixes = prefixes
        self._end = keys.number(end)
        self._turns: list[bytes] | None = None

    async def take(self, count: int) -> list[bytes]:
        if self._turns is None:
            rows = [row for prefix in self._prefixes for row in await rows_of(self._view, prefix)]
            self._turns = sorted(turn for key, _ in rows if (turn := keys.turn_of(key)) < self._end)
        taken = self._turns[: -count - 1 : -1]
        del self._turns[-count:]
        return taken
