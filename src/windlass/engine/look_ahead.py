"""How many jobs a server may claim before it has a slot for them."""

from collections import deque
from typing import Final

WINDOW: Final = 0.1
LONGEST: Final = 1.0
SHORTEST: Final = WINDOW / 10
"""Seconds over which a rate says something."""
MOST: Final = 2_000


class LookAhead:
    """Allows what the server finishes in a tenth of a second, by its last rate: so much it will soon begin.

    Where claims take long it is what is finished during two of them, or else the slots would be empty meanwhile.
    """

    def __init__(self) -> None:
        """Allow nothing yet."""
        self._samples: deque[tuple[float, int]] = deque()
        self._window = WINDOW

    def took(self, seconds: float) -> None:
        """Note how long a claim took that brought jobs."""
        self._window = min(max(WINDOW, 2 * seconds), LONGEST)

    def most(self, now: float, finished: int) -> int:
        """Return how many may wait, when `finished` jobs have ended in all."""
        samples = self._samples
        window = self._window
        while samples and samples[0][0] < now - window:
            samples.popleft()
        samples.append((now, finished))
        since, before = samples[0]
        return min(MOST, int((finished - before) * window / max(now - since, SHORTEST)))
