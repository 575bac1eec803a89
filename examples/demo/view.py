"""What a person sees of the run, and what stands in a log when nobody is watching."""

import os
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Worker(NamedTuple):
    """One line about a worker."""

    name: str
    life: str
    done: int
    held: int


class Standing(NamedTuple):
    """How far the run is."""

    done: int
    total: int
    workers: Sequence[Worker]


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
        """Bring the bar up to date."""
        ...

    def table(self, facts: Sequence[Fact]) -> None: ...

    def conclude(self, text: str, *, good: bool) -> None: ...

    def close(self) -> None:
        """Take the bar away; what was said stays."""
        ...


class PlainView:
    """Lines, one after the other, for a file or a terminal that can do no more."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._quarters = 0

    def title(self, text: str) -> None:
        print(f"{text}\n", flush=True)

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:5.1f} s  {text}", flush=True)

    def show(self, standing: Standing) -> None:
        quarters = 4 * standing.done // standing.total
        if quarters > self._quarters:
            self._quarters = quarters
            self.say(f"{standing.done:,} of {standing.total:,} jobs have succeeded.")

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


def person_is_watching() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
