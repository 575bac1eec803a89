"""The protocol of Redis on one connection: commands go out, replies and messages come in, in their order."""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, cast

import hiredis

from windlass.core.errors import StoreUnavailable
from windlass.kit.deadline import Deadline
from windlass.stores.redis.options import Options, Place

Word = bytes | str | int
_NOT_ALL: Final = object()
"""Stands for a reply of which not everything has come."""
_GONE: Final = "the server has closed the connection"
_KEPT_ALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""Seconds of silence and probes after which the system gives a server up; it does not have each of them everywhere."""
LEAVE_WITHIN: Final = 1.0
_pack: Final[Callable[[tuple[Word, ...]], bytes]] = cast("Any", hiredis).pack_command


class Refused(Exception):
    """What a server answers in place of what it was asked for: a word in capitals, and what it says to people."""

    def __init__(self, text: str) -> None:
        super().__init__(text.removeprefix("ERR "))
        self.code = text.partition(" ")[0]


class Line(asyncio.Protocol):
    """One connection; belongs to one event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = hiredis.Reader(replyError=Refused, notEnoughData=_NOT_ALL)
        self._come: deque[object] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._lost: Exception | None = None
        self._deadline = Deadline(self._give_up)

    @property
    def is_open(self) -> bool:
        """Whether the server can be heard, as far as the system knows."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def has_unread(self) -> bool:
        """Whether something has come that nobody has taken."""
        return bool(self._come)

    def send(self, *words: Word) -> None:
        """Send a command. What the system does not take at once goes out while its reply is waited for."""
        if self._transport is None or self._transport.is_closing():
            raise self._loss()
        self._transport.write(_pack(words))

    async def next(self, deadline: float | None = None) -> Any:  # noqa: ANN401 - whatever comes
        """Return the next reply or message, also a `Refused`; whoever is cancelled here has taken none.

        Raises `TimeoutError` at `deadline`, by the clock of the event loop.
        """
        if not self._come:
            if not self.is_open:
                raise self._loss()
            self._waiter = self._loop.create_future()
            if deadline is not None:
                self._deadline.set(deadline)
            await self._waiter
            if not self._come:
                raise self._loss()
        return self._come.popleft()

    async def close(self) -> None:
        """Take leave of the server; one that does not take leave in turn, as TLS wants it, is cut off."""
        if self._transport is not None:
            self._transport.close()
            try:
                async with asyncio.timeout(LEAVE_WITHIN):
                    await asyncio.shield(self._ended)
            except TimeoutError:
                self.cut()

    def cut(self) -> None:
        """Cut it off at once."""
        if self._transport is not None:
            self._transport.abort()

    def socket(self) -> Any:  # noqa: ANN401 - of the event loop's own kind
        """Return what it sends through, or None."""
        return None if self._transport is None else self._transport.get_extra_info("socket")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take replies apart, and wake whoever waits for the first."""
        reader = self._reader
        reader.feed(data)
        try:
            while (reply := reader.gets()) is not _NOT_ALL:
                self._come.append(reply)
        except hiredis.ProtocolError as error:
            self._lost = error
            self.cut()
        # of a long reply only the beginning may be there
        if self._come:
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits that nothing more will come."""
        self._lost = self._lost or exc
        self._deadline.close()
        if not self._ended.done():
            self._ended.set_result(None)
        self._wake()

    def _give_up(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(TimeoutError())

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _loss(self) -> Exception:
        """Return why the connection is gone; an error that somebody holds on to must not be held here too."""
        lost, self._lost = self._lost, None
        return lost or ConnectionError(_GONE)


async def open_line(options: Options, place: Place) -> Line:
    """Connect to the server at `place` and log in; raises what the system raises, `Refused` or `StoreUnavailable`."""
    loop = asyncio.get_running_loop()
    trust = _trust_of(options) if options.tls else None
    _, line = await loop.create_connection(Line, place.host, place.port, ssl=trust)
    try:
        _keep_alive(line.socket())
        await _log_in(line, options)
    except BaseException:
        line.cut()
        raise
    return line


def _trust_of(options: Options) -> ssl.SSLContext:
    """Return whom to trust: made once, and again when one of the files was replaced."""
    files = (options.tls_ca, options.tls_cert, options.tls_key)
    try:
        return _trust(*files, tuple(Path(file).stat().st_mtime_ns for file in files if file is not None))
    except ssl.SSLError:
        raise
    except OSError as error:
        message = (
            f"no encrypted connection to {options.where}: {error.strerror}: check that the files of ?tls_ca=, "
            "?tls_cert= and ?tls_key= are there, and that this user may read them"
        )
        raise StoreUnavailable(message) from error


@lru_cache(maxsize=8)
def _trust(ca: str | None, cert: str | None, key: str | None, _changed: tuple[int, ...]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if cert is not None:
        context.load_cert_chain(cert, key)
    if ca is not None:
        context.load_verify_locations(ca)
    return context


def _keep_alive(ours: Any) -> None:  # noqa: ANN401 - of the event loop's own kind
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEPT_ALIVE.items():
        if hasattr(socket, name):
            ours.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def _log_in(line: Line, options: Options) -> None:
    """Say who we are and which database is meant, in one trip."""
    commands: list[tuple[Word, ...]] = [("CLIENT", "SETNAME", "windlass")]
    if options.user is not None:
        commands.insert(0, ("AUTH", options.user, options.password or ""))
    elif options.password:
        commands.insert(0, ("AUTH", options.password))
    if options.database:
        commands.append(("SELECT", options.database))
    for command in commands:
        line.send(*command)
    replies = [await line.next() for _ in commands]
    for reply in replies:
        if isinstance(reply, Refused):
            raise reply
