"""What the store keeps: jobs in a dictionary in the order of their enqueue, queues by name, and the rest in `House`."""

from collections.abc import Collection, Mapping
from datetime import datetime
from itertools import count

from windlass.core.ids import JobId
from windlass.core.job import PreparedJob
from windlass.core.queue_settings import NO_ROW
from windlass.core.states import State
from windlass.core.topics import Topic, queue_topic
from windlass.kit.house import House
from windlass.kit.keyspace import KeySpace
from windlass.kit.moves import table
from windlass.kit.moves.holds import Holds
from windlass.kit.moves.record import Record, new_record
from windlass.kit.moves.scheduling import Schedules
from windlass.kit.tally import Tally
from windlass.system import SystemRng


class Queue:
    """The settings and the counts of a queue. Its jobs are found by a look at all jobs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.topic = queue_topic(name)
        self.settings = NO_ROW
        self.tally = Tally()

    @property
    def paused(self) -> bool:
        return self.settings.settings.paused is True

    def join(self, record: Record) -> None:
        self.place(record, State.PENDING)

    def place(self, record: Record, state: State) -> None:
        record.state = state

    def count(self, what: int, kind: str | None, now: datetime) -> None:
        self.tally.count(what, kind, now)


class Table(table.Table):
    """Jobs, queues, unique keys and the caller's values."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.holds = Holds({})
        self.keyspace = KeySpace()
        self.news: set[Topic] = set()
        self._jobs: dict[JobId, Record] = {}
        self._next_seq = count(1)

    @property
    def jobs(self) -> Mapping[JobId, Record]:
        return self._jobs

    def queue(self, name: str) -> Queue:
        return self.queues.setdefault(name, Queue(name))

    def add(self, given: PreparedJob, now: datetime, run_at: datetime) -> Record:
        record = new_record(0, given, now, run_at)
        self.take_in(record)
        return record

    def take_in(self, record: Record) -> None:
        record.seq = next(self._next_seq)
        self._jobs[record.id] = record

    def remove(self, record: Record) -> None:
        del self._jobs[record.id]

    def changed(self, record: Record) -> None:
        """Do nothing: the record is where it is kept."""

    def put_values(self, values: Mapping[bytes, bytes | None]) -> None:
        self.keyspace.put(values)

    def records(self, *states: State, queues: Collection[str] | None = None) -> list[Record]:
        """Return the jobs in these states of all queues or of some, in the order of their enqueue."""
        return [
            record
            for record in self._jobs.values()
            if record.state in states and (queues is None or record.queue in queues)
        ]


class DictionaryState:
    """All that the store keeps, and the time of the step that runs."""

    def __init__(self, now: datetime) -> None:
        self.table = Table()
        self.keyspace = self.table.keyspace
        self.schedules = Schedules(self.table, {}, count(1).__next__)
        self.house = House()
        self.rng = SystemRng()
        self.now = now
