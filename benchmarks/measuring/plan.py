"""Which measurements are taken of whom, in which order."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.measuring.child import Introduction
from benchmarks.measuring.measurements import MEASUREMENTS, Measurement


@dataclass(frozen=True, slots=True)
class Step:
    """One measurement of one contestant in one repetition."""

    measurement: Measurement
    contestant: str
    repetition: int


def plan(parts: Collection[str], contestants: Sequence[Introduction], *, repeat: int) -> list[Step]:
    """Return the steps in order: all contestants take their turns at a measurement before any is asked again.

    Who begins changes with each repetition. What needs a prepared folder is repeated in a row, so that only one such
    folder exists at a time; it is compared with its own empty file, not with other contestants.
    """
    chosen = [measurement for measurement in MEASUREMENTS if measurement.part in parts]
    light = [measurement for measurement in chosen if measurement.part != "large"]
    heavy = [measurement for measurement in chosen if measurement.part == "large"]
    steps = [step for repetition in range(repeat) for step in _round(light, contestants, repetition)]
    for measurement in heavy:
        for contestant in contestants:
            if measurement.name in contestant.measures:
                steps += [Step(measurement, contestant.name, repetition) for repetition in range(repeat)]
    return steps


def _round(measurements: Sequence[Measurement], contestants: Sequence[Introduction], repetition: int) -> Iterator[Step]:
    first = repetition % len(contestants)
    for measurement in measurements:
        for contestant in [*contestants[first:], *contestants[:first]]:
            # an import is repeated within its measurement
            if measurement.name in contestant.measures and (measurement.name != "import" or repetition == 0):
                yield Step(measurement, contestant.name, repetition)
