"""What is worth a first look: queues whose jobs nobody takes, and servers that are silent or held up."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

from windlass.client.claims import DEAD_AFTER
from windlass.client.server_details import is_live, is_stopping, stuck_in
from windlass.core.looks import ServerRecord
from windlass.core.stats import QueueStats

PATIENCE: Final = timedelta(seconds=30)
"""How long a job waits before somebody is told that nobody takes it: a worker may be about to start."""
MOST: Final = 5


class Servers(NamedTuple):
    """All servers, at the time `now` of the store."""

    now: datetime
    records: Sequence[ServerRecord]

    @property
    def live(self) -> list[ServerRecord]:
        """Those that were heard of lately."""
        return [record for record in self.records if is_live(record, self.now, DEAD_AFTER)]

    @property
    def silent(self) -> list[ServerRecord]:
        """Those that were not, and have not taken themselves out."""
        return [record for record in self.records if not is_live(record, self.now, DEAD_AFTER)]


class Concern(NamedTuple):
    """One thing that may need somebody: what, the name of the queue or server, how many jobs it has, and since when."""

    what: Literal["unworked", "paused", "stuck", "silent"]
    name: str
    jobs: int
    since: datetime | None


class Concerns(NamedTuple):
    """The first few, and how many more there are."""

    shown: Sequence[Concern]
    more: int

    @property
    def found(self) -> int:
        """How many there are in all."""
        return len(self.shown) + self.more


def concerns(queues: Iterable[QueueStats], servers: Servers, *, sees_all: bool) -> Concerns:
    """Return what may need somebody. Who does not see all servers is told of none, nor that they are missing."""
    found = list(_found(list(queues), servers, sees_all=sees_all))
    return Concerns(found[:MOST], len(found) - MOST if len(found) > MOST else 0)


def _found(queues: Sequence[QueueStats], servers: Servers, *, sees_all: bool) -> Iterator[Concern]:
    worked = {queue for record in servers.live if not is_stopping(record) for queue in record.queues}
    for row in queues:
        if row.pending and row.paused:
            yield Concern("paused", row.queue or "", row.pending, row.oldest_waiting)
        elif sees_all and row.queue not in worked and _is_left(row, servers.now):
            yield Concern("unworked", row.queue or "", row.pending, row.oldest_waiting)
    if sees_all:
        for record in servers.live:
            if stuck := set(stuck_in(record)):
                yield Concern("stuck", record.name, len(stuck), None)
        for record in servers.silent:
            yield Concern("silent", record.name, record.running, record.seen_at)


def _is_left(row: QueueStats, now: datetime) -> bool:
    """Whether nobody takes the jobs of a queue, not even a program that claims without being a server."""
    waits = row.oldest_waiting is not None and row.oldest_waiting + PATIENCE <= now
    return row.pending > 0 and row.running == 0 and waits
