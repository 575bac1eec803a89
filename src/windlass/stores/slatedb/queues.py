"""One queue: where its jobs stand, and what it counts."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from windlass.core.queue_settings import SettingsRow
from windlass.core.states import ENDS, State
from windlass.core.topics import queue_topic
from windlass.kit.moves.record import Record
from windlass.stores.slatedb import keys
from windlass.stores.slatedb.records import KeptSettings, QueueRecord

if TYPE_CHECKING:
    from windlass.stores.slatedb.table import Table


class Queue:
    """A queue as its owner has it in memory: the counts, whatever the number of jobs.

    `lines` counts the pending jobs by kind, `standing` all jobs by state. `touch` is told of every change.
    """

    __slots__ = ("_table", "_touch", "lines", "name", "paused", "settings", "standing", "topic", "totals")

    def __init__(self, table: "Table", name: str, kept: QueueRecord, touch: Callable[["Queue"], None]) -> None:
        self._table = table
        self._touch = touch
        self.name = name
        self.topic = queue_topic(name)
        self.settings = kept.settings
        self.paused = kept.paused
        self.lines = dict(kept.lines)
        self.standing = {
            State.SCHEDULED: kept.scheduled,
            State.PENDING: kept.pending,
            State.RUNNING: kept.running,
            State.SUCCEEDED: kept.succeeded,
            State.DEAD: kept.dead,
            State.CANCELLED: kept.cancelled,
        }
        self.totals = list(kept.totals)

    def kept(self) -> QueueRecord:
        """Return the queue as the database keeps it."""
        standing = self.standing
        return QueueRecord(
            self.paused,
            standing[State.SCHEDULED],
            standing[State.RUNNING],
            standing[State.SUCCEEDED],
            standing[State.DEAD],
            standing[State.CANCELLED],
            list(self.lines.items()),
            self.totals,
            [(index, begin) for index in self.indexes() if (begin := self._table.begin_of(index)) is not None],
            KeptSettings(str(self.settings.declared), str(self.settings.override), self.settings.revision),
        )

    def indexes(self) -> Iterator[bytes]:
        """Give the indexes that have any job of this queue."""
        for kind in self.lines:
            yield keys.line(self.name, kind)
        for state, index in ((State.SCHEDULED, keys.due), (State.RUNNING, keys.leases)):
            if self.standing[state]:
                yield index(self.name)
        for state in ENDS:
            if self.standing[state]:
                yield keys.ends(self.name, state)

    def set_settings(self, settings: SettingsRow) -> None:
        """Keep other settings, which each claim reads."""
        self.settings = settings
        self.paused = settings.settings.paused is True
        self._touch(self)

    def join(self, record: Record) -> None:
        """Let a new job, which is pending, wait in its line."""
        self._stand(record)

    def place(self, record: Record, state: State) -> None:
        """Let a job stand where jobs of `state` stand, at the time that counts there."""
        self.leave(record)
        record.state = state
        self._stand(record)

    def leave(self, record: Record) -> None:
        """Let a job stand nowhere."""
        if not self._table.leave_place(record):
            return
        self.standing[record.state] -= 1
        if record.state is State.PENDING:
            left = self.lines[record.kind] - 1
            if left:
                self.lines[record.kind] = left
            else:
                del self.lines[record.kind]
        self._touch(self)

    def count(self, what: int, kind: str | None, now: datetime) -> None:
        """Count what happened, in all and in the minute of `now`."""
        self.totals[what] += 1
        self._table.minutes.row(self.name, kind, now)[what] += 1
        self._touch(self)

    def _stand(self, record: Record) -> None:
        index = index_of(record)
        self._table.take_place(record, index, index + place_of(record), first=not self._has(record))
        self.standing[record.state] += 1
        if record.state is State.PENDING:
            self.lines[record.kind] = self.lines.get(record.kind, 0) + 1
        self._touch(self)

    def _has(self, record: Record) -> bool:
        """Whether the index that a job is about to join has any other."""
        if record.state is State.PENDING:
            return record.kind in self.lines
        return self.standing[record.state] > 0


def index_of(record: Record) -> bytes:
    """Return the index that a job stands in, as what its keys begin with."""
    match record.state:
        case State.PENDING:
            return keys.line(record.queue, record.kind)
        case State.SCHEDULED:
            return keys.due(record.queue)
        case State.RUNNING:
            return keys.leases(record.queue)
        case _:
            return keys.ends(record.queue, record.state)


def place_of(record: Record) -> bytes:
    """Return the place of a job within its index."""
    match record.state:
        case State.PENDING:
            return keys.line_place(record.priority, record.run_at, record.seq, record.id)
        case State.SCHEDULED:
            return keys.place(record.run_at, record.seq, record.id)
        case State.RUNNING:
            return keys.place(record.lease_expires_at or record.run_at, record.seq, record.id)
        case _:
            return keys.place(record.finished_at or record.run_at, record.seq, record.id)
