"""What a store keeps beside jobs: receipts of requests, locks, servers and what people did."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeAlias

from windlass.core.duration import later
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.moving import Moved, Unpacked
from windlass.core.stats import TimingCount
from windlass.core.store_calls import Command
from windlass.kit.moves.holds import Holds
from windlass.kit.tally import Tally

Timing: TypeAlias = tuple[datetime, str, str, Literal["waited", "ran"], int]
"""What is counted: minute, queue, kind, what and range of a `TimingCount`."""

RECEIPTS_KEPT = timedelta(minutes=10)
SERVERS_KEPT = timedelta(days=1)
MINUTES_KEPT = timedelta(days=8)


class Receipt(NamedTuple):
    """Reply to a command, and the time of it."""

    at: datetime
    reply: Any


class House:
    """Plain records, each by its name or request."""

    def __init__(self) -> None:
        self.receipts: dict[tuple[type[Command[Any]], str], Receipt] = {}
        """The reply to each command that was sent with a request id."""
        self.servers: dict[str, ServerRecord] = {}
        self.audit: list[AuditEntry] = []
        self.moved: Moved | None = None
        self.parcels: dict[tuple[str, str], Unpacked] = {}
        """The last parcel of each move and queue that was unpacked here."""
        self.timings: Counter[Timing] = Counter()
        self._locks: dict[str, tuple[str, datetime]] = {}

    def lock(self, name: str, holder: str, ttl: timedelta, now: datetime) -> bool:
        """Take or renew a lock; False while another holder has it."""
        if self._holder(name, now) not in {None, holder}:
            return False
        self._locks[name] = holder, later(now, ttl)
        return True

    def unlock(self, name: str, holder: str, now: datetime) -> bool:
        """Let go of a lock; False when `holder` no longer had it."""
        if self._holder(name, now) != holder:
            return False
        del self._locks[name]
        return True

    def beat(self, server: ServerRecord, now: datetime) -> None:
        """Write that a server is live."""
        self.servers[server.id] = replace(server, seen_at=now)

    def alive(self, dead_after: timedelta, now: datetime) -> bool:
        """Whether a server was seen within `dead_after`."""
        return any(later(server.seen_at, dead_after) > now for server in self.servers.values())

    def add_timings(self, timings: Iterable[TimingCount]) -> None:
        """Add counts to those that are kept."""
        for minute, queue, kind, what, within, count in timings:
            self.timings[minute, queue, kind, what, within] += count

    def timings_between(self, since: datetime, until: datetime) -> list[TimingCount]:
        """Return what is kept of these minutes, in order."""
        return sorted(TimingCount(*of, count) for of, count in self.timings.items() if since <= of[0] < until)

    def prune(self, holds: Holds, tallies: Iterable[Tally], now: datetime) -> None:
        """Forget what is past its time, here, among the unique keys and in the counts of queues."""
        holds.prune(now)
        self.receipts = {key: kept for key, kept in self.receipts.items() if kept.at > now - RECEIPTS_KEPT}
        self._locks = {name: lock for name, lock in self._locks.items() if lock[1] > now}
        self.servers = {key: server for key, server in self.servers.items() if server.seen_at > now - SERVERS_KEPT}
        self.timings = Counter({of: count for of, count in self.timings.items() if of[0] > now - MINUTES_KEPT})
        for tally in tallies:
            tally.forget(now - MINUTES_KEPT)

    def _holder(self, name: str, now: datetime) -> str | None:
        holder, ends_at = self._locks.get(name, (None, now))
        return holder if ends_at > now else None
