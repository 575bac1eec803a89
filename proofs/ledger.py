"""What processes say they did, outside of the store, so that the store cannot lie about it.

Each event is one line and one `write` on a descriptor opened to append: lines of many processes never mix, and what
was written survives the process.
"""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

Event = Literal["started", "invoked", "ok", "effect", "settled", "refused", "fault", "count", "done", "error"]


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    event: Event
    process: str
    at: float
    job: str = ""
    delivery: int = 0
    note: str = ""
    count: int = 0


class Ledger:
    """One process' pen."""

    def __init__(self, path: Path, process: str) -> None:
        self.process = process
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, event: Event, job: str = "", *, delivery: int = 0, note: str = "", count: int = 0) -> None:
        entry = Entry(event, self.process, time.monotonic(), job, delivery, note, count)
        line = msgspec.json.encode(entry) + b"\n"
        if os.write(self._file, line) != len(line):
            message = "the ledger's disk is full"
            raise OSError(message)

    def close(self) -> None:
        os.close(self._file)


class Tail:
    """Follows a ledger that is being written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self.entries: list[Entry] = []

    def look(self) -> list[Entry]:
        """Return what is new; a line whose end is not there yet is left for the next look."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._at)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        fresh = [_decode(line) for line in whole.splitlines()]
        self.entries += fresh
        return fresh


def read(path: Path) -> Iterator[Entry]:
    """Return every entry; a torn line is an error."""
    with path.open("rb") as file:
        yield from map(_decode, file)


_decode: Callable[[bytes], Entry] = msgspec.json.Decoder(Entry).decode
