"""What is known of a job and of all around it, and what a reason is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from windlass.client.claims import DEAD_AFTER
from windlass.client.server_details import is_live, is_stopping
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import SERVED, AuditEntry, ServerRecord
from windlass.core.moving import Moved
from windlass.core.schedule import Schedule
from windlass.core.stats import QueueStats

LATELY: Final = timedelta(minutes=5)
"""How far back the rate of a queue is looked up."""

Fact: TypeAlias = str | int | float | datetime | None
NO_FACTS: Final[Mapping[str, Fact]] = {}


class Reason(NamedTuple):
    """One reason why a job stands where it stands: a name for programs, a sentence for people, and what to do."""

    name: str
    message: str
    advice: str | None = None
    facts: Mapping[str, Fact] = NO_FACTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """All that matters to one job, at the time `now` of the store."""

    now: datetime
    id: JobId
    job: Job | None
    queue: QueueStats = field(default_factory=lambda: QueueStats(None))
    """The counts of its queue."""
    ahead: int | None = None
    """As in `Place`."""
    key_holder: JobId | None = None
    """As in `Place`."""
    servers: Sequence[ServerRecord] = ()
    ended_lately: int = 0
    """How many claims of its queue ended in the time of `LATELY`."""
    schedule: Schedule | None = None
    """The one that made it, if that is still there."""
    moved: Moved | None = None
    audit: Sequence[AuditEntry] = ()
    """What people did to it, the newest first."""
    near: Sequence[JobId] = ()
    """Jobs that are here, with ids so much like this one that it may be a slip."""
    dead_after: timedelta = DEAD_AFTER
    """A server that was not seen for so long counts as gone."""

    @property
    def live(self) -> list[ServerRecord]:
        """The servers that were heard of lately."""
        return [server for server in self.servers if self.is_live(server)]

    @property
    def claiming(self) -> list[ServerRecord]:
        """The live servers that still claim jobs, since they do not stop."""
        return [server for server in self.live if not is_stopping(server)]

    def is_live(self, server: ServerRecord) -> bool:
        """Whether a server was heard of lately."""
        return is_live(server, self.now, self.dead_after)

    @property
    def rescuers(self) -> list[ServerRecord]:
        """The live servers that take back jobs whose lease ran out; one that only works leaves that to others."""
        return [server for server in self.live if server.details.get(SERVED) != "yes"]


def shown_server(server: ServerRecord) -> str:
    """Return how people find the process of a server."""
    return f"{server.name} (host {server.host}, pid {server.pid})"
