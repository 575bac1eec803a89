"""How many jobs a server may claim before it has a slot for them."""

from collections import deque
from typing import Final

WINDOW: Final = 0.1
SHORTEST: Final = WINDOW / 10
"""Seconds over which a rate says something."""
MOST: Final = 2_000


class LookAhead:
    """Allows what the server finishes in a tenth of a second, by its last rate: so much it will soon begin."""

    def __init__(self) -> None:
        """Allow nothing yet."""
        self._samples: deque[tuple[float, int]] = deque()

    def most(self, now: float, finished: int) -> int:
        """Return how many may wait, when `finished` jobs have ended in all."""
        samples = self._samples
        while samples and samples[0][0] < now - WINDOW:
            samples.popleft()
        samples.append((now, finished))
        since, before = samples[0]
        return min(MOST, int((finished - before) * WINDOW / max(now - since, SHORTEST)))
