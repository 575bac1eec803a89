"""All jobs of a store in memory."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import count, islice

from windlass.core.ids import JobId
from windlass.core.job import PreparedJob
from windlass.core.topics import Topic
from windlass.kit.keyspace import KeySpace
from windlass.kit.moves import table
from windlass.kit.moves.holds import Holds
from windlass.kit.moves.record import Record, new_record
from windlass.stores.memory.queues import Queue

SLACK = 1000


class Table(table.Table):
    """Everything by its name, and the jobs in the order of their enqueue."""

    def __init__(self) -> None:
        self._jobs: dict[JobId, Record] = {}
        self.queues: dict[str, Queue] = {}
        self.holds = Holds({})
        self.keyspace = KeySpace()
        self.news: set[Topic] = set()
        self._in_order: list[Record] = []
        self._next_seq = count(1)

    @property
    def jobs(self) -> Mapping[JobId, Record]:
        """The jobs by their ids."""
        return self._jobs

    def queue(self, name: str) -> Queue:
        """Return a queue, known from now on."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = Queue(name)
        return queue

    def add(self, given: PreparedJob, now: datetime, run_at: datetime) -> Record:
        """Keep a new job, which stands nowhere yet."""
        record = new_record(next(self._next_seq), given, now, run_at)
        self._jobs[given.id] = record
        self._in_order.append(record)
        return record

    def take_in(self, record: Record) -> None:
        """Keep a job that comes from another store, under a number of its own."""
        record.seq = next(self._next_seq)
        self._jobs[record.id] = record
        self._in_order.append(record)

    def remove(self, record: Record) -> None:
        """Forget a job."""
        self.queues[record.queue].leave(record)
        del self._jobs[record.id]
        if len(self._in_order) > 2 * len(self._jobs) + SLACK:
            self._in_order = list(self._jobs.values())

    def changed(self, record: Record) -> None:
        """Do nothing: the record is where it is kept."""

    def put_values(self, values: Mapping[bytes, bytes | None]) -> None:
        """Write the caller's own values; None deletes."""
        self.keyspace.put(values)

    def before(self, seq: int | None) -> Iterator[Record]:
        """Give the jobs from the newest on, those before the sequence number."""
        in_order = self._in_order
        end = len(in_order) if seq is None else bisect_left(in_order, seq, key=lambda record: record.seq)
        # by places: a copy of the list would cost as much as the look at a million jobs
        records = (in_order[at] for at in range(end - 1, -1, -1))
        return (record for record in records if self._jobs.get(record.id) is record)

    def after(self, seq: int | None) -> Iterator[Record]:
        """Give the jobs in the order of their enqueue, those past the sequence number."""
        start = 0 if seq is None else bisect_right(self._in_order, seq, key=lambda record: record.seq)
        return (record for record in islice(self._in_order, start, None) if self._jobs.get(record.id) is record)
