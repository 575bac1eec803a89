"""What all calls of one serving process share."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final

from windlass.client.bell import Listeners
from windlass.client.client import Client
from windlass.client.watch import Watcher
from windlass.core.errors import WindlassError
from windlass.http.following import Following
from windlass.http.payload_reading import PayloadReading
from windlass.http.presence import Presence, Remembered
from windlass.http.replies import Replies
from windlass.http.services import ServingServices
from windlass.http.under_way import UnderWay
from windlass.kit.timeouts import call_with_timeout
from windlass.system import TaskSpawn

ID_BYTES: Final = 16
MOST_REMEMBERED: Final = 10_000
POLL_INTERVAL: Final = 1.0
"""Seconds after which a wait looks again although nothing rang."""


class Stopping(WindlassError):
    """The process stops: whoever waits is answered with what there is."""

    def __init__(self) -> None:
        super().__init__("this process stops: ask again, another one may answer")


class Shared:
    """A client, and what its callers over HTTP share; it belongs to the event loop of its first call."""

    def __init__(self, client: Client, services: ServingServices | None = None) -> None:
        """Serve `client`, beside `services` if this process runs them."""
        self.client: Final = client
        self.services: Final = services
        self.id: Final = client.rng.token_bytes(ID_BYTES).hex()
        self.retention: Final = client.settings.retention
        self.replies: Final = Replies(client.clock)
        self.claims_under_way: Final = UnderWay()
        self.claimed_in_vain: Final = Remembered(MOST_REMEMBERED)
        """Repeats that were given nothing: their first try may still be on its way."""
        self.presence: Final = Presence(client.store, client.clock, self.look_at_schedules)
        self.reading: Final = PayloadReading(client.clock)
        self.streams: Final[set[Callable[[], None]]] = set()
        """How to end each stream."""
        self.streams_of: Final[Counter[str]] = Counter()
        """How many streams each caller has."""
        self.stopping = False
        self.spawn: Final = TaskSpawn()
        """Starts what runs beside the calls, and ends with them."""
        self._late: dict[asyncio.Future[None], str | None] = {}
        self._opened = False

    @property
    def opened(self) -> bool:
        """Whether it was opened: then calls need not wait for that."""
        return self._opened

    async def open(self) -> None:
        """Open the client, and be ready for calls; harmless when it is open."""
        await self.client.open()
        if not self._opened:
            store, clock = self.client.store, self.client.clock
            self.listeners = Listeners(store, clock)
            self.watcher = Watcher(store, clock=clock, spawn=self.spawn, poll_interval=POLL_INTERVAL)
            self.following = Following(store, clock=clock, spawn=self.spawn)
            self._opened = True

    def stop_waiting(self) -> None:
        """Let every wait and every stream end now, with what there is; later ones do not wait."""
        self.stopping = True
        for end in list(self.streams):
            end()
        if self._opened:
            self.listeners.close(Stopping())
            self.watcher.close(Stopping())

    async def close(self) -> None:
        """Stop, and return when nothing runs any more; the client stays open, it is its maker's."""
        self.stop_waiting()
        while self._late:
            await asyncio.wait(self._late)
        await self.spawn.close()
        self.reading.close()

    def finish(self, late: "asyncio.Future[None]", request_id: str | None) -> None:
        """Keep hold of something that a caller who has gone left to be finished."""
        self._late[late] = request_id
        late.add_done_callback(self._late.pop)

    async def finished(self, request_id: str | None, *, longest: float) -> None:
        """Return when what callers of this name have left is finished; `TimeoutError` after `longest` seconds."""
        late = [each for each, left_by in self._late.items() if left_by == request_id]
        if late and request_id is not None:
            await call_with_timeout(asyncio.wait(late), longest, self.client.clock)

    def look_at_schedules(self) -> None:
        """Look again which schedules are due: a server declares others than before."""
        if self.services is not None:
            self.services.look()
