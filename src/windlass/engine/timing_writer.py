"""The service that writes how long attempts took."""

import logging
from datetime import timedelta
from typing import Final, Literal

from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.errors import WindlassError
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.engine.service import Service
from windlass.engine.tally import Pair, Tally, Times

logger = logging.getLogger("windlass")

EVERY: Final = timedelta(seconds=10)
_What = Literal["waited", "ran"]


class TimingWriter(Service):
    """Writes what a tally has counted since the last time, every ten seconds and at the stop.

    What a store that is away does not take is written later: nothing piles up, since it is only numbers that grow. They
    count in the minute that they are written in, so that nobody who has read an earlier minute has missed any.
    """

    name = "timing writer"
    interval = EVERY
    begins_after = EVERY

    def __init__(self, store: Store, tally: Tally, *, clock: Clock, rng: Rng, spawn: Spawn) -> None:
        """Write to `store` what `tally` counts from now on."""
        super().__init__(clock=clock, rng=rng, spawn=spawn)
        self._store = store
        self._tally = tally
        self._written = self._counted()

    async def tick(self) -> None:
        """Write what was counted since the last time."""
        counted = self._counted()
        minute = self._clock.now().replace(second=0, microsecond=0)
        new: list[TimingCount] = []
        for (pair, what), counts in counted.items():
            before = self._written.get((pair, what), ())
            for place, count in enumerate(counts):
                if more := count - (before[place] if before else 0):
                    new.append(TimingCount(minute, pair.queue, pair.kind, what, place, more))
        if new:
            await self._store.write_timings(new)
            self._written = counted

    async def leave(self) -> None:
        """Write the rest; a store that is away costs no more than these numbers."""
        try:
            await self.tick()
        except WindlassError as error:
            logger.debug("the last timings are not written: %s", error)

    def _counted(self) -> dict[tuple[Pair, _What], list[int]]:
        counted: dict[tuple[Pair, _What], list[int]] = {}
        for pair, counts in self._tally.pairs().items():
            for what, times in _both(counts.waited, counts.ran):
                counted[pair, what] = times.counts.copy()
        return counted


def _both(waited: Times, ran: Times) -> tuple[tuple[_What, Times], tuple[_What, Times]]:
    return ("waited", waited), ("ran", ran)
