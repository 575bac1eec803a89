"""The service that tells the store that this process is alive."""

import asyncio
import os
import socket
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Final

from windlass.client.server_details import CONSUMES, MEMORY, SLOTS, STOPPING, STUCK
from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.duration import to_millis
from windlass.core.ids import ID_BYTES, JobId, new_id
from windlass.core.looks import SERVED, ServerRecord
from windlass.core.store import Store
from windlass.engine.config import ServerConfig
from windlass.engine.service import Service
from windlass.version import VERSION

SCHEDULING: Final = "scheduling"
"""Among the details of a server: `off` when it makes no jobs of schedules."""
STOPPING_INTERVAL: Final = timedelta(seconds=1)
"""Between two beats of a server that stops: what it still runs is what people wait for."""


class Heart(Service):
    """Registers the process, beats every ten seconds, takes it out at the stop."""

    name = "heart"

    def __init__(
        self,
        store: Store,
        describe: Callable[[], ServerRecord],
        *,
        clock: Clock,
        rng: Rng,
        spawn: Spawn,
        interval: timedelta = timedelta(seconds=10),
    ) -> None:
        """Beat in `store` with what `describe` says at the time."""
        super().__init__(clock=clock, rng=rng, spawn=spawn)
        self.interval = interval
        self._store = store
        self._describe = describe
        self._beat: asyncio.Future[None] | None = None
        self._hurried = asyncio.Event()

    def hurry(self) -> None:
        """Beat now, and each second from now on: the server stops, and says what it still runs."""
        self.interval = min(self.interval, STOPPING_INTERVAL)
        self._hurried.set()

    async def tick(self) -> None:
        """Write that the server is live."""
        self._beat = asyncio.ensure_future(self._store.beat(self._describe()))
        await asyncio.shield(self._beat)

    async def rest(self, seconds: float) -> None:
        """Wait until the next tick, or until it is to be soon."""
        timer = self._clock.call_later(seconds, self._hurried.set)
        try:
            await self._hurried.wait()
        finally:
            timer.cancel()
            self._hurried.clear()

    async def leave(self) -> None:
        """Take the server out."""
        if self._beat is not None:
            # a beat that the store executes after the leave would list the server again
            await asyncio.wait((self._beat,))
        await self._store.leave(self._describe().id)


def new_server_id(name: str, *, clock: Clock, rng: Rng) -> str:
    """Return `name#uuid`, new for every start."""
    made = new_id(millis=to_millis(clock.now()), randomness=rng.token_bytes(ID_BYTES))
    return f"{name}#{made}"


def new_record(server_id: str, *, clock: Clock) -> ServerRecord:
    """Return the record of a server of this process that starts now."""
    now = clock.now()
    return ServerRecord(
        id=server_id,
        name=server_id.partition("#")[0],
        host=socket.gethostname(),
        pid=os.getpid(),
        version=VERSION,
        started_at=now,
        seen_at=now,
    )


def details_of(
    config: ServerConfig, stuck: Iterable[JobId], consumed: Iterable[str], *, served: bool, stopping: bool
) -> dict[str, str]:
    """Return what else a server tells of itself, without what is empty; `served` as its store is."""
    told = {
        STUCK: ", ".join(stuck),
        SLOTS: str(config.concurrency),
        CONSUMES: " ".join(sorted(consumed)),
        MEMORY: memory_in_use(),
        SCHEDULING: "" if config.schedules else "off",
        SERVED: "yes" if served else "",
        STOPPING: "yes" if stopping else "",
    }
    return {name: text for name, text in told.items() if text}


def memory_in_use() -> str:
    """Return how many bytes of memory this process has, or nothing where that is not told."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return ""
    return str(int(pages) * os.sysconf("SC_PAGE_SIZE"))
