"""What the store keeps: dictionaries of immutable values, so a copy of the dictionaries is enough to undo a step."""

from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from windlass.core.duration import EPOCH
from windlass.core.ids import JobId
from windlass.core.job import Job, Token
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.moving import HeldKey, Moved, Unpacked
from windlass.core.queue_settings import NO_ROW, SettingsRow
from windlass.core.schedule import Schedule
from windlass.core.states import State
from windlass.core.stats import TimingCount, Totals
from windlass.core.topics import Topic

R = TypeVar("R")


class Record(NamedTuple):
    """A job with its history and log, and what only the store knows of it."""

    job: Job
    key: HeldKey | None
    """Its unique key. It may hold the key again while `job.unique_key` shows it."""
    token: Token | None = None
    """The token of the last claim; None after a rescue."""
    freed_key: bool = False
    """Whether the running claim has freed the key."""


@dataclass
class Tables:
    """Everything that is kept, and the time and the news of the step that runs."""

    now: datetime = EPOCH
    news: frozenset[Topic] = frozenset()
    last_seq: int = 0
    last_revision: int = 0
    moved: Moved | None = None
    jobs: dict[JobId, Record] = field(default_factory=dict[JobId, Record])
    keys: dict[str, HeldKey] = field(default_factory=dict[str, HeldKey])
    queues: dict[str, SettingsRow] = field(default_factory=dict[str, SettingsRow])
    """Every queue that is known."""
    totals: dict[str, Totals] = field(default_factory=dict[str, Totals])
    minutes: dict[tuple[datetime, str, str], Totals] = field(default_factory=dict[tuple[datetime, str, str], Totals])
    timings: dict[TimingCount, int] = field(default_factory=dict[TimingCount, int])
    schedules: dict[str, Schedule] = field(default_factory=dict[str, Schedule])
    kv: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    locks: dict[str, tuple[str, datetime]] = field(default_factory=dict[str, tuple[str, datetime]])
    servers: dict[str, ServerRecord] = field(default_factory=dict[str, ServerRecord])
    audit: list[AuditEntry] = field(default_factory=list[AuditEntry])
    unpacked: dict[tuple[str, str], Unpacked] = field(default_factory=dict[tuple[str, str], Unpacked])
    receipts: dict[tuple[type, str], tuple[datetime, Any]] = field(
        default_factory=dict[tuple[type, str], tuple[datetime, Any]]
    )

    def undone_if_it_fails(self, step: Callable[[], R]) -> R:
        """Return what `step` returns; an error undoes what it wrote."""
        before = {name: copy(value) for name, value in vars(self).items()}
        try:
            return step()
        except BaseException:
            vars(self).update(before)
            raise

    def ring(self, *topics: Topic) -> None:
        """Notify these topics after the step."""
        self.news |= set(topics)

    def records(self, *states: State, queues: Collection[str] | None = None) -> list[Record]:
        """Return the jobs in these states, in the order of their enqueue."""
        found = [
            record
            for record in self.jobs.values()
            if record.job.state in states and (queues is None or record.job.queue in queues)
        ]
        return sorted(found, key=lambda record: record.job.seq)

    def change(self, record: Record, **fields: Any) -> Record:  # noqa: ANN401 - fields of a job
        """Write a record with other fields of its job."""
        changed = record._replace(job=record.job._replace(**fields))
        self.jobs[record.job.id] = changed
        return changed

    def count(self, job: Job, what: str) -> None:
        """Add one to a total of the job's queue, and to that of this minute."""
        one = Totals(**{what: 1})
        minute = (self.now.replace(second=0, microsecond=0), job.queue, job.kind or "")
        self.totals[job.queue] = self.totals.get(job.queue, Totals()).plus(one)
        self.minutes[minute] = self.minutes.get(minute, Totals()).plus(one)

    def is_paused(self, queue: str) -> bool:
        """Whether a queue gives no claims."""
        return self.queues.get(queue, NO_ROW).settings.paused is True

    def holder(self, name: str) -> HeldKey | None:
        """Return who holds a unique key now."""
        held = self.keys.get(name)
        return None if held is None or (held.expires_at is not None and held.expires_at <= self.now) else held

    def write_kv(self, pairs: Mapping[bytes, bytes | None]) -> None:
        """Write the caller's own values; None deletes."""
        for key, value in pairs.items():
            if value is None:
                self.kv.pop(key, None)
            else:
                self.kv[key] = value

    def prune_other_records(self) -> None:
        """Delete what is over or old, but for jobs."""
        eight_days, day, ten_minutes = timedelta(days=8), timedelta(days=1), timedelta(minutes=10)
        self.keys = {name: key for name, key in self.keys.items() if self.holder(name) is not None}
        self.locks = {name: lock for name, lock in self.locks.items() if lock[1] > self.now}
        self.servers = {name: server for name, server in self.servers.items() if server.seen_at > self.now - day}
        self.receipts = {key: kept for key, kept in self.receipts.items() if kept[0] > self.now - ten_minutes}
        self.minutes = {key: counts for key, counts in self.minutes.items() if key[0] >= self.now - eight_days}
        self.timings = {key: many for key, many in self.timings.items() if key.minute >= self.now - eight_days}


def plain(job: Job) -> Job:
    """Return a job without its history and log."""
    return job._replace(history=(), log=())


def lease_is_over(tables: Tables, job: Job) -> bool:
    return job.lease_expires_at is not None and job.lease_expires_at <= tables.now
