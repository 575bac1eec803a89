"""The newest jobs first: by an index where one leads to what is chosen, else by a walk back that has an end."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.core.filters import JobFilter
from windlass.core.states import State
from windlass.core.store import JobPage
from windlass.stores.postgres.looks import conditions
from windlass.stores.postgres.rows import JobRow, job_of
from windlass.stores.postgres.work import COLUMN, Rows, Statement, Work

PAST_ALL: Final = 2**63 - 1
MANY: Final = 2**31 - 2
"""What the statements can be asked for, and one more."""
DEARER: Final = 4
"""How many records of a walk cost as much as one that an index leads to, somewhere in the table."""


class _Line(NamedTuple):
    """The records of a queue in one state."""

    queue: str
    state: State
    records: int


def newest(chosen: JobFilter, before: int | None, limit: int, most: int) -> Work[JobPage]:
    """Return up to `limit` jobs before the number `before`, having looked at about `most`."""
    first = PAST_ALL if before is None else before
    limit, most = min(limit, MANY), max(1, min(most, MANY))
    if chosen.queue is not None or chosen.state is not None:
        lines = yield from _lines(chosen)
        if chosen == JobFilter(queue=chosen.queue, state=State.DEAD):
            queues = [line.queue for line in lines]
            return _page((yield Statement("newest_dead", [first, queues, limit + 1])), limit, before, None)
        if sum(line.records for line in lines) <= _most_by_index(chosen, most):
            return _page((yield _counted(chosen, lines, first, limit, most)), limit, before, None)
    rows = yield Statement("newest", [first, most, limit + 1, *conditions(chosen)])
    if len(rows) > limit:
        return _page(rows, limit, before, None)
    end = yield Statement("newest_end", [first, most])
    return _page(rows, limit, before, end[0][0] if end else None)


def _lines(chosen: JobFilter) -> Work[list[_Line]]:
    """Return what there is of what may be chosen, by queue and state."""
    rows = yield Statement("records", [chosen.queue])
    states = list(State) if chosen.state is None else [State(chosen.state)]
    found = [_Line(queue, state, counts[COLUMN[state]]) for queue, *counts in rows for state in states]
    return [line for line in found if line.records > 0]


def _most_by_index(chosen: JobFilter, most: int) -> int:
    # those that run are few at any time, and are looked at in all queues
    return most if chosen.state is State.RUNNING else most // DEARER


def _counted(chosen: JobFilter, lines: Sequence[_Line], first: int, limit: int, most: int) -> Statement:
    queues, states = [line.queue for line in lines], [str(line.state) for line in lines]
    _, kind, _, *others = conditions(chosen)
    return Statement("newest_counted", [first, queues, states, limit + 1, most, kind, *others])


def _page(rows: Rows, limit: int, before: int | None, end: int | None) -> JobPage:
    """Return a page of the first `limit` rows; when there are more, the next one begins behind them, else at `end`."""
    jobs = [job_of(JobRow(*row)) for row in rows[:limit]]
    if len(rows) > limit:
        return JobPage(jobs, jobs[-1].seq if jobs else before)
    return JobPage(jobs, end)
