"""One connection to a server, and what we know of it."""

import inspect
import itertools
import os
import socket
import ssl
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final, cast

from redis import exceptions as redis
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection

from windlass.stores.redis.options import Options, Place

_numbers: Final = itertools.count(1)
_abandoned: Final[list[object]] = []
_REFUSED: Final = (
    redis.ResponseError,
    redis.BusyLoadingError,
    redis.AuthenticationError,
    redis.AuthorizationError,
)
"""Errors that are a whole reply: nothing is still to come."""
_GONE: Final = "the connection is gone"


class _Line(Connection):
    """A connection that can be looked at and cut off without waiting, which the driver has no way for."""

    def is_open(self) -> bool:
        """Whether the server can be heard, as far as the system knows; the driver notices at the next call."""
        reader, writer = self._reader, self._writer
        return not (reader is None or writer is None or writer.transport.is_closing() or reader.at_eof())

    async def push(self, words: Sequence[bytes | str | int]) -> None:
        """Send a command. The driver's own way connects again where the connection is gone, to whoever is there now."""
        if self._writer is None:
            raise redis.ConnectionError(_GONE)
        self._writer.write(_packed(words))
        await self._writer.drain()

    def cut(self) -> None:
        """Cut it off at once."""
        if self._writer is not None:
            self._writer.transport.abort()
            # else the driver would take it for one that was left open
            self._reader = self._writer = None

    def socket(self) -> Any:  # noqa: ANN401 - of the event loop's own kind
        """Return what it sends through, or None."""
        return None if self._writer is None else self._writer.transport.get_extra_info("socket")


def _packed(words: Sequence[bytes | str | int]) -> bytes:
    """Return a command as the protocol has it, in one piece."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        raw = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
    return b"".join(parts)


class _EncryptedLine(_Line, SSLConnection):
    """One with TLS."""


class Wire:
    """One connection of redis-py.

    One whose reply was left alone, by cancellation or at a deadline, is `broken` and must be terminated: the reply that
    is still to come would be read by the next caller.
    """

    def __init__(self, connection: _Line, place: Place) -> None:
        """Own `connection` from now on."""
        self.place = place
        self.number = next(_numbers)
        self.idle_since = 0.0
        self.outdated = False
        """Whether the server refused a write since it has become a replica."""
        self._connection = connection
        self._under_way = False

    @property
    def closed(self) -> bool:
        """Whether the connection is gone; then nothing of it is left on this side either."""
        if self._connection.is_open():
            return False
        # whoever finds it so may only forget it
        self._connection.cut()
        return True

    @property
    def broken(self) -> bool:
        """Whether nobody may use it again: it is gone, or a reply was left alone."""
        return self._under_way or self.outdated or self.closed

    async def ask(self, *words: bytes | str | int) -> Any:  # noqa: ANN401 - whatever the server answers
        """Send a command and return the reply; raises what the server or the driver does."""
        self._under_way = True
        await self._connection.push(words)
        reply = await self._reply()
        self._under_way = False
        if isinstance(reply, Exception):
            self.outdated = isinstance(reply, redis.ReadOnlyError)
            raise reply
        return reply

    async def hear(self) -> Any:  # noqa: ANN401 - whatever the server tells
        """Return the next message of a connection that has subscribed; this may be cancelled."""
        return await self._next()

    async def send(self, *words: bytes | str | int) -> None:
        """Send a command whose reply is heard like a message."""
        await self._connection.push(words)

    async def close(self) -> None:
        """Take leave of the server."""
        await self._connection.disconnect()

    def terminate(self) -> None:
        """Cut the connection off at once; what is under way on it may or may not be done."""
        self._under_way = True
        self._connection.cut()

    def abandon(self) -> None:
        """Let go of a connection that belongs to the parent process, in its forked child: nothing is sent."""
        theirs = self._connection.socket()
        if theirs is not None and theirs.fileno() >= 0:
            # another socket, that leads nowhere, takes its number
            ours, nobody = socket.socketpair()
            with ours, nobody:
                os.dup2(ours.fileno(), theirs.fileno(), inheritable=False)
        _abandoned.append(self._connection)

    async def _reply(self) -> Any:  # noqa: ANN401 - whatever the server answers
        try:
            return await self._next()
        except _REFUSED as error:
            return error

    async def _next(self) -> Any:  # noqa: ANN401 - whatever comes
        return cast("object", await self._connection.read_response(disconnect_on_error=False))


async def open_wire(options: Options, place: Place) -> Wire:
    """Connect to the server at `place`; raises what the driver raises."""
    tls: dict[str, Any] = {}
    if options.tls:
        tls = {"ssl_ca_certs": options.tls_ca, "ssl_certfile": options.tls_cert, "ssl_keyfile": options.tls_key}
    made = (_EncryptedLine if options.tls else _Line)(
        host=place.host,
        port=place.port,
        db=options.database,
        username=options.user,
        password=options.password,
        client_name="windlass",
        # deadlines are those of whoever calls, and repeating is decided where it is known what was done
        socket_timeout=None,
        socket_connect_timeout=None,
        protocol=2,
        **_introduction(),
        **tls,
    )
    try:
        await Connection.connect(made)
    except BaseException as error:
        await made.disconnect(nowait=True)
        hidden = _hidden(error) if options.tls else None
        if hidden is not None:
            raise hidden from None
        raise
    return Wire(made, place)


@cache
def _introduction() -> Mapping[str, Any]:
    """Return as what the driver shows itself to the server: left alone it reads that from disk for every connection."""
    driver: Any = AbstractConnection
    if "driver_info" not in inspect.signature(driver).parameters:
        return {}
    return {"driver_info": import_module("redis.driver_info").DriverInfo()}


def _hidden(error: BaseException) -> Exception | None:
    """Return why there is no encrypted connection, which the driver keeps behind an error of its own."""
    met = error.__context__
    while met is not None and not isinstance(met, ssl.SSLError | FileNotFoundError):
        met = met.__context__
    return met
