"""The upright axis of a chart: few round numbers, which stay the same while what is drawn moves a little."""

from collections.abc import Iterator, Sequence
from math import ceil, log
from typing import Final, NamedTuple, Protocol

_FEW: Final = 4
"""The parts that an axis of counts has at most, and the most that it shows at least."""
_ROUND: Final = (1, 2, 5)
_TIMES: Final = (
    (0.001, "1 ms"), (0.01, "10 ms"), (0.1, "0.1 s"), (1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (600.0, "10 min"),
    (3_600.0, "1 h"), (36_000.0, "10 h"),
)  # fmt: skip
_LEAST_TOP: Final = 1.0
"""Seconds that an axis of times shows at least."""


class Tick(NamedTuple):
    """A line across a chart: how high it is, from 0.0 to 1.0, and what it means."""

    share: float
    label: str


class Axis(Protocol):
    """Tells how high a value is."""

    @property
    def ticks(self) -> Sequence[Tick]:
        """The lines, the lowest first."""
        ...

    def share(self, value: float) -> float:
        """Return how high a value is, from 0.0 to 1.0."""
        ...


class CountAxis:
    """Counts, from none up to a round number that is not less than `most`."""

    def __init__(self, most: float) -> None:
        wanted = max(most, _FEW)
        step = next(step for step in _steps() if ceil(wanted / step) <= _FEW)
        parts = ceil(wanted / step)
        self._top = parts * step
        self.ticks: Sequence[Tick] = [Tick(part / parts, compact(part * step)) for part in range(parts + 1)]

    def share(self, value: float) -> float:
        """Return how high a value is."""
        return min(1.0, max(0.0, value / self._top))


class TimeAxis:
    """Lengths of time, each mark about ten times the one below: what takes milliseconds can be seen beside minutes."""

    def __init__(self, most: float) -> None:
        top = next((place for place, (seconds, _) in enumerate(_TIMES) if seconds >= max(most, _LEAST_TOP)), -1)
        shown = _TIMES[: top + 1] if top >= 0 else _TIMES
        self._least = shown[0][0]
        self._decades = log(shown[-1][0] / self._least)
        self.ticks: Sequence[Tick] = [Tick(self.share(seconds), label) for seconds, label in shown]

    def share(self, value: float) -> float:
        """Return how high a value is; whatever is less than the lowest mark lies on it."""
        return min(1.0, log(max(value, self._least) / self._least) / self._decades)


def _steps() -> Iterator[int]:
    size = 1
    while True:
        yield from (size * part for part in _ROUND)
        size *= 10


def compact(value: int) -> str:
    """Return a round number in little room: `500`, `20k`, `1.5M`."""
    for size, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return str(value)
