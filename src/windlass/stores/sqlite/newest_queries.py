"""The newest jobs first, or the last to die, at a cost that does not grow with the number of jobs.

Mostly the last thousand records fill a page, of all jobs or of those that the index of a field leads to. Else sequence
numbers come first: by the indexes of the queue and state that are chosen, where these lead to few enough, or further
back the same way; and then those records are looked at, some hundred at a time, until the page is full. On a disk that
is slow, or that has to be read first, it ends sooner.
"""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from windlass.core.filters import JobFilter
from windlass.core.job import Job
from windlass.core.looks import NO_TIME, DeadJob, Death, JobPage
from windlass.core.queries import ListDeadJobs, ListNewestJobs
from windlass.core.states import State
from windlass.core.store_calls import table_of
from windlass.stores.sqlite.queries import filter_values
from windlass.stores.sqlite.reader import Snapshot
from windlass.stores.sqlite.rows import LAST_INTEGER, JobRow, job_of, json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import COLUMN

_CHUNK: Final = 250
_FIRST: Final = 1_000
_ENOUGH: Final = 0.15
"""Seconds: what was not found by then is left to the next look."""
_PAST_ALL: Final = 2.0**64
"""Past every sequence number, also past one that is damaged."""
_BY: Final = {
    State.SCHEDULED: "newest_scheduled",
    State.PENDING: "newest_pending",
    State.RUNNING: "newest_running",
    State.SUCCEEDED: "newest_ended",
    State.DEAD: "newest_dead",
    State.CANCELLED: "newest_ended",
}


class _Way(NamedTuple):
    """A statement that goes back from a sequence number, and what it goes by."""

    statement: str
    by: dict[str, str]


_ALL: Final = _Way("newest_seqs", {})
_OF: Final = {
    "parent_id": "newest_of_parent",
    "unique_key": "newest_of_key",
    "error_type": "newest_of_error",
    "tenant": "newest_of_tenant",
    "kind": "newest_of_kind",
}
"""The fields that have an index of their own: what mostly has the fewest jobs comes first."""


_DEAD: Final = JobFilter(state=State.DEAD)
_PAST_EVERY_DEATH: Final = Death(2**63 - 1, 2**63 - 1)


class _Line(NamedTuple):
    """The jobs of a queue in one state, which an index leads to; `queue` is None for all that run."""

    queue: str | None
    state: State
    jobs: int


def newest(snapshot: Snapshot, query: ListNewestJobs) -> JobPage:
    """Return a page of jobs, the newest first; about `most` records are read for it, and no more."""
    cursor, chosen, before, limit, most = snapshot.cursor, query.chosen, query.before, query.limit, query.most
    if limit < 1:
        return JobPage([], before)
    at: float = _PAST_ALL if before is None or before > LAST_INTEGER else before
    most = min(max(most, 1), LAST_INTEGER)
    way = _way(chosen)
    if way is not _ALL:
        # an index leads to what is chosen, mostly: as many as are wanted are looked at in any case
        most = max(most, limit)
    if not _is_at_hand(chosen):
        first = min(most, _FIRST)
        page = _page(cursor, chosen, _walk(cursor, way, at, first), way, limit=limit, most=first)
        if len(page.jobs) == limit or page.next is None:
            return page
    lines = _lines(cursor, chosen, most)
    if lines is None:
        return _page(cursor, chosen, _walk(cursor, way, at, most), way, limit=limit, most=most)
    # where lines are all that is chosen there is nothing to search in them
    most = limit if _is_lines(chosen) else most
    return _page(cursor, chosen, _along(cursor, lines, at, most), _ALL, limit=limit, most=most)


def dead(snapshot: Snapshot, query: ListDeadJobs) -> list[DeadJob]:
    """Return a page of the dead jobs, the last to die first; of each queue only as many are read as are wanted."""
    cursor, limit = snapshot.cursor, query.limit
    before = query.before or _PAST_EVERY_DEATH
    queues = _with_dead(cursor, query.queue)
    deaths = _deaths(cursor, queues, before, limit)
    if len(deaths) < limit:
        deaths += _without_time(cursor, queues, before, limit - len(deaths))
    rows = {row[0]: row for row in _rows(cursor, _DEAD, [death.seq for death in deaths], limit)}
    return [DeadJob(death, job_of(JobRow(*rows[death.seq]))) for death in deaths]


def _with_dead(cursor: sqlite3.Cursor, queue: str | None) -> list[str]:
    rows = cursor.execute(sql("stats"), {"queue": queue}).fetchall()
    return [row[0] for row in rows if row[2 + COLUMN[State.DEAD]]]


def _deaths(cursor: sqlite3.Cursor, queues: Sequence[str], before: Death, limit: int) -> list[Death]:
    found: list[Death] = []
    for queue in queues:
        parameters = {"queue": queue, "at": before.at, "seq": before.seq, "limit": limit}
        found += [Death(*row) for row in cursor.execute(sql("deaths"), parameters).fetchall()]
    return sorted(found, reverse=True)[:limit]


def _without_time(cursor: sqlite3.Cursor, queues: Sequence[str], before: Death, limit: int) -> list[Death]:
    """Return those whose record has no time of death: they come last, so they cost nothing before the last page."""
    past = before.seq if before.at == NO_TIME else _PAST_EVERY_DEATH.seq
    found = [
        Death(NO_TIME, seq)
        for queue in queues
        for seq in _seqs(cursor, "deaths_without_time", queue=queue, before=past, limit=limit)
    ]
    return sorted(found, reverse=True)[:limit]


def _way(chosen: JobFilter) -> _Way:
    """Return the way back that leads by the fewest jobs."""
    for field, statement in _OF.items():
        if (value := getattr(chosen, field)) is not None:
            return _Way(statement, {field: value})
    return _ALL


def _page(
    cursor: sqlite3.Cursor, chosen: JobFilter, found: Iterator[list[int]], way: _Way, *, limit: int, most: int
) -> JobPage:
    """Look at what was found until the page is full; fewer than `most` are all there are.

    Whether there is more behind a full page is known by the `way` back.
    """
    until = time.monotonic() + _ENOUGH
    jobs: list[Job] = []
    at: int | None = None
    for seqs in found:
        jobs += _matching(cursor, chosen, seqs, limit - len(jobs))
        if len(jobs) == limit:
            at = jobs[-1].seq
            return JobPage(jobs, at if _back(cursor, way, at, 1) else None)
        at = seqs[-1]
        most -= len(seqs)
        if len(seqs) == _CHUNK and time.monotonic() >= until:
            return JobPage(jobs, at)
    return JobPage(jobs, None if most else at)


def _is_at_hand(chosen: JobFilter) -> bool:
    """Whether the end of what is chosen is found at once, whatever there is: the dead are in order, and few run."""
    return _is_lines(chosen) and chosen.state in (State.DEAD, State.RUNNING)


def _is_lines(chosen: JobFilter) -> bool:
    """Whether lines hold what is chosen and nothing else."""
    queue = None if chosen.state is State.RUNNING else chosen.queue
    return chosen.state is not None and chosen == JobFilter(queue=queue, state=chosen.state)


def _lines(cursor: sqlite3.Cursor, chosen: JobFilter, most: int) -> list[_Line] | None:
    """Return the lines that what is chosen stands in; None when a walk through `most` records costs less."""
    if chosen.queue is None and chosen.state is None:
        return None
    rows = cursor.execute(sql("stats"), {"queue": None}).fetchall()
    every = [_Line(row[0], state, row[2 + at]) for row in rows for state, at in COLUMN.items() if row[2 + at]]
    lines = [line for line in every if chosen.queue in (None, line.queue) and chosen.state in (None, line.state)]
    if any(line.state is State.RUNNING for line in lines):
        running = sum(line.jobs for line in every if line.state is State.RUNNING)
        lines = [line for line in lines if line.state is not State.RUNNING]
        lines.append(_Line(None, State.RUNNING, running))
    return lines if _is_at_hand(chosen) or sum(line.jobs for line in lines) <= most else None


def _walk(cursor: sqlite3.Cursor, way: _Way, before: float, most: int) -> Iterator[list[int]]:
    """Go back through all jobs, or through those that a field leads to."""
    while seqs := _back(cursor, way, before, min(most, _CHUNK)):
        yield seqs
        before, most = seqs[-1], most - len(seqs)


def _back(cursor: sqlite3.Cursor, way: _Way, before: float, most: int) -> list[int]:
    return _seqs(cursor, way.statement, **way.by, before=before, limit=most)


def _along(cursor: sqlite3.Cursor, lines: Sequence[_Line], before: float, most: int) -> Iterator[list[int]]:
    """Go back through some lines at once."""
    seqs: list[int] = []
    for queue, state, _ in lines:
        seqs += _seqs(cursor, _BY[state], queue=queue, state=str(state), before=before, limit=most)
    seqs = sorted(seqs, reverse=True)[:most]
    for at in range(0, len(seqs), _CHUNK):
        yield seqs[at : at + _CHUNK]


def _seqs(cursor: sqlite3.Cursor, name: str, **parameters: object) -> list[int]:
    return [row[0] for row in cursor.execute(sql(name), parameters).fetchall()]


def _matching(cursor: sqlite3.Cursor, chosen: JobFilter, seqs: Sequence[int], limit: int) -> list[Job]:
    """Return those of some jobs that match, the newest first."""
    # the sequence number stands first, and no two have the same
    return [job_of(JobRow(*row)) for row in sorted(_rows(cursor, chosen, seqs, limit), reverse=True)]


def _rows(cursor: sqlite3.Cursor, chosen: JobFilter, seqs: Sequence[int], limit: int) -> list[tuple[Any, ...]]:
    parameters = {**filter_values(chosen), "seqs": json_list(list(seqs)), "limit": limit}
    return cursor.execute(sql("newest"), parameters).fetchall()


QUERIES: Final = table_of(ListNewestJobs.by(newest), ListDeadJobs.by(dead))
"""The function that executes each query of this module."""
