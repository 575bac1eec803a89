"""What one process has open on a server: connections, and whoever works through them."""

import os

from windlass.core.clock import Clock, Rng
from windlass.core.topics import Hub
from windlass.kit.reaching import told_when_slow
from windlass.stores.redis.caller import Caller
from windlass.stores.redis.damaged import Told
from windlass.stores.redis.keys import channel_of, prefix_of
from windlass.stores.redis.listener import Listener
from windlass.stores.redis.looks import Looks
from windlass.stores.redis.moves import Moves
from windlass.stores.redis.moving import Moving
from windlass.stores.redis.options import Options
from windlass.stores.redis.prepare import Vouching, prepare
from windlass.stores.redis.queues import Queues
from windlass.stores.redis.runner import Runner
from windlass.stores.redis.spread_looks import SpreadLooks
from windlass.stores.redis.spread_moves import SpreadMoves
from windlass.stores.redis.spread_moving import SpreadMoving

REQUEST_BYTES = 16


class Room:
    """Everything that one store has open in one process."""

    def __init__(self, options: Options, clock: Clock, rng: Rng, hub: Hub) -> None:
        """Open nothing yet."""
        self.pid = os.getpid()
        self._rng = rng
        self.prefix = prefix_of(options.prefix)
        self.runner = Runner(options, clock, hub)
        self.moves: Moves | SpreadMoves
        self.looks: Looks | SpreadLooks
        self.moving: Moving | SpreadMoving
        self._queues: Queues | None = None
        if options.spread:
            self._queues = queues = Queues(
                self.runner, options.prefix, self._new_request_id, Vouching(self.runner, options).vouch
            )
            self.moves, self.looks, self.moving = SpreadMoves(queues), SpreadLooks(queues), SpreadMoving(queues)
        else:
            caller = Caller(self.runner, self.prefix, self._new_request_id)
            self.moves, self.looks, self.moving = Moves(caller, Told()), Looks(self.runner, self.prefix), Moving(caller)
        self.listener = Listener(options, self.runner, hub, prefix=self.prefix, channel=channel_of(options.prefix))

    async def prefixes(self) -> list[str]:
        """Return what the keys of the store begin with: first those of home, then those of each queue apart."""
        apart = [] if self._queues is None else await self._queues.prefixes()
        return [self.prefix, *apart]

    async def close(self) -> None:
        """Finish what was handed over and let go of every connection."""
        await self.moves.close()
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
