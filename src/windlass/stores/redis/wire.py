"""One connection to a server, and what we know of it."""

import itertools
import os
import socket
import ssl
from typing import Any, Final

import hiredis

from windlass.stores.redis.line import Line, Refused, Word, open_line
from windlass.stores.redis.options import Options, Place

_numbers: Final = itertools.count(1)
_UNASKED: Final = "the server has sent a reply that nobody had asked for"
_abandoned: Final[list[object]] = []


class Wire:
    """One connection, and one caller at a time.

    One whose reply was left alone, by cancellation or at a deadline, is `broken` and must be terminated: the reply that
    is still to come would be read by the next caller.
    """

    def __init__(self, line: Line) -> None:
        """Own `line` from now on."""
        self.number = next(_numbers)
        self.idle_since = 0.0
        self.outdated = False
        """Whether the server refused a write since it has become a replica."""
        self._line = line
        self._under_way = False

    @property
    def closed(self) -> bool:
        """Whether the connection is gone."""
        return not self._line.is_open

    @property
    def broken(self) -> bool:
        """Whether nobody may use it again: it is gone, or a reply was left alone, or came that nobody asked for."""
        return self._under_way or self.outdated or self.closed or self._line.has_unread

    async def ask(self, *words: Word, deadline: float | None = None) -> Any:  # noqa: ANN401 - whatever the server answers
        """Send a command and return the reply; raises `Refused`, or an `OSError` where there is none by `deadline`."""
        self._under_way = True
        if self._line.has_unread:
            # it would be taken for the answer to this
            self._line.cut()
            raise ConnectionError(_UNASKED)
        self._line.send(*words)
        try:
            reply = await self._line.next(deadline)
        except (hiredis.ProtocolError, ssl.SSLError) as error:
            # it was in order when we logged in, so this is a loss like any other: what was sent may have been done
            message = f"what the server sent could not be read: {error}"
            raise ConnectionError(message) from error
        self._under_way = False
        if isinstance(reply, Refused):
            self.outdated = reply.code == "READONLY"
            raise reply
        return reply

    async def hear(self, deadline: float) -> Any:  # noqa: ANN401 - whatever the server tells
        """Return the next message of a connection that has subscribed; raises `TimeoutError` where there is none."""
        message = await self._line.next(deadline)
        if isinstance(message, Refused):
            raise message
        return message

    def send(self, *words: Word) -> None:
        """Send a command whose reply is heard like a message."""
        self._line.send(*words)

    async def close(self) -> None:
        """Take leave of the server."""
        await self._line.close()

    def terminate(self) -> None:
        """Cut the connection off at once; what is under way on it may or may not be done."""
        self._under_way = True
        self._line.cut()

    def abandon(self) -> None:
        """Let go of a connection that belongs to the parent process, in its forked child: nothing is sent."""
        theirs = self._line.socket()
        if theirs is not None and theirs.fileno() >= 0:
            # another socket, that leads nowhere, takes its number
            ours, nobody = socket.socketpair()
            with ours, nobody:
                os.dup2(ours.fileno(), theirs.fileno(), inheritable=False)
        _abandoned.append(self._line)


async def open_wire(options: Options, place: Place) -> Wire:
    """Connect to the server at `place`; raises what the system raises, or a `Refused`."""
    return Wire(await open_line(options, place))
