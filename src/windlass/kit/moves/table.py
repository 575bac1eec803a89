"""What moves need of a store: its jobs, its queues, and the steps that all moves are made of."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from typing import Final, Protocol

from windlass.core import fence
from windlass.core.ids import JobId
from windlass.core.job import Failure, PreparedJob, Token
from windlass.core.requests import Settled
from windlass.core.states import State
from windlass.core.topics import ENDS, Topic
from windlass.kit.moves.holds import Holds
from windlass.kit.moves.record import Record

ENQUEUED, SUCCEEDED, DEAD, CANCELLED, RETRIED, RESCUED = range(6)
"""What is counted: places in rows of counts, in the order of `Totals`."""
_PENDING, _RUNNING = State.PENDING, State.RUNNING
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

    def holder_of(self, job_id: JobId, token: Token) -> Record | Settled:
        """Return the job that a token holds, or why it holds none: the one fence of whatever a claim may write."""
        record = self.jobs.get(job_id)
        return Settled.LOST if record is None else fence.refusal(record.state, record.token, token) or record

    # the four steps: whatever changes the state of a job goes through one of them, or two

    def starts_waiting(
        self, record: Record, state: State, now: datetime, *, is_new: bool = False, ring: bool = True
    ) -> None:
        """Let a job wait, pending or scheduled: a new one, one that waited for another time, or one that ran or ended.

        `record.state` is the state before, unless it `is_new`. With `ring` all that wait for jobs are woken.
        """
        queue = self.queue(record.queue)
        if is_new:
            queue.count(ENQUEUED, record.kind, now)
        if is_new and state is _PENDING:
            queue.join(record)
        else:
            queue.place(record, state)
        if ring:
            self.news.add(queue.topic)

    def starts_running(
        self, record: Record, token: Token, worker: str | None, lease_expires_at: datetime, now: datetime
    ) -> None:
        """Give a pending job to the holder of a token."""
        record.attempt += 1
        record.delivery += 1
        record.claimed_at = now
        record.lease_expires_at = lease_expires_at
        record.worker = worker
        record.token = token
        record.progress = None
        self.holds.free_at_claim(record)
        self.queue(record.queue).place(record, _RUNNING)

    def stops_running(
        self, record: Record, now: datetime, outcome: str, failure: Failure | None = None, *, ring: bool = False
    ) -> None:
        """Write how the delivery of a running job ended, which waits again or ends next.

        With `ring` all that wait for jobs of its queue are woken.
        """
        record.end_delivery(now, outcome, failure)
        if failure is not None:
            record.last_error = failure.summary
        if ring:
            self.news.add(self.queue(record.queue).topic)

    def ends(self, record: Record, state: State, now: datetime, *, keep: bool) -> None:
        """End a job: its key is free unless held by time, and its record goes at once if it is not kept.

        `record.state` is the state before.
        """
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

    def wait_for(self, record: Record, run_at: datetime, now: datetime) -> None:
        """Let a job that nobody holds wait for `run_at`: pending when that has come, else scheduled."""
        record.run_at = run_at
        record.claimed_at = record.lease_expires_at = record.worker = None
        self.starts_waiting(record, State.PENDING if run_at <= now else State.SCHEDULED, now)
