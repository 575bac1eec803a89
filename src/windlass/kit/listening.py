"""Hears of other processes' news for as long as somebody here listens, and looks each second when it cannot."""

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from typing import Any, Final

from windlass.core.errors import WindlassError
from windlass.core.topics import Hub

RING_EVERY: Final = 1.0
"""How often everybody is rung while nothing can be heard, in seconds."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_abandoned: Final[list[object]] = []


class Listening(ABC):
    """Rings `hub` at news, for as long as somebody listens to the hub; while nothing is heard, each second.

    A store writes how it hears; what was lost is heard again after a pause, for ever. Belongs to one event loop.
    """

    check_after: float = 5.0
    """Seconds of silence after which a server that says nothing by itself is asked whether it is still there."""
    answer_within: float = 3.0
    """Seconds that a server has to answer."""

    def __init__(self, hub: Hub, *, where: str, logger: logging.Logger) -> None:
        """Hear nothing yet; what befalls the news of `where` is said in `logger`."""
        self._hub = hub
        self._can_hear = True
        """Whether to try at all."""
        self._where = where
        self._logger = logger
        self._pause = _FIRST_PAUSE
        self._hearing: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_down = False
        self._closed = False

    @property
    @abstractmethod
    def connected(self) -> bool:
        """Whether news is heard at once."""

    @abstractmethod
    async def _listen(self) -> None:
        """Connect, say so by `_heard_again`, and ring the hub at news until the connection is lost, which raises."""

    @abstractmethod
    def _meaning(self, error: Exception) -> WindlassError:
        """Return why nothing is heard, in words for people."""

    @abstractmethod
    def _let_go(self) -> None:
        """Let go of the parent's connection, in a forked child."""

    def start(self) -> None:
        """Begin to hear; called whenever somebody begins to listen to the hub."""
        if self._closed or self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(RING_EVERY, self._ring)
        if self._can_hear:
            self._hearing = loop.create_task(self._hear(), name="windlass listener")

    async def close(self) -> None:
        """Hear nothing more."""
        self._closed = True
        self._rest()
        if self._ending:
            await asyncio.wait(self._ending)

    def abandon(self) -> None:
        """Let go of what belongs to the parent, in a forked child."""
        self._closed = True
        self._let_go()
        # they belong to the parent's event loop, and must not be collected here before the very end
        _abandoned.extend((self._hearing, self._timer, self._ending))
        for task in (self._hearing, *self._ending):
            _leave_unsaid(task)

    def _heard_again(self) -> None:
        """Say that news is heard from now on."""
        self._pause = _FIRST_PAUSE
        if self._is_down:
            self._is_down = False
            self._logger.info("news of %s is heard again", self._where)
        # what was told while nobody heard it
        self._hub.ring_all()

    def _ring(self) -> None:
        if self._hub.silent:
            self._rest()
            return
        self._timer = asyncio.get_running_loop().call_later(RING_EVERY, self._ring)
        self._ring_unheard()

    def _ring_unheard(self) -> None:
        """Let everybody look whose news is not heard."""
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
        self._pause = _FIRST_PAUSE
        while self._can_hear:
            try:
                await self._listen()
            except Exception as error:  # noqa: BLE001 - it is said, and tried again
                self._say_down(error)
            await asyncio.sleep(self._pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, nobody has to guess it
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _say_down(self, error: Exception) -> None:
        if not self._is_down:
            self._is_down = True
            self._logger.warning(
                "news of %s is not heard (%s): until it is, everybody looks each second",
                self._where,
                self._meaning(error),
            )


def _leave_unsaid(task: Any) -> None:  # noqa: ANN401 - the attribute is one of asyncio's own
    """Let nobody complain, when this process ends, that a task of its parent did not."""
    if task is not None:
        task._log_destroy_pending = False  # noqa: SLF001 - as asyncio does itself with what it leaves alone
