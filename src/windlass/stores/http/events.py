"""Reads the events of a stream of news."""

from collections.abc import Iterator
from typing import Final

import msgspec

from windlass.core.topics import Topic

LONGEST_LINE: Final = 1 << 20


class _News(msgspec.Struct):
    topics: list[str]


_decoder: Final = msgspec.json.Decoder(_News)


class Events:
    """Takes a stream apart, which comes in pieces of any size."""

    def __init__(self) -> None:
        """Begin at the beginning of a line."""
        self._rest = b""

    def read(self, piece: bytes) -> Iterator[list[Topic] | None]:
        """Return the topics of each event that has come by now; None where it is not known what an event tells.

        Raises a `ConnectionError` when a line has no end.
        """
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            message = "an event of the news has no end"
            raise ConnectionResetError(message)
        for line in lines:
            # other lines are comments that only say that the server is there, or end an event
            if line.startswith(b"data:"):
                yield _topics(line[5:])


def _topics(data: bytes) -> list[Topic] | None:
    try:
        return [Topic(topic) for topic in _decoder.decode(data).topics]
    except msgspec.DecodeError:
        return None
