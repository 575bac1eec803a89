"""Hears of other processes' news, through a connection that does little else."""

import asyncio
import logging
import random
from typing import Final

from windlass.core.topics import Hub
from windlass.stores.postgres.channels import channels_of, topics_in
from windlass.stores.postgres.faults import translate
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.session import Session, open_session

logger = logging.getLogger("windlass.postgres")

RING_EVERY: Final = 1.0
"""How often everybody is rung while nothing can be heard, in seconds."""
CHECK_AFTER: Final = 5.0
"""After how many seconds of silence the server is asked whether it is still there."""
ANSWER_WITHIN: Final = 3.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_abandoned: Final[list[object]] = []


class Listener:
    """Rings `hub` at the news of other processes, for as long as somebody listens to the hub.

    While there is no connection everybody is rung each second. That is all it does behind a pooler, which hands no
    notification on, and with `?notify=off`. A lost connection is opened again, for ever.
    """

    def __init__(self, options: Options, hub: Hub, *, store_id: str, pooled: bool) -> None:
        """Open nothing yet."""
        self._options = options
        self._hub = hub
        self._channels = channels_of(store_id)
        self._can_hear = options.notify and not pooled
        self._session: Session | None = None
        self._turn = asyncio.Lock()
        self._heard_at = 0.0
        self._hearing: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_down = False
        self._closed = False

    @property
    def connected(self) -> bool:
        """Whether news is heard at once."""
        return self._session is not None and not self._session.closed

    def start(self) -> None:
        """Begin to hear; called whenever somebody begins to listen to the hub."""
        if self._closed or self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(RING_EVERY, self._ring)
        if self._can_hear:
            self._hearing = loop.create_task(self._hear(), name="windlass listener")

    async def tell(self, channel: str, payload: str) -> bool:
        """Send a notification through this connection, which does not heed its own; False when there is none."""
        async with self._turn:
            session = self._session
            if session is None or session.broken:
                return False
            await self._ask(session, "notify", [channel, payload])
        return True

    async def close(self) -> None:
        """Hear nothing more."""
        self._closed = True
        self._rest()
        if self._ending:
            await asyncio.wait(self._ending)

    def abandon(self) -> None:
        """Let go of the parent's connection, in a forked child."""
        self._closed = True
        if self._session is not None:
            self._session.abandon()
        # they belong to the parent's event loop, and must not be collected here
        _abandoned.extend((self._hearing, self._timer, self._ending))

    def _ring(self) -> None:
        if self._hub.silent:
            self._rest()
            return
        self._timer = asyncio.get_running_loop().call_later(RING_EVERY, self._ring)
        if not self.connected:
            self._hub.ring_all()

    def _rest(self) -> None:
        """Hear nothing until the next start."""
        if self._timer is not None:
            self._timer.cancel()
        if self._hearing is not None:
            self._ending.add(self._hearing)
            self._hearing.add_done_callback(self._ending.discard)
            self._hearing.cancel()
        self._timer = self._hearing = None

    async def _hear(self) -> None:
        pause = _FIRST_PAUSE
        while self._can_hear:
            try:
                session = await open_session(self._options, timeout=ANSWER_WITHIN)
                try:
                    await self._subscribe(session)
                    pause = _FIRST_PAUSE
                    await self._stay(session)
                finally:
                    await self._leave(session)
            except Exception as error:  # noqa: BLE001 - it is said, and tried again
                self._say_down(error)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, nobody has to guess it
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _subscribe(self, session: Session) -> None:
        if session.pooled:
            self._can_hear = False
            logger.info("%s is reached through a pooler: everybody looks each second", self._options.where)
            return
        async with asyncio.timeout(ANSWER_WITHIN):
            for channel in self._channels:
                await session.connection.add_listener(channel, self._heard)
        self._session = session
        self._say_up()
        # what was told while nobody heard it
        self._hub.ring_all()

    async def _stay(self, session: Session) -> None:
        """Stay connected until the server is gone, which raises."""
        loop = asyncio.get_running_loop()
        lost = asyncio.Event()
        session.connection.add_termination_listener(lambda _: lost.set())
        self._heard_at = loop.time()
        while not session.closed:
            try:
                async with asyncio.timeout_at(self._heard_at + CHECK_AFTER):
                    await lost.wait()
            except TimeoutError:
                if loop.time() >= self._heard_at + CHECK_AFTER:
                    await self._check(session)
        raise ConnectionResetError("the server has closed the connection, or takes no writes any more")

    async def _check(self, session: Session) -> None:
        async with self._turn:
            await self._ask(session, "answer", [])
        self._heard_at = asyncio.get_running_loop().time()

    async def _ask(self, session: Session, name: str, parameters: list[object]) -> None:
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                await session.fetch(name, parameters)
        finally:
            # whoever waits for it to end is told so by the driver
            if session.broken:
                session.terminate()

    async def _leave(self, session: Session) -> None:
        if self._session is session:
            self._session = None
        await session.close()

    def _heard(self, connection: object, pid: int, channel: str, payload: object) -> None:  # noqa: ARG002 - the driver's
        self._heard_at = asyncio.get_running_loop().time()
        if self._session is not None and pid == self._session.pid:
            # our own news: everybody here knows it
            return
        topics = topics_in(str(payload))
        if topics is None:
            self._hub.ring_all()
        else:
            self._hub.ring(topics)

    def _say_down(self, error: Exception) -> None:
        if not self._is_down:
            self._is_down = True
            logger.warning(
                "news of %s is not heard (%s): until it is, everybody looks each second",
                self._options.where,
                translate(error, self._options.where),
            )

    def _say_up(self) -> None:
        if self._is_down:
            self._is_down = False
            logger.info("news of %s is heard again", self._options.where)
