"""Queries of the newest jobs: by an index where one leads to what is chosen, else by a walk back that has an end.

The dead jobs, the last to die first: by the index that the pruner reads.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from windlass.core.filters import JobFilter
from windlass.core.looks import NO_TIME, DeadJob, Death, JobPage
from windlass.core.queries import ListDeadJobs, ListNewestJobs
from windlass.core.states import State
from windlass.core.store_calls import table_of
from windlass.stores.postgres.queries import conditions
from windlass.stores.postgres.rows import JobRow, job_of, plain_text
from windlass.stores.postgres.work import COLUMN, Changes, Rows, Statement, Work

PAST_ALL: Final = 2**63 - 1
MANY: Final = 2**31 - 2
"""What the statements can be asked for, and one more."""
DEARER: Final = 4
"""How many records of a walk cost as much as one that an index leads to, somewhere in the table."""
FEW: Final = 1_000
"""Records that are looked at first: mostly they fill a page."""
OF: Final = {
    "parent_id": "newest_of_parent",
    "unique_key": "newest_of_key",
    "error_type": "newest_of_error",
    "tenant": "newest_of_tenant",
}
"""The fields that have an index of their own: what mostly has the fewest jobs comes first."""
UNSORTED: Final = (State.PENDING, State.RUNNING)
"""The states whose jobs are not in the index of kinds."""


class _Index(NamedTuple):
    """A statement that goes back through the jobs that have something in a field, and what that is."""

    statement: str
    value: str


class _Line(NamedTuple):
    """The records of a queue in one state."""

    queue: str
    state: State
    records: int


def newest(changes: Changes, query: ListNewestJobs) -> Work[JobPage]:
    """Return up to `limit` jobs before the number `before`, having looked at about `most`."""
    del changes
    chosen, before = query.chosen, query.before
    limit, most = min(query.limit, MANY), max(1, min(query.most, MANY))
    index = _index(chosen)
    if index is not None:
        page = yield from _by_index(index, chosen, before, limit, min(most, FEW))
        if len(page.jobs) == limit or page.next is None:
            return page
    few = yield from _by_lines(chosen, before, limit, most)
    if few is not None:
        return few
    if index is not None:
        return (yield from _by_index(index, chosen, before, limit, most))
    if chosen.kind is not None:
        page = yield from _walk(chosen, before, limit, min(most, FEW))
        if len(page.jobs) == limit or page.next is None:
            return page
        known = yield from _by_kind(chosen.kind, chosen, before, limit, most)
        if known is not None:
            return known
    return (yield from _walk(chosen, before, limit, most))


def dead(changes: Changes, query: ListDeadJobs) -> Work[list[DeadJob]]:
    """Return up to `limit` dead jobs before a place, the last to die first."""
    del changes
    before, limit = query.before or Death(PAST_ALL, PAST_ALL), min(query.limit, MANY)
    queues = [line.queue for line in (yield from _lines(JobFilter(queue=query.queue, state=State.DEAD)))]
    rows = yield Statement("deaths", {"queues": queues, "at": before.at, "before": before.seq, "limit": limit})
    found = [_dead_job(at, row) for at, *row in rows]
    if len(found) < limit:
        # they come last, so they cost nothing before the last page
        past = before.seq if before.at == NO_TIME else PAST_ALL
        rows = yield Statement("deaths_without_time", {"queues": queues, "before": past, "limit": limit - len(found)})
        found += [_dead_job(NO_TIME, row) for row in rows]
    return found


def _dead_job(at: int, row: Sequence[Any]) -> DeadJob:
    found = JobRow(*row)
    return DeadJob(Death(at, found.seq), job_of(found))


def _index(chosen: JobFilter) -> _Index | None:
    """Return the index that leads to the fewest jobs among which are those that are chosen."""
    for field, statement in OF.items():
        if (value := getattr(chosen, field)) is not None:
            return _Index(statement, plain_text(value))
    return None


def _by_index(index: _Index, chosen: JobFilter, before: int | None, limit: int, most: int) -> Work[JobPage]:
    """Look at the newest `most` jobs that the index leads to, or at as many as are wanted; fewer are all there are."""
    first = PAST_ALL if before is None else before
    looked = max(most, limit + 1)
    seqs = yield from _seqs(index.statement, index.value, first, looked)
    return (yield from _these(seqs, chosen, before, limit, looked))


def _by_kind(kind: str, chosen: JobFilter, before: int | None, limit: int, most: int) -> Work[JobPage | None]:
    """Look at the newest of a kind as by an index; None where those that are pending or run are too many to be known.

    Its index has all others. These are in no order, so all of them are found, and then put between.
    """
    unsorted = yield from _unsorted(kind, chosen, most)
    if unsorted is None:
        return None
    first = PAST_ALL if before is None else before
    looked = max(most, limit + 1)
    seqs = [seq for seq in unsorted if seq < first]
    if chosen.state not in UNSORTED:
        seqs += yield from _seqs("newest_of_kind", plain_text(kind), first, looked)
    return (yield from _these(sorted(seqs, reverse=True)[:looked], chosen, before, limit, looked))


def _unsorted(kind: str, chosen: JobFilter, most: int) -> Work[list[int] | None]:
    """Return all jobs of a kind that are pending or run, in no order; None where that is a look at more than `most`."""
    lines = [line for line in (yield from _lines(chosen)) if line.state in UNSORTED]
    # pending ones have an index by kind; those that run are looked at whatever their kind is
    if sum(line.records for line in lines if line.state is State.RUNNING) > most:
        return None
    queues, states = [line.queue for line in lines], [str(line.state) for line in lines]
    parameters = {"kind": plain_text(kind), "queues": queues, "states": states, "limit": most + 1}
    rows = yield Statement("newest_pending_or_running", parameters)
    return [seq for (seq,) in rows] if len(rows) <= most else None


def _seqs(statement: str, value: str, before: int, limit: int) -> Work[list[int]]:
    return [seq for (seq,) in (yield Statement(statement, {"value": value, "before": before, "limit": limit}))]


def _these(seqs: Sequence[int], chosen: JobFilter, before: int | None, limit: int, looked: int) -> Work[JobPage]:
    """Look at jobs that were found, the newest first; fewer than `looked` are all there are."""
    rows = yield Statement("newest_these", {"seqs": seqs, "limit": limit + 1, **conditions(chosen)})
    return _page(rows, limit, before, seqs[-1] if len(seqs) == looked else None)


def _by_lines(chosen: JobFilter, before: int | None, limit: int, most: int) -> Work[JobPage | None]:
    """Look at all jobs of the queue and the state that are chosen; None where these are too many, or neither is."""
    if chosen.queue is None and chosen.state is None:
        return None
    first = PAST_ALL if before is None else before
    lines = yield from _lines(chosen)
    if chosen == JobFilter(queue=chosen.queue, state=State.DEAD):
        queues = [line.queue for line in lines]
        rows = yield Statement("newest_dead", {"before": first, "queues": queues, "limit": limit + 1})
        return _page(rows, limit, before, None)
    if sum(line.records for line in lines) <= _most_by_index(chosen, most):
        return _page((yield _counted(chosen, lines, first, limit, most)), limit, before, None)
    return None


def _walk(chosen: JobFilter, before: int | None, limit: int, most: int) -> Work[JobPage]:
    """Look at the newest `most` jobs of all."""
    first = PAST_ALL if before is None else before
    rows = yield Statement("newest", {"before": first, "most": most, "limit": limit + 1, **conditions(chosen)})
    if len(rows) > limit:
        return _page(rows, limit, before, None)
    end = yield Statement("newest_end", {"before": first, "most": most})
    return _page(rows, limit, before, end[0][0] if end else None)


def _lines(chosen: JobFilter) -> Work[list[_Line]]:
    """Return what there is of what may be chosen, by queue and state."""
    rows = yield Statement("records", {"queue": chosen.queue})
    states = list(State) if chosen.state is None else [State(chosen.state)]
    found = [_Line(queue, state, counts[COLUMN[state]]) for queue, *counts in rows for state in states]
    return [line for line in found if line.records > 0]


def _most_by_index(chosen: JobFilter, most: int) -> int:
    # those that run are few at any time, and are looked at in all queues
    return most if chosen.state is State.RUNNING else most // DEARER


def _counted(chosen: JobFilter, lines: Sequence[_Line], first: int, limit: int, most: int) -> Statement:
    queues, states = [line.queue for line in lines], [str(line.state) for line in lines]
    parameters = {"before": first, "queues": queues, "states": states, "limit": limit + 1, "most": most}
    return Statement("newest_counted", {**parameters, **conditions(chosen)})


def _page(rows: Rows, limit: int, before: int | None, end: int | None) -> JobPage:
    """Return a page of the first `limit` rows; when there are more, the next one begins behind them, else at `end`."""
    jobs = [job_of(JobRow(*row)) for row in rows[:limit]]
    if len(rows) > limit:
        return JobPage(jobs, jobs[-1].seq if jobs else before)
    return JobPage(jobs, end)


SNAPSHOT_READS: Final = table_of(
    ListNewestJobs.by_generator(newest),
    ListDeadJobs.by_generator(dead),
)
"""The generator function that executes each query in a read transaction."""
