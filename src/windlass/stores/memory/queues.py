"""One queue: the lines that its jobs stand in, and what it counted."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from heapq import heappop, heappush

from windlass.core.choosing import NO_ACCOUNTS, choose
from windlass.core.queue_settings import NO_ROW, SettingsRow
from windlass.core.requests import ClaimRequest
from windlass.core.states import ENDS, State
from windlass.core.stats import KindStats, QueueStats, Totals
from windlass.core.topics import queue_topic
from windlass.kit.moves.record import NOWHERE, Record
from windlass.kit.tally import Tally
from windlass.stores.memory.timeline import Timeline


class Line:
    """The pending jobs of one kind by (priority, run_at, sequence number): a timeline per priority in use.

    A claim takes jobs from it as from a lane.
    """

    __slots__ = ("_by_priority", "_head", "_priorities")

    def __init__(self) -> None:
        self._head: Record | None = None
        self._by_priority: dict[int, Timeline[Record]] = {}
        self._priorities: list[int] = []

    def join(self, record: Record) -> None:
        """Let a job wait here."""
        priority = record.priority
        timeline = self._by_priority.get(priority)
        if timeline is None:
            timeline = self._by_priority[priority] = Timeline()
            heappush(self._priorities, priority)
        timeline.join(record.run_at, record)

    def leave(self, record: Record) -> None:
        """Let a job wait here no more."""
        self._by_priority[record.priority].leave(record)

    def first(self) -> Record | None:
        """Return the most urgent job."""
        while self._priorities:
            first = self._by_priority[self._priorities[0]].first()
            if first is not None:
                return first
            del self._by_priority[heappop(self._priorities)]
        return None

    @property
    def accounts(self) -> Sequence[str]:
        """No account bounds a job yet."""
        return ()

    def head(self) -> tuple[int, datetime, int, Record] | None:
        """Return the most urgent job behind what sorts it."""
        record = self._head = self.first()
        return None if record is None else (record.priority, record.run_at, record.seq, record)

    def leave_head(self) -> None:
        """Let the job that `head` has returned wait here no more."""
        if self._head is not None:
            self.leave(self._head)
            self._head = None

    @property
    def is_empty(self) -> bool:
        """Whether the last look at the first job has found none."""
        return not self._priorities

    def members(self) -> int:
        """Count the jobs."""
        return sum(timeline.members for timeline in self._by_priority.values())

    def ahead(self, record: Record, most: int) -> int:
        """Count the jobs that are given before this one, up to `most`."""
        count = 0
        for priority, timeline in self._by_priority.items():
            if priority < record.priority:
                count += timeline.members
            elif priority == record.priority:
                count += timeline.ahead(record.run_at, record.seq, most)
        return min(count, most)

    def oldest(self) -> Iterator[datetime]:
        """Give the earliest `run_at` of each priority."""
        for timeline in self._by_priority.values():
            if (first := timeline.first()) is not None:
                yield first.run_at


class Queue:
    """A named line of jobs. A job stands in one timeline at a time, that of its state, so counts need no keeping."""

    __slots__ = ("_lines", "due", "ends", "leases", "name", "paused", "settings", "tally", "topic")

    def __init__(self, name: str) -> None:
        self.name = name
        self.topic = queue_topic(name)
        self.settings = NO_ROW
        self.paused = False
        self._lines: dict[str | None, Line] = {}
        self.due: Timeline[Record] = Timeline()
        self.leases: Timeline[Record] = Timeline()
        self.ends: dict[State, Timeline[Record]] = {state: Timeline() for state in State if state in ENDS}
        self.tally = Tally()

    def set_settings(self, settings: SettingsRow) -> None:
        """Keep other settings, which each claim reads."""
        self.settings = settings
        self.paused = settings.settings.paused is True

    def join(self, record: Record) -> None:
        """Let a new job, which is pending, wait in its line."""
        self.line(record.kind).join(record)

    def count(self, what: int, kind: str | None, now: datetime) -> None:
        """Count what happened, in all and in the minute of `now`."""
        self.tally.count(what, kind, now)

    def place(self, record: Record, state: State) -> None:
        """Let a job stand where jobs of `state` stand, at the time that counts there."""
        self.leave(record)
        record.state = state
        match state:
            case State.PENDING:
                self.line(record.kind).join(record)
            case State.SCHEDULED:
                self.due.join(record.run_at, record)
            case State.RUNNING:
                self.leases.join(record.lease_expires_at or record.run_at, record)
            case _:
                self.ends[state].join(record.finished_at or record.run_at, record)

    def leave(self, record: Record) -> None:
        """Let a job stand nowhere."""
        if record.place == NOWHERE:
            return
        match record.state:
            case State.PENDING:
                self._lines[record.kind].leave(record)
            case State.SCHEDULED:
                self.due.leave(record)
            case State.RUNNING:
                self.leases.leave(record)
            case _:
                self.ends[record.state].leave(record)

    def line(self, kind: str | None) -> Line:
        """Return the line of a kind."""
        line = self._lines.get(kind)
        if line is None:
            line = self._lines[kind] = Line()
        return line

    def lines(self, kinds: Collection[str | None] | None) -> list[Line]:
        """Return the lines of these kinds, or all."""
        known = self._lines
        found = list(known.items()) if kinds is None else [(kind, known[kind]) for kind in set(kinds) if kind in known]
        for kind, line in found:
            if line.is_empty:
                # kinds come and go: it would be looked at by every claim to come
                del known[kind]
        return [line for _, line in found]

    def first(self, kind: str | None) -> Record | None:
        """Return the most urgent pending job of a kind that has a line."""
        first = self._lines[kind].first()
        if first is None:
            del self._lines[kind]
        return first

    def ahead(self, record: Record, most: int) -> int:
        """Count the pending jobs that a claim gives before this one, up to `most`."""
        return min(sum(line.ahead(record, most) for line in self._lines.values()), most)

    def kinds(self) -> list[str]:
        """Return the kinds of the pending jobs, in order of name."""
        return sorted(kind for kind in list(self._lines) if kind is not None and self.first(kind) is not None)

    def waiting(self) -> list[KindStats]:
        """Count the pending jobs by kind."""
        return [
            KindStats(self.name, kind or "", line.members(), min(line.oldest()))
            for kind, line in self._lines.items()
            if line.members()
        ]

    def stats(self) -> QueueStats:
        """Count by state."""
        lines = self._lines.values()
        return QueueStats(
            queue=self.name,
            paused=self.paused,
            scheduled=self.due.members,
            pending=sum(line.members() for line in lines),
            running=self.leases.members,
            succeeded=self.ends[State.SUCCEEDED].members,
            dead=self.ends[State.DEAD].members,
            cancelled=self.ends[State.CANCELLED].members,
            oldest_waiting=min((at for line in lines for at in line.oldest()), default=None),
            totals=Totals(*self.tally.totals),
        )


def ready(queues: Sequence[Queue], request: ClaimRequest) -> list[Record]:
    """Return the jobs to be given: of the queues one after the other, or of all as if they were one."""
    chosen: list[Record] = []
    for group in [queues] if request.by_priority else [[queue] for queue in queues]:
        lines = [line for queue in group for line in queue.lines(request.kinds)]
        picks, _ = choose(lines, NO_ACCOUNTS, request.limit - len(chosen))
        chosen += [record for *_, record in picks]
    return chosen
