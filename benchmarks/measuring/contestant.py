"""What a contestant is: a name, how it is run, and the measurements it supports."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import msgspec


class Role(StrEnum):
    """Why a contestant is in the run: what is judged, what it is judged against."""

    OURS = "ours"
    MODEL = "model"
    """Ours without durability: compared with its floors alone."""
    ENGINE = "engine"
    PEER = "peer"


class Trial(msgspec.Struct, frozen=True):
    """One measurement's surroundings and size.

    The folder at `path` is its own; `seconds` bounds the timed part of an enqueue measurement, and twice as much
    that of a drain: who is slower is cut short, and its rate is that of the jobs done until then.
    """

    path: str
    jobs: int
    seconds: float
    pickups: int
    rows: int

    @property
    def folder(self) -> Path:
        """Where the measurement keeps its files."""
        return Path(self.path)

    @property
    def drain_seconds(self) -> float:
        """How long the timed part of a drain may take."""
        return 2 * self.seconds


class Outcome(msgspec.Struct, frozen=True):
    """What one trial found: figures to take the median of, samples to pool before taking percentiles."""

    figures: dict[str, float] = {}
    samples: dict[str, list[float]] = {}


Measure = Callable[[Trial], Outcome]
Prepare = Callable[[Trial], None]
Arrived = Callable[[object], None]
Consume = Callable[[Path, int, Callable[[], None], Arrived], None]
Produce = Callable[[Path, int, Callable[[], None]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """One queue, and how to measure it.

    `durability` opens a queue in the given folder and says what a commit survives there. `measures` maps names of
    `measurements` to functions; what is missing there does not apply. `first_use` is the statement after
    the import that a program begins with. `prepare` makes, once per run, what a measurement of the same name finds in
    its folder in every repetition. `consume` takes the given number of jobs one at a time as they come; it calls its
    third argument when it is about to wait for the first, and its last with each payload as soon as it has it.
    `produce` enqueues the given number of jobs in bulk; it calls its third argument when its queue is open, and begins
    when that returns.
    """

    name: str
    role: Role
    distribution: str | None
    module: str
    how: str
    durability: Callable[[Path], str]
    measures: Mapping[str, Measure]
    first_use: str | None = None
    prepare: Mapping[str, Prepare] = field(default_factory=dict[str, Prepare])
    consume: Consume | None = None
    produce: Produce | None = None
