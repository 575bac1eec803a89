"""The ledger: a file in which every process writes what it did, outside of the store.

An event is one line, written by a single `write` on a descriptor opened with `O_APPEND`. So a process that is killed
leaves no half of a line, and the order of the lines is the order of the events, whatever the clocks say.
"""

import os
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

import msgspec


class What(StrEnum):
    CLAIMED = "claimed"
    STARTED = "started"
    EFFECT = "effect"
    ACCEPTED = "ack accepted"
    REFUSED = "ack refused"
    KILLED = "killed"
    PAUSED = "paused"
    RESUMED = "resumed"


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """What happened to a worker, or to a job in its hands; `delivery` is the number of the claim in the job's life."""

    what: What
    worker: str
    job: str = ""
    delivery: int = 0


class TornLine(Exception):
    """A line of the ledger cannot be read: nothing can be said about the run."""


class Ledger:
    """One process' pen."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, event: Event) -> None:
        os.write(self._file, msgspec.json.encode(event) + b"\n")

    def close(self) -> None:
        os.close(self._file)


def read(path: Path) -> list[Event]:
    """Return all events, in their order; raises `TornLine`."""
    return [_event(line) for line in path.read_bytes().splitlines()]


def _event(line: bytes) -> Event:
    try:
        return msgspec.json.decode(line, type=Event)
    except msgspec.DecodeError as error:
        raise TornLine(f"the ledger has a line that is no event: {line[:80]!r}") from error


class Tally:
    """What the ledger says so far, worker by worker."""

    def __init__(self) -> None:
        self.last: dict[str, Event] = {}
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.runs: dict[str, list[str]] = {}
        """The workers that started a job, in order."""
        self._held: dict[str, set[str]] = {}

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            self._add(event)

    def held(self, worker: str) -> set[str]:
        """Return the jobs that `worker` has claimed and not settled, as far as it knows."""
        return self._held.setdefault(worker, set())

    def _add(self, event: Event) -> None:
        self.last[event.worker] = event
        match event.what:
            case What.CLAIMED:
                self.held(event.worker).add(event.job)
            case What.STARTED:
                self.runs.setdefault(event.job, []).append(event.worker)
            case What.ACCEPTED:
                self.done[event.worker] += 1
                self.held(event.worker).discard(event.job)
            case What.REFUSED:
                self.refused[event.worker] += 1
                self.held(event.worker).discard(event.job)
            case What.EFFECT | What.KILLED | What.PAUSED | What.RESUMED:
                pass


class Follower:
    """Reads a ledger while others write to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def news(self) -> list[Event]:
        """Return the events since the last look."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            lines = file.read().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            lines.pop()
        self._offset += sum(map(len, lines))
        return [_event(line) for line in lines]
