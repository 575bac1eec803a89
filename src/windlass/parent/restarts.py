"""When a child that died is started again."""

from typing import Final

from windlass.core.retry import Exponential

LIVED_WELL: Final = 60.0
"""Seconds of life after which an earlier death is forgotten."""
BACKOFF: Final = Exponential(base=0.5, factor=2, cap=30)
_MANY: Final = 20
"""Deaths after which the backoff has long reached its cap."""


class Restarts:
    """Counts the deaths in one place of the parent: at once after the first, later and later if they go on."""

    def __init__(self) -> None:
        """Nobody has died yet."""
        self._deaths = 0

    def after(self, lived: float, draw: float) -> float:
        """Return how many seconds to wait after a child that `lived` so long; `draw` is the chance in it."""
        self._deaths = 1 if lived >= LIVED_WELL else self._deaths + 1
        if self._deaths == 1:
            return 0.0
        delay = BACKOFF.delay(min(self._deaths - 1, _MANY), None, draw)
        return 0.0 if delay is None else delay.total_seconds()
