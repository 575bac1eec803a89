"""The rows of the report: what is measured, in which unit, and what Windlass has to reach."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

OURS = "windlass"
IN_MEMORY = "windlass-memory"


class Unit(StrEnum):
    """How a figure is written, and whether more of it is better."""

    RATE = "jobs/s"
    MILLISECONDS = "ms"
    SHARE = "of the rate on an empty file"

    @property
    def more_is_better(self) -> bool:
        """False for durations."""
        return self is not Unit.MILLISECONDS


@dataclass(frozen=True, slots=True)
class Target:
    """What a contestant of ours must reach now, and what it should reach one day."""

    floor: float
    goal: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One row: the name of a figure in an outcome, or a percentile of its samples."""

    title: str
    name: str
    unit: Unit = Unit.RATE
    percent: int | None = None
    targets: Mapping[str, Target] = field(default_factory=dict[str, Target])


@dataclass(frozen=True, slots=True)
class Measurement:
    """One thing that a contestant does in a process of its own, and the figures it gives."""

    name: str
    part: str
    figures: tuple[Figure, ...]


def _rate(title: str, name: str, part: str, **targets: Target) -> Measurement:
    named = {IN_MEMORY if name == "memory" else OURS: target for name, target in targets.items()}
    return Measurement(name, part, (Figure(title, "rate", targets=named),))


def _large(title: str, name: str) -> Measurement:
    return Measurement(
        name,
        "large",
        (
            Figure(f"claim loop on a file full of {title}", "kept", Unit.SHARE, targets={OURS: Target(0.9)}),
            Figure("its rate", "rate"),
            Figure("the rate in turns on an empty file", "rate_empty"),
        ),
    )


MS = Unit.MILLISECONDS

MEASUREMENTS = (
    _rate("enqueue one by one, awaited", "enqueue_one", "enqueue", sqlite=Target(3_500, 5_000), memory=Target(60_000)),
    _rate("enqueue by 64 callers at once", "enqueue_callers", "enqueue", sqlite=Target(25_000, 60_000)),
    _rate(
        "enqueue_many, 1,000 at once",
        "enqueue_many",
        "enqueue",
        sqlite=Target(100_000, 200_000),
        memory=Target(200_000),
    ),
    _rate(
        "claim loop, records deleted at the ack",
        "claim_deleted",
        "claim",
        sqlite=Target(25_000, 45_000),
        memory=Target(50_000, 120_000),
    ),
    _rate(
        "claim loop, finished records kept",
        "claim_kept",
        "claim",
        sqlite=Target(25_000, 50_000),
        memory=Target(40_000, 100_000),
    ),
    Measurement(
        "claim_latency",
        "claim",
        (
            Figure("claim of 20 during a drain, p99", "p99", MS, targets={OURS: Target(2.5)}),
            Figure("its first tenth, p99", "p99_first", MS),
            Figure("its last tenth, p99", "p99_last", MS),
            Figure("its first tenth, p50", "p50_first", MS),
            Figure("its last tenth, p50", "p50_last", MS),
        ),
    ),
    Measurement(
        "pickup",
        "pickup",
        (
            Figure("pick-up by an idle process, p50", "pickup", MS, 50, targets={OURS: Target(3, 1)}),
            Figure("pick-up by an idle process, p95", "pickup", MS, 95),
            Figure("pick-up by an idle process, p99", "pickup", MS, 99, targets={OURS: Target(15, 4)}),
        ),
    ),
    Measurement(
        "import",
        "import",
        (
            Figure("import, over a bare interpreter", "import", MS, targets={OURS: Target(100)}),
            Figure("import and first use, over a bare interpreter", "first_use", MS),
        ),
    ),
    _large("waiting jobs", "large_waiting"),
    _large("scheduled jobs", "large_scheduled"),
    _large("finished records", "large_finished"),
    _large("jobs of other kinds ahead", "large_kinds"),
)

PARTS = tuple(dict.fromkeys(measurement.part for measurement in MEASUREMENTS))
