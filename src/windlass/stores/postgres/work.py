"""Moves as plain steps: each asks for statements and is given rows, and knows nothing of drivers or event loops.

The same move runs on the store's own connections, on a caller's asyncpg connection and on a caller's blocking one.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from windlass.core.states import State
from windlass.core.stats import Totals
from windlass.core.topics import Topic, queue_topic

T = TypeVar("T")

Row: TypeAlias = Sequence[Any]
Rows: TypeAlias = Sequence[Row]
Parameters: TypeAlias = Mapping[str, object]
NONE: Final[Parameters] = {}


class Statement(NamedTuple):
    """One statement of `sql/<name>.sql`, and the values of its parameters by name."""

    name: str
    parameters: Parameters = NONE


class Many(NamedTuple):
    """One statement for each of many rows of values, in one trip; it gives no rows back."""

    name: str
    parameters: Sequence[Parameters]


Work: TypeAlias = Generator[Statement | Many, Rows, T]
"""A move under way: it yields what it wants to be run, is sent the rows, and returns its answer."""


def run(wanted: Statement | Many) -> Work[Rows]:
    """Run one statement, and return its rows."""
    return (yield wanted)


COLUMN: Final = {
    State.SCHEDULED: 0,
    State.PENDING: 1,
    State.RUNNING: 2,
    State.SUCCEEDED: 3,
    State.DEAD: 4,
    State.CANCELLED: 5,
}
_TOTALS_AT: Final = len(COLUMN)
_COUNTED: Final = (*map(str, COLUMN), *(f"{name}_total" for name in Totals._fields))
ENQUEUED, SUCCEEDED, DEAD, CANCELLED, RETRIED, RESCUED = range(len(Totals._fields))


@dataclass(slots=True)
class Changes:
    """What a transaction has changed: its counts and its news.

    `now` is the time by which it decides: None for the database's own clock, else what a clock says that only moves
    when told; every statement that needs the time takes it as a parameter.
    """

    now: datetime | None = None
    repeated: bool = False
    """Whether this may have been done before, by a try whose reply was lost."""
    topics: set[Topic] = field(default_factory=set[Topic])
    _counts: dict[tuple[str, str], list[int]] = field(default_factory=dict[tuple[str, str], list[int]])

    def moved(self, queue: str, old: State | None, new: State | None, count: int = 1) -> None:
        """Count `count` jobs of `queue` from `old` (None: they are new) to `new` (None: they are gone)."""
        counts = self._counts_of(queue, "")
        if old is not None:
            counts[COLUMN[old]] -= count
        if new is not None:
            counts[COLUMN[new]] += count

    def happened(self, queue: str, kind: str | None, what: int, count: int = 1) -> None:
        """Add to the totals of `queue` and of this minute."""
        self._counts_of(queue, kind or "")[_TOTALS_AT + what] += count

    def ready(self, queue: str) -> None:
        """Let waiters on `queue` look again once this is committed."""
        self.topics.add(queue_topic(queue))

    def news(self, topics: Iterable[Topic]) -> None:
        """Let whoever listens to `topics` look again once this is committed."""
        self.topics.update(topics)

    def flush(self) -> Work[None]:
        """Write the counts; the last step of a move that counted."""
        rows = [(queue, kind, counts) for (queue, kind), counts in self._counts.items() if any(counts)]
        if not rows:
            return
        self._counts.clear()
        parameters: dict[str, object] = {name: [row[2][at] for row in rows] for at, name in enumerate(_COUNTED)}
        parameters |= {"now": self.now, "queues": [row[0] for row in rows], "kinds": [row[1] for row in rows]}
        yield Statement("count", parameters)

    def mark(self) -> "Mark":
        """Remember the counts and news of this moment."""
        return Mark({key: counts.copy() for key, counts in self._counts.items()}, self.topics.copy())

    def back_to(self, mark: "Mark") -> None:
        """Forget the counts and news since `mark`."""
        self._counts = {key: counts.copy() for key, counts in mark.counts.items()}
        self.topics.clear()
        self.topics.update(mark.topics)

    def _counts_of(self, queue: str, kind: str) -> list[int]:
        counts = self._counts.get((queue, kind))
        if counts is None:
            counts = self._counts[queue, kind] = [0] * len(_COUNTED)
        return counts


class Mark(NamedTuple):
    """Counts and news at one moment, to go back to."""

    counts: Mapping[tuple[str, str], list[int]]
    topics: set[Topic]
