"""One write transaction under way: its moment, its counts, its news."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from windlass.core.duration import to_micros
from windlass.core.states import State
from windlass.core.stats import Totals
from windlass.core.topics import Topic, queue_topic
from windlass.stores.sqlite.statements import sql

COLUMN: Final = {state: at for at, state in enumerate(State)}
"""The place of each state in `{state_columns}`."""
_TOTALS_AT: Final = len(COLUMN)
_WIDTH: Final = _TOTALS_AT + len(Totals._fields)
_MINUTE: Final = 60_000_000
_EVER: Final = 2**63 - 1
"""The minute that never ends: where the whole life of a queue is counted."""
_WHOLE_STORE: Final = ""
"""No queue has this name: its row counts the enqueues of all, which are numbered by it."""
_NO_STATES: Final = (0,) * len(COLUMN)
ENQUEUED, SUCCEEDED, DEAD, CANCELLED, RETRIED, RESCUED = range(len(Totals._fields))


class Mark(NamedTuple):
    """The counts and news at one moment, to go back to."""

    counts: dict[str, list[int]]
    minutes: dict[tuple[str, str], list[int]]
    topics: set[Topic]


class Transaction:
    """Writes on one connection, inside one transaction that somebody else begins and commits.

    Counts are gathered here and written once, by `flush`, however many jobs moved.
    """

    __slots__ = ("_counts", "_last", "_left", "_minutes", "careful", "cursor", "execute", "moment", "now", "topics")

    def __init__(self, connection: sqlite3.Connection, moment: datetime, *, careful: bool = False) -> None:
        """Write through `connection` at the time `moment`.

        A `careful` transaction makes anew what has met a damaged record, with a connection that reads any text.
        """
        self.careful = careful
        cursor = connection.cursor()
        cursor.row_factory = None
        self.cursor = cursor
        self.execute = cursor.execute
        self.moment = moment
        self.now = to_micros(moment)
        self.topics: set[Topic] = set()
        self._counts: dict[str, list[int]] = {}
        self._minutes: dict[tuple[str, str], list[int]] = {}
        self._last: int | None = None
        self._left = False

    def row(self, name: str, parameters: Sequence[object] | Mapping[str, object]) -> Any:  # noqa: ANN401 - a row's types are its statement's
        """Run a statement and return its first row, or None; a RETURNING statement is run to its end."""
        rows = self.execute(sql(name), parameters).fetchall()
        return rows[0] if rows else None

    def run(self, name: str, parameters: Sequence[object] | Mapping[str, object]) -> int:
        """Run a statement and return how many rows it changed."""
        return self.execute(sql(name), parameters).rowcount

    def reserve(self, count: int) -> int:
        """Return the first of `count` sequence numbers that no other job has."""
        counts = self._counts_of(_WHOLE_STORE)
        counts[_TOTALS_AT + ENQUEUED] += count
        return self._last_seq() + counts[_TOTALS_AT + ENQUEUED] - count + 1

    def takes_jobs(self) -> bool:
        """Whether anything new may begin here: not in a store that is left for another one."""
        self._last_seq()
        return not self._left

    def set_taking(self, *, takes: bool) -> None:
        """Let new things begin here, or no more."""
        self.run("pause", {"queue": _WHOLE_STORE, "paused": int(not takes)})
        self._last = None

    def moved(self, queue: str, old: State | None, new: State | None, count: int = 1) -> None:
        """Count `count` jobs of `queue` from `old` (None: they are new) to `new` (None: they are gone).

        A job whose queue does not read is not counted: its count is not known.
        """
        if queue.__class__ is not str:
            return
        counts = self._counts_of(queue)
        if old is not None:
            counts[COLUMN[old]] -= count
        if new is not None:
            counts[COLUMN[new]] += count

    def happened(self, queue: str, kind: str | None, what: int, count: int = 1) -> None:
        """Add to the totals of `queue` and of this minute, unless the queue does not read."""
        if queue.__class__ is not str:
            return
        self._counts_of(queue)[_TOTALS_AT + what] += count
        key = (queue, kind or "")
        minute = self._minutes.get(key)
        if minute is None:
            minute = self._minutes[key] = [0] * len(Totals._fields)
        minute[what] += count

    def ready(self, queue: str) -> None:
        """Let waiters on `queue` look again once this is committed."""
        if queue.__class__ is str:
            self.topics.add(queue_topic(queue))

    def news(self, topics: Iterable[Topic]) -> None:
        """Let whoever listens to `topics` look again once this is committed."""
        self.topics.update(topics)

    def mark(self) -> Mark:
        """Set a savepoint that `back_to` returns to."""
        self.execute("savepoint windlass_mark")
        return Mark(
            {queue: counts.copy() for queue, counts in self._counts.items()},
            {key: counts.copy() for key, counts in self._minutes.items()},
            self.topics.copy(),
        )

    def back_to(self, mark: Mark) -> None:
        """Undo all since `mark`."""
        self.execute("rollback to windlass_mark")
        self._counts, self._minutes, self.topics = mark

    def accept(self) -> None:
        """Keep all since the last mark."""
        self.execute("release windlass_mark")

    def flush(self) -> None:
        """Write the counts; the last step before the commit."""
        if not self._counts:
            return
        minute = self.now - self.now % _MINUTE
        rows = [(_EVER, queue, "", *counts) for queue, counts in self._counts.items()]
        rows += [(minute, queue, kind, *_NO_STATES, *counts) for (queue, kind), counts in self._minutes.items()]
        self.cursor.executemany(sql("count"), rows)
        self._counts.clear()
        self._minutes.clear()
        self._last = None

    def close(self) -> None:
        """Let go of the connection: an error that somebody keeps must not keep it open."""
        self.cursor.close()

    def _last_seq(self) -> int:
        """Return the last sequence number before this transaction; looked up once, with whether the store is left."""
        if self._last is not None:
            return self._last
        last, left = self.row("whole_store", ())
        self._last, self._left = int(last), bool(left)
        return self._last

    def _counts_of(self, queue: str) -> list[int]:
        counts = self._counts.get(queue)
        if counts is None:
            counts = self._counts[queue] = [0] * _WIDTH
        return counts
