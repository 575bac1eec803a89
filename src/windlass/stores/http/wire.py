"""One connection to a server, and what we know of it."""

import asyncio
import itertools
import os
import socket
from collections import deque
from typing import Final, cast

from windlass.kit.deadline import Deadline
from windlass.stores.http.certificates import context_of
from windlass.stores.http.options import Options
from windlass.stores.http.reply import MOST, NotHTTP, Reader, Reply, ReplyTooLarge

MOST_UNHEARD: Final = 1 << 20
"""Bytes of a stream that may wait here until somebody hears them; the server has to wait with more."""
_OK: Final = 200
_ONE_PIECE: Final = 64 << 10
_numbers: Final = itertools.count(1)
_abandoned: Final[list[object]] = []


class Wire(asyncio.Protocol):
    """One connection that speaks HTTP/1.1, for one request at a time.

    One whose reply was left alone, by cancellation or at a deadline, is `broken` and must be terminated: the reply that
    is still to come would be read by the next caller.
    """

    def __init__(self, most: int = MOST) -> None:
        """Wait to be connected; a reply may have `most` bytes."""
        self.number = next(_numbers)
        self.idle_since = 0.0
        self.outdated = False
        self.serving: str | None = None
        """The process of `windlass serve` that has answered here last."""
        self._transport: asyncio.Transport
        self._reader = Reader(self, most)
        self._waiting: asyncio.Future[Reply] | None = None
        self._under_way = False
        self._in_pieces = False
        self._pieces: deque[bytes] = deque()
        self._unheard = 0
        self._hearing: asyncio.Future[None] | None = None
        self._lost: Exception | None = None
        self._abandoned = False
        self._gone = asyncio.Event()
        self._deadline = Deadline(self._give_up)

    @property
    def closed(self) -> bool:
        """Whether the connection is gone."""
        return self._lost is not None or self._transport.is_closing()

    @property
    def broken(self) -> bool:
        """Whether nobody may use it again: it is gone, or a reply was left alone."""
        return self._under_way or self.closed

    async def ask(
        self, method: bytes, target: bytes, headers: bytes, body: bytes = b"", *, deadline: float | None = None
    ) -> Reply:
        """Send a request and return the whole reply; `headers` are lines with their ends, without the body's length.

        Raises an `OSError` when the connection was lost, a `TimeoutError` when no reply has come by `deadline` (of the
        running loop's clock), `NotHTTP` or `ReplyTooLarge`.
        """
        if self._lost is not None:
            raise self._lost
        loop = asyncio.get_running_loop()
        self._under_way = True
        self._waiting = loop.create_future()
        if deadline is not None:
            self._deadline.set(deadline)
        length = b"" if method == b"GET" else b"Content-Length: %d\r\n" % len(body)
        head = b"%b %b HTTP/1.1\r\n%b%b\r\n" % (method, target, headers, length)
        if len(body) <= _ONE_PIECE:
            self._transport.write(head + body)
        else:
            self._transport.write(head)
            self._transport.write(body)
        return await self._waiting

    async def begin(self, target: bytes, headers: bytes) -> Reply:
        """Ask for a stream: return the head of a reply that is one, whose body is heard, or a whole reply that is none.

        Nobody can ask anything else here afterwards.
        """
        self._in_pieces = True
        reply = await self.ask(b"GET", target, headers)
        self._under_way = True
        return reply

    async def hear(self) -> bytes:
        """Return what came of a stream since the last time; this may be cancelled. Its end is a lost connection."""
        while not self._pieces:
            if self._lost is not None:
                raise self._lost
            self._hearing = asyncio.get_running_loop().create_future()
            await self._hearing
        heard = b"".join(self._pieces)
        self._pieces.clear()
        self._unheard = 0
        if not self.closed:
            self._transport.resume_reading()
        return heard

    async def close(self) -> None:
        """Hang up, and wait until nothing of it is left."""
        self.terminate()
        await self._gone.wait()

    def terminate(self) -> None:
        """Cut the connection off at once; what is under way on it may or may not be done."""
        self._under_way = True
        if not self._abandoned:
            self._transport.abort()

    def abandon(self) -> None:
        """Let go of a connection that belongs to the parent process, in its forked child: nothing is sent."""
        theirs = self._transport.get_extra_info("socket")
        if theirs is not None and theirs.fileno() >= 0:
            # another socket, that leads nowhere, takes its number
            ours, nobody = socket.socketpair()
            with ours, nobody:
                os.dup2(ours.fileno(), theirs.fileno(), inheritable=False)
        self._abandoned = True
        _abandoned.append(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to speak."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Read what the server sends."""
        if self._lost is not None:
            return
        if not self._under_way:
            self._fail(ConnectionResetError("the server said what nobody had asked for"))
            return
        try:
            self._reader.feed(data)
        except (NotHTTP, ReplyTooLarge) as error:
            # a server that was understood before is the right one, whatever has befallen this connection
            known = self.serving is not None and isinstance(error, NotHTTP)
            self._fail(ConnectionResetError(f"a reply is garbled: {error}") if known else error)

    def eof_received(self) -> bool:
        """Know that the server has hung up."""
        self._reader.end()
        self._fail(ConnectionResetError("the server has closed the connection"))
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits."""
        self._fail(exc or ConnectionResetError("the connection was closed"))
        self._deadline.close()
        self._gone.set()

    def reply_begins(self) -> None:
        """Give up a connection that says more than was asked for: the next caller would take it for an answer."""
        if self._waiting is None:
            self._fail(ConnectionResetError("the server has answered twice"))

    def head_came(self, reply: Reply) -> bool:
        """Take a reply whose body is still to come."""
        streams = self._in_pieces and reply.status == _OK
        if streams:
            self._answer(reply)
        return streams

    def piece_came(self, piece: bytes) -> None:
        """Keep a piece of a stream until it is heard."""
        self._pieces.append(piece)
        self._unheard += len(piece)
        if self._unheard > MOST_UNHEARD:
            self._transport.pause_reading()
        self._wake()

    def reply_came(self, reply: Reply, *, last: bool) -> None:
        """Give a whole reply to whoever asked; the end of a stream is that of the connection."""
        if self._waiting is None:
            self._fail(ConnectionResetError("the stream has ended"))
            return
        self._answer(reply)
        # a caller who went away meanwhile does no harm any more: all of the reply is here
        self._under_way = last

    def _give_up(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(TimeoutError("no reply has come in time"))

    def _answer(self, reply: Reply) -> None:
        self.serving = reply.serving or self.serving
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(reply)
        self._waiting = None

    def _fail(self, error: Exception) -> None:
        """Give the connection up, for the first reason that is met."""
        if self._lost is None:
            self._lost = error
            self._under_way = True
            self._transport.abort()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(self._lost)
        self._waiting = None
        self._wake()

    def _wake(self) -> None:
        if self._hearing is not None and not self._hearing.done():
            self._hearing.set_result(None)


async def open_wire(options: Options, *, most: int = MOST) -> Wire:
    """Connect to the server; raises what the system does."""
    _, wire = await asyncio.get_running_loop().create_connection(
        lambda: Wire(most), options.host, options.port, ssl=context_of(options)
    )
    return wire
