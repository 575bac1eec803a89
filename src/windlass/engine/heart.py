"""The service that tells the store that this process is alive."""

import os
import socket
from datetime import timedelta
from importlib.metadata import version

from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.duration import to_micros
from windlass.core.ids import ID_BYTES, new_ids
from windlass.core.store import ServerRecord, Store
from windlass.engine.service import Service


class Heart(Service):
    """Registers the process as `name#uuid`, new at every start, beats every ten seconds, takes it out at the stop."""

    name = "heart"
    interval = timedelta(seconds=10)

    def __init__(self, store: Store, server: str, *, clock: Clock, rng: Rng, spawn: Spawn) -> None:
        """Beat in `store` for a server of the name `server`."""
        super().__init__(clock=clock, rng=rng, spawn=spawn)
        self._store = store
        self._server = server
        self._record: ServerRecord | None = None

    async def tick(self) -> None:
        """Write that the server is live."""
        self._record = self._record or self._new_record()
        await self._store.beat(self._record)

    async def leave(self) -> None:
        """Take the server out."""
        record, self._record = self._record, None
        if record is not None:
            await self._store.leave(record.id)

    def _new_record(self) -> ServerRecord:
        now = self._clock.now()
        [new_id] = new_ids(1, millis=to_micros(now) // 1000, randomness=self._rng.token_bytes(ID_BYTES))
        return ServerRecord(
            id=f"{self._server}#{new_id}",
            name=self._server,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=version("windlass"),
            started_at=now,
            seen_at=now,
        )
