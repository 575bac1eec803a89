"""What one process has open on a server: connections, and whoever works through them."""

import os

from windlass.core.clock import Clock, Rng
from windlass.core.topics import Hub
from windlass.kit.reaching import told_when_slow
from windlass.stores.redis.caller import Caller
from windlass.stores.redis.keys import channel_of, prefix_of
from windlass.stores.redis.keyspace import Keyspace
from windlass.stores.redis.listener import Listener
from windlass.stores.redis.options import Options
from windlass.stores.redis.prepare import Vouching, prepare
from windlass.stores.redis.queues import Queues
from windlass.stores.redis.runner import Runner
from windlass.stores.redis.spread import Spread

REQUEST_BYTES = 16


class Room:
    """Everything that one store has open in one process."""

    def __init__(self, options: Options, clock: Clock, rng: Rng, hub: Hub) -> None:
        """Open nothing yet."""
        self.pid = os.getpid()
        self._rng = rng
        self.prefix = prefix_of(options.prefix)
        self.runner = Runner(options, clock, hub)
        self.calls: Keyspace | Spread
        """Executes the calls of the store."""
        if options.spread:
            vouch = Vouching(self.runner, options).vouch
            self.calls = Spread(Queues(self.runner, options.prefix, self._new_request_id, vouch))
        else:
            self.calls = Keyspace(Caller(self.runner, self.prefix, self._new_request_id))
        self.listener = Listener(options, self.runner, hub, prefix=self.prefix, channel=channel_of(options.prefix))

    async def close(self) -> None:
        """Finish what was handed over and let go of every connection."""
        await self.calls.close()
        await self.listener.close()
        await self.runner.close()

    def abandon(self) -> None:
        """Let go of what belongs to the parent, in a forked process."""
        self.listener.abandon()
        self.runner.abandon()

    def _new_request_id(self) -> str:
        return self._rng.token_bytes(REQUEST_BYTES).hex()


async def open_room(options: Options, clock: Clock, rng: Rng, hub: Hub) -> Room:
    """Look at the server, write the layout's version if there is none and may, and open what is needed."""
    room = Room(options, clock, rng, hub)
    try:
        with told_when_slow(options.where, options.timeout, lambda: room.runner.met):
            await prepare(room.runner, room.prefix, options)
    except BaseException:
        await room.close()
        raise
    return room
