"""HTTP/1.1 as far as the proxy reads it: where a message ends, what a request asks for, what is told without an end."""

from asyncio import IncompleteReadError, StreamReader
from typing import Final, NamedTuple

_END: Final = b"\r\n\r\n"
_EVENTS: Final = "text/event-stream"
_WITHOUT_BODY: Final = frozenset({b"204", b"304"})


class Head(NamedTuple):
    """What stands before a body: the first line in its words, the headers by their names in small letters."""

    words: tuple[bytes, ...]
    headers: dict[str, str]
    whole: bytes

    @property
    def is_stream(self) -> bool:
        """Whether it is told on and on, as news is."""
        return self.headers.get("content-type", "").startswith(_EVENTS)

    @property
    def announces(self) -> bool:
        """Whether the answer itself is still to come."""
        return self.words[1].startswith(b"1")


class Request(NamedTuple):
    """One request as a client sends it; `client` is the same for all of one connection."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    client: int = 0

    @property
    def path(self) -> str:
        """What is asked for, without the query."""
        return self.target.partition("?")[0]

    @property
    def runs(self) -> bool:
        """Whether it is answered once: what is told on and on is no answer."""
        return self.path != "/api/v1/news"


async def read_head(reader: StreamReader) -> Head | None:
    """Return the head of the next message, or None at the end of the stream."""
    try:
        whole = await reader.readuntil(_END)
    except IncompleteReadError:
        return None
    first, *lines = whole[: -len(_END)].split(b"\r\n")
    pairs = (line.decode("latin-1").split(":", 1) for line in lines)
    return Head(tuple(first.split(b" ")), {name.strip().lower(): value.strip() for name, value in pairs}, whole)


async def read_request_body(reader: StreamReader, head: Head) -> bytes:
    """Return the body of a request as it came."""
    return await _read_body(reader, head)


async def read_answer_body(reader: StreamReader, head: Head) -> bytes:
    """Return the body of an answer as it came; one that has no length ends with the connection."""
    if head.words[1] in _WITHOUT_BODY:
        return b""
    if "content-length" not in head.headers and "transfer-encoding" not in head.headers:
        return await reader.read()
    return await _read_body(reader, head)


async def _read_body(reader: StreamReader, head: Head) -> bytes:
    if "chunked" in head.headers.get("transfer-encoding", ""):
        return await _read_chunks(reader)
    return await reader.readexactly(int(head.headers.get("content-length", "0")))


async def _read_chunks(reader: StreamReader) -> bytes:
    whole = b""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        whole += line + await reader.readexactly(size + 2)
        if size == 0:
            return whole
