"""What is shown of the run: lines for a log, or nothing. The view for a terminal is in `live_view`."""

import os
import sys
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.core.stats import QueueStats, total

TELL_EVERY: Final = 5.0
"""Seconds between two lines of plain numbers."""


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
    queues: Sequence[QueueStats] = ()
    servers: Sequence[Server] = ()
    timetable: Timetable | None = None
    rates: Sequence[int] = ()
    retried: int = 0
    rescued: int = 0
    address: str | None = None


class Fact(NamedTuple):
    """A row of the last table; `good` tells whether it is what was promised, None where nothing was."""

    name: str
    value: str
    note: str = ""
    good: bool | None = None


class View:
    """Nothing, for a program that wants the outcome alone. Other views say and show what they are given."""

    def title(self, text: str) -> None: ...
    def say(self, text: str) -> None: ...
    def show(self, standing: Standing) -> None: ...
    def table(self, facts: Sequence[Fact]) -> None: ...
    def conclude(self, text: str, *, good: bool) -> None: ...

    def close(self) -> None:
        """Take the numbers away; what was said stays."""


class PlainView(View):
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
            all_queues = total(standing.queues)
            self.say(f"{all_queues.succeeded:,} jobs done, {all_queues.running} running, {all_queues.pending} waiting.")

    def table(self, facts: Sequence[Fact]) -> None:
        print()
        for fact in facts:
            print(f"  {fact.name:<27}{fact.value:>8}   {fact.note}".rstrip())
        print(flush=True)

    def conclude(self, text: str, *, good: bool) -> None:
        del good
        print(text, flush=True)


def person_is_watching() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"
