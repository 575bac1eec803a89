"""A few connections that the calls of one event loop share."""

import asyncio
import logging
import os
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Final, Generic, Protocol, TypeVar

from windlass.core.errors import ClientClosed, StoreUnavailable, WindlassError
from windlass.kit.turns import Turns

logger = logging.getLogger("windlass")

_IDLE_FOR: Final = 60.0
_CLOSE_WITHIN: Final = 5.0
_ONE_TRY: Final = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class Session(Protocol):
    """One connection to a server; `number` rises with the time that it was opened."""

    number: int
    idle_since: float

    @property
    def closed(self) -> bool:
        """Whether the connection is gone."""
        ...

    @property
    def broken(self) -> bool:
        """Whether nobody may use it again."""
        ...

    @property
    def outdated(self) -> bool:
        """Whether the server is no longer the one to talk to: older connections are not either."""
        ...

    async def close(self) -> None:
        """Take leave of the server."""
        ...

    def terminate(self) -> None:
        """Cut the connection off at once."""
        ...

    def abandon(self) -> None:
        """Let go of a connection that belongs to the parent process, in its forked child."""
        ...


S = TypeVar("S", bound=Session)


class Connections(Generic[S]):
    """At most `most` sessions, opened by `opens` when they are needed; belongs to one event loop.

    The session that was used last is given out first, so that those that are not needed stay idle and are closed; who
    has to wait is served in turn. After a fork the child lets go of the parent's and opens its own.
    """

    def __init__(
        self,
        opens: Callable[[float], Awaitable[S]],
        *,
        most: int,
        where: str,
        is_lost: Callable[[BaseException], bool],
        translate: Callable[[BaseException, str], WindlassError],
        patient: bool = True,
    ) -> None:
        """Open nothing yet; `opens` is given how many seconds it has, and when `patient` tried until the deadline.

        After an error that `is_lost` the older connections are not trusted either. `translate` makes an error of the
        driver one that users see, about what is at `where`.
        """
        self._patient = patient
        self._opens = opens
        self._most = most
        self._where = where
        self._is_lost = is_lost
        self._translate = translate
        self._pid = os.getpid()
        self._turns = Turns(most)
        self._idle: list[S] = []
        self._lent: set[S] = set()
        self._distrusted = 0
        self._closer: asyncio.TimerHandle | None = None
        self._closed = False
        self._all_back = asyncio.Event()
        self.met: str | None = None
        """What was met last where a session was to be opened, as users are told; None before that."""

    @asynccontextmanager
    async def session(self, deadline: float, *, aside: bool = False) -> AsyncGenerator[S]:
        """Lend a session that is there by `deadline`; see `take`."""
        with self.lent(await self.take(deadline, aside=aside)) as session:
            yield session

    def lent(self, session: S) -> "_Lent[S]":
        """Give a session that was taken back at the end of the `with` block, after the error that leaves it."""
        return _Lent(self, session)

    async def close(self) -> None:
        """Close all sessions; those in use are waited for a few seconds, then cut off."""
        if self._forked():
            return
        self._closed = True
        if self._closer is not None:
            self._closer.cancel()
        idle, self._idle = self._idle, []
        await asyncio.gather(*[session.close() for session in idle])
        if self._lent:
            try:
                async with asyncio.timeout(_CLOSE_WITHIN):
                    await self._all_back.wait()
            except TimeoutError:
                logger.warning("%d calls to %s did not end: they are cut off", len(self._lent), self._where)
        for session in list(self._lent):
            session.terminate()
        # what was cut off is closed in the next turn of the loop
        await asyncio.sleep(0)

    def abandon(self) -> None:
        """Let go of the parent's sessions, in a forked child; its own are opened when they are needed."""
        if self._forked():
            self._leave_to_parent()

    def take_idle(self, *, aside: bool = False) -> S | None:
        """Return a session as `take` does, if one is idle and nobody waits for it: a coroutine less."""
        if self._forked():
            self._leave_to_parent()
        self._check_open()
        if not self._idle or not self._turns.take_free():
            return None
        session = self._first_idle(aside=aside)
        if session is None:
            self._turns.give()
        else:
            self._lent.add(session)
        return session

    async def take(self, deadline: float, *, aside: bool = False) -> S:
        """Return a session that is nobody else's until it is given back, by `deadline` of the running loop's clock.

        With `aside` the one that was used last, if there is another, is left to those who wait for their answer.
        Raises `StoreUnavailable` when none was free or could be opened by then. A session that a statement was left
        alone on is cut off, and never given to anybody again.
        """
        session = self.take_idle(aside=aside)
        if session is not None:
            return session
        if not self._turns.take_free():
            await self._wait_for_turn(deadline)
        try:
            session = self._first_idle(aside=aside) or await self._open(deadline)
            self._check_open(session)
        except BaseException:
            self._turns.give()
            raise
        self._lent.add(session)
        return session

    def give(self, session: S, error: BaseException | None = None) -> None:
        """Take a session back after `error`, if one was met."""
        if self._forked():
            return
        if session.outdated or (error is not None and self._is_lost(error)):
            self._distrust(session)
        self._lent.discard(session)
        self._turns.give()
        if session.broken or session.number <= self._distrusted or self._closed:
            session.terminate()
        else:
            self._keep(session)
        if self._closed and not self._lent:
            self._all_back.set()

    def _forked(self) -> bool:
        return self._pid != os.getpid()

    def _leave_to_parent(self) -> None:
        for session in (*self._idle, *self._lent):
            session.abandon()
        self._pid = os.getpid()
        self._turns = Turns(self._most)
        self._idle, self._lent, self._closer = [], set(), None

    async def _wait_for_turn(self, deadline: float) -> None:
        try:
            await self._turns.wait(deadline)
        except TimeoutError:
            raise self._none_free() from None
        if self._closed:
            self._turns.give()
            raise ClientClosed

    def _check_open(self, opened: S | None = None) -> None:
        if self._closed:
            if opened is not None:
                opened.terminate()
            raise ClientClosed

    def _no_answer(self) -> WindlassError:
        return StoreUnavailable(
            f"{self._where} did not answer in time: check host, port, TLS and firewall of the server", retryable=True
        )

    def _none_free(self) -> WindlassError:
        return StoreUnavailable(
            f"all {self._most} connections to {self._where} were in use until the deadline: "
            "make fewer calls at once, or allow more with ?connections=",
            retryable=True,
        )

    def _first_idle(self, *, aside: bool = False) -> S | None:
        while self._idle:
            session = self._idle.pop(-2 if aside and len(self._idle) > 1 else -1)
            if not session.broken:
                return session
            # the server has hung up while nobody used it
            session.terminate()
        return None

    async def _open(self, deadline: float) -> S:
        loop = asyncio.get_running_loop()
        pause = _FIRST_PAUSE
        met: WindlassError | None = None
        while True:
            try:
                return await self._opens(min(_ONE_TRY, deadline - loop.time()))
            except TimeoutError:
                met = met or self._no_answer()
            except Exception as error:  # noqa: BLE001 - whoever asked is told, in our words
                met = self._translate(error, self._where)
            self.met = str(met)
            left = deadline - loop.time()
            if left <= 0 or not self._patient or not (isinstance(met, StoreUnavailable) and met.retryable):
                raise met
            # many that lost the server together must not come back together
            await asyncio.sleep(min(left, pause * random.uniform(0.5, 1.0)))  # noqa: S311 - nobody has to guess it
            pause = min(pause * 2, _LONGEST_PAUSE)
            self._check_open()
            if (session := self._first_idle()) is not None:
                return session

    def _distrust(self, session: S) -> None:
        """Expect that what befell this connection has befallen the older ones too, as a restart of the server does."""
        session.terminate()
        self._distrusted = max(self._distrusted, session.number)
        for idle in self._idle:
            if idle.number <= self._distrusted:
                idle.terminate()
        self._idle = [idle for idle in self._idle if not idle.closed]

    def _keep(self, session: S) -> None:
        session.idle_since = asyncio.get_running_loop().time()
        self._idle.append(session)
        if len(self._idle) > 1 and self._closer is None:
            self._closer = asyncio.get_running_loop().call_later(_IDLE_FOR, self._close_unused)

    def _close_unused(self) -> None:
        """Close what nobody has needed for long; the one that was used last stays."""
        self._closer = None
        now = asyncio.get_running_loop().time()
        unused = [session for session in self._idle[:-1] if now - session.idle_since >= _IDLE_FOR]
        for session in unused:
            session.terminate()
        self._idle = [session for session in self._idle if not session.closed]
        if len(self._idle) > 1:
            self._closer = asyncio.get_running_loop().call_later(_IDLE_FOR, self._close_unused)


class _Lent(Generic[S]):
    """A session for as long as somebody is in the `with` block."""

    __slots__ = ("_connections", "_session")

    def __init__(self, connections: Connections[S], session: S) -> None:
        self._connections = connections
        self._session = session

    def __enter__(self) -> S:
        return self._session

    def __exit__(
        self, kind_of_error: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connections.give(self._session, error)
