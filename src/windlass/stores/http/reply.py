"""What a server answers, read from bytes as they come."""

from dataclasses import dataclass
from typing import Final, Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

MOST: Final = 64 << 20
"""Bytes that a reply may have, with all that belongs to it."""
MOST_HEAD: Final = 64 << 10
_FIRST_FINAL, _FIRST_REFUSAL = 200, 300
"""Statuses below the first only announce another reply."""


class NotHTTP(Exception):
    """Something answered that is no HTTP."""


class ReplyTooLarge(Exception):
    """A reply has more bytes than anybody would want to hold."""

    def __init__(self, most: int) -> None:
        super().__init__(f"a reply, or the head of one, has more than {most:,} bytes")


@dataclass(slots=True)
class Reply:
    """What was answered; `serving` names the process of `windlass serve`, and is None where none has answered."""

    status: int
    serving: str | None
    retry_after: str | None
    location: str | None
    body: bytes


class Reads(Protocol):
    """Who is told what was read."""

    def reply_begins(self) -> None:
        """Know that the first byte of a reply has come."""
        ...

    def head_came(self, reply: Reply) -> bool:
        """Take a reply whose body is still to come; return whether that is wanted piece by piece."""
        ...

    def piece_came(self, piece: bytes) -> None:
        """Take a piece of a body that is wanted so."""
        ...

    def reply_came(self, reply: Reply, *, last: bool) -> None:
        """Take a whole reply; `last` when the server hangs up after it."""
        ...


class Reader:
    """Reads the replies of one connection, each of at most `most` bytes, and tells `owner`."""

    def __init__(self, owner: Reads, most: int) -> None:
        """Begin before the first reply."""
        self._owner = owner
        self._most = most
        self._parser = HttpResponseParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._head: Reply | None = None
        self._pieces: list[bytes] = []
        self._in_pieces = False
        self._received = 0

    def feed(self, data: bytes) -> None:
        """Read on; raises `NotHTTP` or `ReplyTooLarge`, and then nothing more can be read."""
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            message = f"{error}, at {data[:20]!r}"
            raise NotHTTP(message) from error
        if self._received > (MOST_HEAD if self._head is None else self._most) and not self._in_pieces:
            raise ReplyTooLarge(MOST_HEAD if self._head is None else self._most)

    def end(self) -> None:
        """Know that nothing more comes: a refusal that has no length ends here, of anything else a part is missing."""
        unmeasured = not self._headers.keys() & {b"content-length", b"transfer-encoding"}
        if self._head is not None and self._head.status >= _FIRST_REFUSAL and unmeasured:
            self.on_message_complete()

    def on_message_begin(self) -> None:
        """Begin a reply."""
        self._headers = {}
        self._head = None
        self._pieces = []
        self._owner.reply_begins()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, also one that stands behind the body."""
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Know status and headers."""
        headers = self._headers
        self._head = Reply(
            self._parser.get_status_code(),
            _text(headers.get(b"windlass-serving")),
            _text(headers.get(b"retry-after")),
            _text(headers.get(b"location")),
            b"",
        )
        if self._head.status >= _FIRST_FINAL:
            self._in_pieces = self._owner.head_came(self._head)

    def on_body(self, piece: bytes) -> None:
        """Keep a part of the body, or hand it over."""
        if self._in_pieces:
            self._owner.piece_came(piece)
        else:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """Hand a whole reply over."""
        reply = self._head
        if reply is None or reply.status < _FIRST_FINAL:
            return
        reply.body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._head = None
        self._pieces = []
        self._received = 0
        self._owner.reply_came(reply, last=not self._parser.should_keep_alive())


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("ascii", "replace")
