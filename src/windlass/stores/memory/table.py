"""All jobs of a store, and the steps that its moves are made of."""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime
from itertools import count, islice

from windlass.core.ids import JobId
from windlass.core.job import Failure, PreparedJob, Token
from windlass.core.states import State
from windlass.core.topics import ENDS, Topic
from windlass.stores.memory.holds import Holds
from windlass.stores.memory.keyspace import KeySpace
from windlass.stores.memory.queues import Queue
from windlass.stores.memory.records import Record, new_record
from windlass.stores.memory.tally import CANCELLED, DEAD, SUCCEEDED

SLACK = 1000
_COUNTED = {State.SUCCEEDED: SUCCEEDED, State.DEAD: DEAD, State.CANCELLED: CANCELLED}


class Table:
    """Jobs, queues, unique keys and the caller's values, which change together; `news` is who is to be woken."""

    def __init__(self) -> None:
        self.jobs: dict[JobId, Record] = {}
        self.queues: dict[str, Queue] = {}
        self.holds = Holds()
        self.keyspace = KeySpace()
        self.news: set[Topic] = set()
        self._in_order: list[Record] = []
        self._next_seq = count(1)

    def queue(self, name: str) -> Queue:
        """Return a queue, known from now on."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = Queue(name)
        return queue

    def queue_of(self, record: Record) -> Queue:
        """Return the queue of a job."""
        return self.queues[record.queue]

    def add(self, given: PreparedJob, now: datetime, run_at: datetime) -> Record:
        """Keep a new job, which stands nowhere yet."""
        record = new_record(next(self._next_seq), given, now, run_at)
        self.jobs[given.id] = record
        self._in_order.append(record)
        return record

    def remove(self, record: Record) -> None:
        """Forget a job."""
        self.queue_of(record).leave(record)
        del self.jobs[record.id]
        if len(self._in_order) > 2 * len(self.jobs) + SLACK:
            self._in_order = list(self.jobs.values())

    def after(self, seq: int | None) -> Iterator[Record]:
        """Give the jobs in the order of their enqueue, those past the sequence number."""
        start = 0 if seq is None else bisect_right(self._in_order, seq, key=lambda record: record.seq)
        return (record for record in islice(self._in_order, start, None) if self.jobs.get(record.id) is record)

    def holder_of(self, job_id: JobId, token: Token) -> Record | None:
        """Return the job if this token holds it."""
        record = self.jobs.get(job_id)
        return record if record is not None and record.state is State.RUNNING and record.token == token else None

    def wait(self, record: Record, run_at: datetime, now: datetime) -> None:
        """Let a job wait for `run_at`: pending when that has come, else scheduled."""
        record.run_at = run_at
        record.claimed_at = record.lease_expires_at = record.worker = None
        queue = self.queue_of(record)
        queue.place(record, State.PENDING if run_at <= now else State.SCHEDULED)
        self.news.add(queue.topic)

    def end(self, record: Record, state: State, now: datetime, *, keep: bool) -> None:
        """End a job: its key is free unless held by time, and its record goes at once if it is not kept."""
        self.holds.free(record)
        self.holds.give_up(record)
        record.finished_at = now
        record.lease_expires_at = None
        queue = self.queue_of(record)
        queue.tally.count(_COUNTED[state], record.kind, now)
        if keep:
            queue.place(record, state)
        else:
            self.remove(record)
        self.news.add(ENDS)

    def fail(self, record: Record, now: datetime, outcome: str, failure: Failure) -> None:
        """Write that a delivery failed, and why."""
        record.end_delivery(now, outcome, failure)
        record.last_error = failure.summary
