"""What moves need of a store: its jobs, its queues, and the steps that all moves are made of."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from typing import Final, Protocol

from windlass.core.ids import JobId
from windlass.core.job import Failure, PreparedJob, Token
from windlass.core.states import State
from windlass.core.topics import ENDS, Topic
from windlass.kit.moves.holds import Holds
from windlass.kit.moves.record import Record

ENQUEUED, SUCCEEDED, DEAD, CANCELLED, RETRIED, RESCUED = range(6)
"""What is counted: places in rows of counts, in the order of `Totals`."""
_COUNTED: Final = {State.SUCCEEDED: SUCCEEDED, State.DEAD: DEAD, State.CANCELLED: CANCELLED}


class Queue(Protocol):
    """A named line of jobs; a job stands in one place at a time, that of its state."""

    @property
    def topic(self) -> Topic:
        """The news that it may have a job to claim."""
        ...

    def join(self, record: Record) -> None:
        """Let a new job, which is pending, wait in its line."""
        ...

    def place(self, record: Record, state: State) -> None:
        """Let a job stand where jobs of `state` stand, at the time that counts there."""
        ...

    def count(self, what: int, kind: str | None, now: datetime) -> None:
        """Count what happened, in all and in the minute of `now`."""
        ...


class Table(ABC):
    """Jobs, queues, unique keys and the caller's values, which change together; `news` is who is to be woken."""

    holds: Holds
    news: set[Topic]

    @property
    @abstractmethod
    def jobs(self) -> Mapping[JobId, Record]:
        """The jobs by their ids."""

    @abstractmethod
    def queue(self, name: str) -> Queue:
        """Return a queue, known from now on."""

    @abstractmethod
    def add(self, given: PreparedJob, now: datetime, run_at: datetime) -> Record:
        """Keep a new job, which stands nowhere yet."""

    @abstractmethod
    def take_in(self, record: Record) -> None:
        """Keep a job that comes from another store, under a number of its own; it stands nowhere yet."""

    @abstractmethod
    def remove(self, record: Record) -> None:
        """Forget a job."""

    @abstractmethod
    def changed(self, record: Record) -> None:
        """Keep what was changed of a job that stays where it stands."""

    @abstractmethod
    def put_values(self, values: Mapping[bytes, bytes | None]) -> None:
        """Write the caller's own values; None deletes."""

    def holder_of(self, job_id: JobId, token: Token) -> Record | None:
        """Return the job if this token holds it."""
        record = self.jobs.get(job_id)
        return record if record is not None and record.state is State.RUNNING and record.token == token else None

    def wait(self, record: Record, run_at: datetime, now: datetime) -> None:
        """Let a job wait for `run_at`: pending when that has come, else scheduled."""
        record.run_at = run_at
        record.claimed_at = record.lease_expires_at = record.worker = None
        queue = self.queue(record.queue)
        queue.place(record, State.PENDING if run_at <= now else State.SCHEDULED)
        self.news.add(queue.topic)

    def end(self, record: Record, state: State, now: datetime, *, keep: bool) -> None:
        """End a job: its key is free unless held by time, and its record goes at once if it is not kept."""
        self.holds.free(record)
        self.holds.give_up(record)
        record.finished_at = now
        record.lease_expires_at = None
        queue = self.queue(record.queue)
        queue.count(_COUNTED[state], record.kind, now)
        if keep:
            queue.place(record, state)
        else:
            self.remove(record)
        self.news.add(ENDS)

    def fail(self, record: Record, now: datetime, outcome: str, failure: Failure) -> None:
        """Write that a delivery failed, and why."""
        record.end_delivery(now, outcome, failure)
        record.last_error = failure.summary
