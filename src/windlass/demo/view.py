"""What a person sees of the run, and what stands in a log when nobody is watching."""

import os
import sys
import time
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

TELL_EVERY: Final = 5.0
"""Seconds between two lines of plain numbers."""


class Queue(NamedTuple):
    """One line about a queue."""

    name: str
    waiting: int
    running: int
    retrying: int
    succeeded: int
    dead: int


class Server(NamedTuple):
    """One line about a server; `runs` says what."""

    name: str
    life: str
    done: int
    runs: str


class Timetable(NamedTuple):
    """One line about the schedule."""

    name: str
    rule: str
    next_in: float | None
    fired: int


class Standing(NamedTuple):
    """How far the run is; `rates` are the jobs done in each of the last seconds, `address` is for a browser."""

    elapsed: float = 0.0
    total: float = 1.0
    queues: Sequence[Queue] = ()
    servers: Sequence[Server] = ()
    timetable: Timetable | None = None
    rates: Sequence[int] = ()
    retried: int = 0
    rescued: int = 0
    address: str | None = None

    @property
    def succeeded(self) -> int:
        return sum(queue.succeeded for queue in self.queues)


class Fact(NamedTuple):
    """A row of the last table; `good` tells whether it is what was promised, None where nothing was."""

    name: str
    value: str
    note: str = ""
    good: bool | None = None


class View(Protocol):
    def title(self, text: str) -> None: ...

    def say(self, text: str) -> None:
        """Tell what is happening now."""
        ...

    def show(self, standing: Standing) -> None:
        """Bring the numbers up to date."""
        ...

    def table(self, facts: Sequence[Fact]) -> None: ...

    def conclude(self, text: str, *, good: bool) -> None: ...

    def close(self) -> None:
        """Take the numbers away; what was said stays."""
        ...


class PlainView:
    """Lines, one after the other, for a file or a terminal that can do no more."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._told_at = 0.0

    def title(self, text: str) -> None:
        print(f"{text}\n", flush=True)

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:5.1f} s  {text}", flush=True)

    def show(self, standing: Standing) -> None:
        if standing.elapsed >= self._told_at + TELL_EVERY:
            self._told_at = standing.elapsed
            waiting = sum(queue.waiting for queue in standing.queues)
            running = sum(queue.running for queue in standing.queues)
            self.say(f"{standing.succeeded:,} jobs done, {running} running, {waiting} waiting.")

    def table(self, facts: Sequence[Fact]) -> None:
        print()
        for fact in facts:
            print(f"  {fact.name:<27}{fact.value:>8}   {fact.note}".rstrip())
        print(flush=True)

    def conclude(self, text: str, *, good: bool) -> None:
        del good
        print(text, flush=True)

    def close(self) -> None:
        pass


class SilentView:
    """Nothing, for a program that wants the outcome alone."""

    def title(self, text: str) -> None:
        pass

    def say(self, text: str) -> None:
        pass

    def show(self, standing: Standing) -> None:
        pass

    def table(self, facts: Sequence[Fact]) -> None:
        pass

    def conclude(self, text: str, *, good: bool) -> None:
        pass

    def close(self) -> None:
        pass


def person_is_watching() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
