"""Counts as a line of small bars."""

from collections.abc import Sequence
from typing import Final

TICKS: Final = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[int]) -> str:
    """Return counts as a line of small bars, one for each; what is more than none can be seen."""
    most = max(values, default=0)
    if not most:
        return TICKS[0] * len(values)
    steps = len(TICKS) - 1
    return "".join(TICKS[-(-value * steps // most)] for value in values)
