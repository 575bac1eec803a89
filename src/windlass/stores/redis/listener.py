"""Hears of other processes' news, through a connection that does nothing else."""

import asyncio
import logging

from windlass.core.errors import WindlassError
from windlass.core.topics import Hub, Topic
from windlass.kit.listening import Listening
from windlass.stores.redis.faults import translate
from windlass.stores.redis.options import Options, Place
from windlass.stores.redis.places import open_place
from windlass.stores.redis.runner import Runner
from windlass.stores.redis.wire import Wire

logger = logging.getLogger("windlass.redis")


class Listener(Listening):
    """Rings `hub` at what is told in `channel`."""

    def __init__(self, options: Options, runner: Runner, hub: Hub, *, prefix: str, channel: str) -> None:
        """Open nothing yet; `prefix` leads to the server that is heard."""
        super().__init__(hub, where=options.where, logger=logger)
        self._options = options
        self._runner = runner
        self._prefix = prefix
        self._channel = channel
        self._wire: Wire | None = None

    @property
    def connected(self) -> bool:
        """Whether news is heard at once."""
        return self._wire is not None

    def _let_go(self) -> None:
        if self._wire is not None:
            self._wire.abandon()

    async def _listen(self) -> None:
        async with asyncio.timeout(self.answer_within):
            place = await self._runner.place(self._prefix, asyncio.get_running_loop().time() + self.answer_within)
        try:
            wire = await self._open(place)
            try:
                await self._subscribe(wire)
                await self._stay(wire)
            finally:
                self._wire = None
                wire.terminate()
        except Exception as error:
            self._runner.learn(self._prefix, place, error)
            raise

    async def _open(self, place: Place) -> Wire:
        async with asyncio.timeout(self.answer_within):
            return await open_place(self._options, place)

    async def _subscribe(self, wire: Wire) -> None:
        wire.send("SUBSCRIBE", self._channel)
        await wire.hear(asyncio.get_running_loop().time() + self.answer_within)
        self._wire = wire
        self._heard_again()

    async def _stay(self, wire: Wire) -> None:
        """Hear messages until the server is gone, which raises."""
        time = asyncio.get_running_loop().time
        while True:
            try:
                message = await wire.hear(time() + self.check_after)
            except TimeoutError:
                wire.send("PING")
                message = await wire.hear(time() + self.answer_within)
            if message[0] == b"message":
                name, *topics = message[2].decode(errors="replace").split(" ")
                # of our own news everybody here knows
                if name != self._runner.name:
                    self._hub.ring([Topic(topic) for topic in topics])

    def _meaning(self, error: Exception) -> WindlassError:
        return translate(error, self._options.where)
