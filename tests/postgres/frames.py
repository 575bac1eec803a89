"""Postgres's protocol as far as the proxy reads it: where a message ends, what a request runs, when it is answered."""

import struct
from asyncio import IncompleteReadError, StreamReader
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_LENGTH: Final = struct.Struct("!I")
_NO_ENCRYPTION: Final = {80877103, 80877104}
QUERY, PARSE, BIND, DESCRIBE, EXECUTE, CLOSE, SYNC = b"Q", b"P", b"B", b"D", b"E", b"C", b"S"
PARTS: Final = frozenset({PARSE, BIND, DESCRIBE, EXECUTE, CLOSE})
"""Messages that wait for those after them: a request can still be dropped as a whole."""
READY: Final = b"Z"


class Frame(NamedTuple):
    """One message: its letter, what it says, and the whole of it as it came."""

    letter: bytes
    body: bytes
    whole: bytes


class Request(NamedTuple):
    """All that a client sends until it waits for an answer: the statements it names, and whether it runs them.

    `client` is the same for all requests of one connection.
    """

    text: str
    runs: bool
    client: int = 0


async def read_startup(reader: StreamReader) -> tuple[bytes, bool]:
    """Return a client's first message, and whether it only asks for encryption."""
    head = await reader.readexactly(4)
    body = await reader.readexactly(_LENGTH.unpack(head)[0] - 4)
    return head + body, len(body) == 4 and _LENGTH.unpack(body)[0] in _NO_ENCRYPTION


async def read_frame(reader: StreamReader) -> Frame | None:
    """Return the next message, or None at the end of the stream."""
    try:
        head = await reader.readexactly(5)
        body = await reader.readexactly(_LENGTH.unpack(head[1:])[0] - 4)
    except IncompleteReadError:
        return None
    return Frame(head[:1], body, head + body)


def raising(sqlstate: str) -> bytes:
    """Return a request that fails with `sqlstate` and does nothing else."""
    text = f"do $$ begin raise exception 'the proxy says so' using errcode = '{sqlstate}'; end $$"
    body = text.encode() + b"\0"
    return QUERY + _LENGTH.pack(len(body) + 4) + body


@dataclass
class Requests:
    """The messages of one client, put together to requests."""

    client: int = 0
    _statements: dict[bytes, str] = field(default_factory=dict[bytes, str])
    _texts: list[str] = field(default_factory=list[str])
    _runs: bool = False

    def add(self, frame: Frame) -> Request | None:
        """Take a client's next message; return the request that it ends, if it ends one."""
        if frame.letter == QUERY:
            self._texts.append(_strings(frame.body, 1)[0].decode())
            self._runs = True
        elif frame.letter == PARSE:
            name, text = _strings(frame.body, 2)
            self._statements[name] = text.decode()
            self._texts.append(self._statements[name])
        elif frame.letter == BIND:
            text_of = self._statements.get(_strings(frame.body, 2)[1], "")
            if text_of not in self._texts:
                self._texts.append(text_of)
        elif frame.letter == EXECUTE:
            self._runs = True
        return self._ended() if frame.letter in {QUERY, SYNC} else None

    def _ended(self) -> Request:
        request = Request("\n".join(self._texts), self._runs, self.client)
        self._texts, self._runs = [], False
        return request


def _strings(body: bytes, count: int) -> list[bytes]:
    return body.split(b"\0", count)[:count]
