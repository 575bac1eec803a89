"""How long most attempts took, out of counts by range."""

from collections.abc import Sequence
from datetime import timedelta
from math import inf, isinf
from typing import Final

from windlass.client.spoken import length
from windlass.core.stats import BOUNDS

RANGES: Final = len(BOUNDS) + 1
_SECOND: Final = 1
_MINUTE: Final = 60
_FEW: Final = 10


def percentile(counts: Sequence[int], share: float) -> float | None:
    """Return about how many seconds this share of all attempts took at most; None when there are none.

    `counts` has one number for each range of `BOUNDS`. Within a range all lengths are taken to be as frequent as each
    other; what lies beyond the last bound is endless.
    """
    wanted = share * sum(counts)
    if not wanted:
        return None
    passed = 0
    for place, count in enumerate(counts):
        if count and passed + count >= wanted:
            return _within(place, (wanted - passed) / count)
        passed += count
    return inf


def _within(place: int, share: float) -> float:
    if place == len(BOUNDS):
        return inf
    least = BOUNDS[place - 1] if place else 0.0
    return least + (BOUNDS[place] - least) * share


def about(seconds: float) -> str:
    """Return a length that was estimated, no more exactly than it is known: `12 ms`, `1.4 s`, `3 min`."""
    if isinf(seconds):
        return f"over {length(timedelta(seconds=BOUNDS[-1]))}"
    if seconds < _SECOND:
        return f"{max(1, float(f'{seconds * 1000:.2g}')):.0f} ms"
    if seconds < _FEW:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < _MINUTE else length(timedelta(seconds=seconds))
