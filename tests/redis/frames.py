"""Redis's protocol as far as the proxy reads it: where a command ends, where an answer does, what answers nothing."""

from asyncio import IncompleteReadError, StreamReader
from typing import Final, NamedTuple

_END: Final = b"\r\n"
_TEXTS: Final = b"$=!"
"""Types of a value that tell how many bytes come after them."""
_PARTS: Final = {b"*": 1, b"~": 1, b">": 1, b"%": 2, b"|": 2}
"""Types of a value that tell how many values come after them, or how many pairs."""
_ATTRIBUTE: Final = b"|"
_PUSH: Final = b">"
_SUBSCRIBES: Final = frozenset({b"SUBSCRIBE", b"PSUBSCRIBE", b"SSUBSCRIBE"})
_UNSUBSCRIBES: Final = frozenset({b"UNSUBSCRIBE", b"PUNSUBSCRIBE", b"SUNSUBSCRIBE"})
_TOLD: Final = frozenset(
    {b"message", b"pmessage", b"smessage", *(name.lower() for name in _SUBSCRIBES | _UNSUBSCRIBES)}
)
"""How a message begins that a subscriber is told by an array, where the protocol has no type of its own for it."""
_OF_THE_CONNECTION: Final = frozenset(
    {b"ASKING", b"AUTH", b"CLIENT", b"ECHO", b"HELLO", b"PING", b"QUIT", b"READONLY", b"READWRITE", b"RESET", b"SELECT"}
)


class Request(NamedTuple):
    """One command as a client sends it; `client` is the same for all of one connection."""

    words: tuple[bytes, ...]
    client: int = 0

    @property
    def name(self) -> bytes:
        """What is to be done, in capitals: `EVALSHA`."""
        return self.words[0].upper() if self.words else b""

    @property
    def text(self) -> str:
        """The whole command, to be read by people."""
        return b" ".join(self.words).decode(errors="backslashreplace")

    @property
    def listens(self) -> bool:
        """Whether it changes what the connection is told of, which is told as all the rest: there is no answer."""
        return self.name in _SUBSCRIBES | _UNSUBSCRIBES

    @property
    def runs(self) -> bool:
        """Whether it is about more than its connection."""
        return not self.listens and self.name not in _OF_THE_CONNECTION


class Value(NamedTuple):
    """One value as it came: its type, the texts that it is made of if there are any, and the whole of it."""

    type: bytes
    texts: tuple[bytes, ...]
    whole: bytes

    @property
    def is_push(self) -> bool:
        """Whether it answers nothing, by its type."""
        return self.type == _PUSH

    @property
    def looks_told(self) -> bool:
        """Whether it answers nothing, if its connection is a subscriber's that knows of no such type."""
        return self.type == b"*" and self.texts[:1] != () and self.texts[0] in _TOLD


async def read_value(reader: StreamReader) -> Value | None:
    """Return the next value, or None at the end of the stream."""
    texts: list[bytes] = []
    try:
        whole = await _read(reader, texts)
    except IncompleteReadError:
        return None
    return Value(whole[:1], tuple(texts), whole)


def command(*words: str | bytes) -> bytes:
    """Return a command as clients send it."""
    parts = [word.encode() if isinstance(word, str) else word for word in words]
    texts = (b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
    return b"*%d\r\n%b" % (len(parts), b"".join(texts))


async def _read(reader: StreamReader, texts: list[bytes]) -> bytes:
    line = await reader.readuntil(_END)
    kind = line[:1]
    if kind in _PARTS:
        # one that is not there has -1 of them
        count = int(line[1:]) * _PARTS[kind] + (kind == _ATTRIBUTE)
        return line + b"".join([await _read(reader, texts) for _ in range(count)])
    if kind in _TEXTS and int(line[1:]) >= 0:
        text = await reader.readexactly(int(line[1:]) + len(_END))
        texts.append(text[: -len(_END)])
        return line + text
    return line
