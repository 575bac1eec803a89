"""How many jobs a server may claim before it has a slot for them."""

from collections import deque
from typing import Final

WINDOW: Final = 0.1
MOST: Final = 2_000


class LookAhead:
    """Allows what the server finished in the last tenth of a second: so much it will soon begin."""

    def __init__(self) -> None:
        """Allow nothing yet."""
        self._samples: deque[tuple[float, int]] = deque()

    def most(self, now: float, finished: int) -> int:
        """Return how many may wait, when `finished` jobs have ended in all."""
        samples = self._samples
        while samples and samples[0][0] < now - WINDOW:
            samples.popleft()
        samples.append((now, finished))
        return min(MOST, finished - samples[0][1])
