"""What processes say they did, outside of the store, so that the store cannot lie about it.

Each event is one line and one `write` on a descriptor opened to append: lines of many processes never mix, and what
was written survives the process. Only a SIGKILL can tear the line that is being written, where it crosses a page of the
system's cache; so every process begins with a line of its own, and what was torn is read as such.
"""

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

Event = Literal[
    "started",
    "opened",
    "invoked",
    "ok",
    "begun",
    "ended",
    "effect",
    "settled",
    "refused",
    "late",
    "fault",
    "count",
    "done",
    "error",
    "torn",
]


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    event: Event
    process: str
    at: float
    job: str = ""
    delivery: int = 0
    note: str = ""
    count: int = 0
    token: str = ""


class Ledger:
    """One process' pen."""

    def __init__(self, path: Path, process: str) -> None:
        self.process = process
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.write(self._file, b"\n")

    def write(
        self, event: Event, job: str = "", *, delivery: int = 0, note: str = "", count: int = 0, token: str = ""
    ) -> None:
        entry = Entry(event, self.process, time.monotonic(), job, delivery, note, count, token)
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
        fresh = list(_entries(whole.splitlines()))
        self.entries += fresh
        return fresh


def read(path: Path) -> Iterator[Entry]:
    """Return every entry; there is none before a process has begun."""
    if not path.exists():
        return
    with path.open("rb") as file:
        yield from _entries(file)


def _entries(lines: Iterable[bytes]) -> Iterator[Entry]:
    for line in lines:
        try:
            if line.strip():
                yield _decoder.decode(line)
        except msgspec.DecodeError:
            yield Entry("torn", "", 0, note=repr(line))


_decoder = msgspec.json.Decoder(Entry)
