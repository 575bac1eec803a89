"""The ledger: a file in which every process writes what it did, outside of the store.

An event is one line, written by a single `write` on a descriptor opened with `O_APPEND`. So a process that is killed
leaves no half of a line, and the order of the lines is the order of the events, whatever the clocks say.
"""

import os
import time
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

import msgspec


class What(StrEnum):
    # about a job, by the process that has it
    STARTED = "started"
    EFFECT = "effect"
    RAISED = "raised"
    RETURNED = "returned"
    ACCEPTED = "success accepted"
    # about a process: the poison writes of itself, all others are written by the narrator
    UP = "up"
    KILLED = "killed"
    POISONED = "poisoned"
    PAUSED = "paused"
    RESUMED = "resumed"
    STOPPED = "stopped"


Claim: TypeAlias = tuple[str, int]
"""A job, and the number of the claim in its life."""


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """What happened to a server, or to a job in its hands; `delivery` is the number of the claim in the job's life.

    `note` is the kind of a job that started, and the error of one that raised. `at` is Unix time.
    """

    what: What
    worker: str
    job: str = ""
    delivery: int = 0
    note: str = ""
    at: float = 0.0

    @property
    def claim(self) -> Claim:
        return self.job, self.delivery


class TornLine(Exception):
    """A line of the ledger cannot be read: nothing can be said about the run."""


class Ledger:
    """One process' pen."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, event: Event) -> None:
        """Write one event, and when it happened unless it says so."""
        timed = event if event.at else msgspec.structs.replace(event, at=time.time())
        os.write(self._file, msgspec.json.encode(timed) + b"\n")

    def close(self) -> None:
        os.close(self._file)


class Follower:
    """Reads a ledger while others write to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def news(self) -> list[Event]:
        """Return the events since the last look; half a line is left for the next one."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            whole, end, _ = file.read().rpartition(b"\n")
        self._offset += len(whole + end)
        return _events(whole)


def read(path: Path) -> list[Event]:
    """Return all events, in their order; raises `TornLine`."""
    return _events(path.read_bytes())


def _events(text: bytes) -> list[Event]:
    events: list[Event] = []
    for line in text.splitlines():
        try:
            events.append(msgspec.json.decode(line, type=Event))
        except msgspec.DecodeError as error:
            raise TornLine(f"the ledger has a line that is no event: {line[:80]!r}") from error
    return events
