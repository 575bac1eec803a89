"""Hears of other processes' news, through a connection that does little else."""

import asyncio
import logging

from windlass.core.errors import WindlassError
from windlass.core.topics import Hub
from windlass.kit.listening import Listening
from windlass.stores.postgres.channels import channels_of, topics_in
from windlass.stores.postgres.faults import translate
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.session import Session, open_session
from windlass.stores.postgres.work import NONE, Parameters

logger = logging.getLogger("windlass.postgres")


class Listener(Listening):
    """Rings `hub` at the news of other processes.

    Behind a pooler, which hands no notification on, and with `?notify=off` everybody is rung each second, and no more.
    """

    def __init__(self, options: Options, hub: Hub, *, store_id: str, pooled: bool) -> None:
        """Open nothing yet."""
        super().__init__(hub, where=options.where, logger=logger)
        self._options = options
        self._channels = channels_of(store_id)
        self._can_hear = options.notify and not pooled
        self._session: Session | None = None
        self._turn = asyncio.Lock()
        self._heard_at = 0.0

    @property
    def connected(self) -> bool:
        """Whether news is heard at once."""
        return self._session is not None and not self._session.closed

    async def tell(self, channel: str, payload: str) -> bool:
        """Send a notification through this connection, which does not heed its own; False when there is none."""
        async with self._turn:
            session = self._session
            if session is None or session.broken:
                return False
            await self._ask(session, "notify", {"channel": channel, "message": payload})
        return True

    def _let_go(self) -> None:
        if self._session is not None:
            self._session.abandon()

    async def _listen(self) -> None:
        session = await open_session(self._options, timeout=self.answer_within)
        try:
            await self._subscribe(session)
            await self._stay(session)
        finally:
            await self._leave(session)

    async def _subscribe(self, session: Session) -> None:
        if session.pooled:
            self._can_hear = False
            logger.info("%s is reached through a pooler: everybody looks each second", self._options.where)
            return
        async with asyncio.timeout(self.answer_within):
            for channel in self._channels:
                await session.connection.add_listener(channel, self._heard)
        self._session = session
        self._heard_again()

    async def _stay(self, session: Session) -> None:
        """Stay connected until the server is gone, which raises."""
        loop = asyncio.get_running_loop()
        lost = asyncio.Event()
        session.connection.add_termination_listener(lambda _: lost.set())
        self._heard_at = loop.time()
        while not session.closed:
            try:
                async with asyncio.timeout_at(self._heard_at + self.check_after):
                    await lost.wait()
            except TimeoutError:
                if loop.time() >= self._heard_at + self.check_after:
                    await self._check(session)
        raise ConnectionResetError("the server has closed the connection, or takes no writes any more")

    async def _check(self, session: Session) -> None:
        async with self._turn:
            await self._ask(session, "answer")
        self._heard_at = asyncio.get_running_loop().time()

    async def _ask(self, session: Session, name: str, parameters: Parameters = NONE) -> None:
        try:
            session.deadline.set(asyncio.get_running_loop().time() + self.answer_within)
            await session.fetch(name, parameters)
        finally:
            session.deadline.clear()
            # whoever waits for it to end is told so by the driver
            if session.broken or session.outdated:
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

    def _meaning(self, error: Exception) -> WindlassError:
        return translate(error, self._options.where)
