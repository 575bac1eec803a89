"""How many jobs of each kind wait, and for how long: what it costs to count them is by how many there are."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from prometheus_client.core import Metric

from windlass.core.clock import Clock
from windlass.core.errors import WindlassError
from windlass.core.stats import KindStats
from windlass.core.store import Store
from windlass.engine.tally import Pair
from windlass.metrics.exposition import gauges
from windlass.metrics.labels import Labels

logger = logging.getLogger("windlass")

COUNTED_FRESH: Final = 15.0
"""Seconds that a count holds at least."""
SHARE: Final = 20
"""A count that took long holds this many times as long: the store is not busy with counting."""
COUNT_PATIENCE: Final = 4.0
"""Seconds after which a count is given up; all other numbers are told without it."""
_LABELS: Final = ("queue", "kind")


class KindCounts:
    """Counts now and then, and tells what was counted last."""

    def __init__(self, clock: Clock, labels: Labels) -> None:
        """Name queues and kinds by `labels`."""
        self._clock = clock
        self._labels = labels
        self._rows: Sequence[KindStats] | None = None
        self._at: datetime | None = None
        self._again_at = float("-inf")
        self._answered = True
        # one that has emptied is told as zero: a series that ends would look as if nobody had counted
        self._told: set[Pair] = set()

    async def look(self, store: Store, now: datetime) -> None:
        """Count again if the last count has grown old; `now` is the time of the store. It never fails by the store."""
        began = self._clock.monotonic()
        if began < self._again_at:
            return
        try:
            async with asyncio.timeout(COUNT_PATIENCE):
                self._rows, self._at = await store.waiting(), now
            self._answered = True
        except Exception as error:  # noqa: BLE001 - whatever a store raises: the other numbers were answered
            self._rows = None
            self._tell_of(error)
        finally:
            ended = self._clock.monotonic()
            self._again_at = ended + max(COUNTED_FRESH, SHARE * (ended - began))

    def _tell_of(self, error: Exception) -> None:
        """Say it once, and not at every count until one succeeds."""
        level = logging.WARNING if self._answered else logging.DEBUG
        self._answered = False
        trace = None if isinstance(error, (WindlassError, TimeoutError)) else error
        text = str(error) or f"no answer within {COUNT_PATIENCE:g} s"
        logger.log(level, "metrics go without how many jobs of each kind wait: %s", text, exc_info=trace)

    def collect(self) -> Iterable[Metric]:
        """Return what was counted last, if that was answered."""
        if self._rows is None or self._at is None:
            return
        depth, oldest = Counter[Pair](), dict[Pair, float]()
        for queue, kind, pending, oldest_waiting in self._rows:
            pair = self._labels.pair(queue, kind)
            depth[pair] += pending
            age = 0.0 if oldest_waiting is None else (self._at - oldest_waiting).total_seconds()
            oldest[pair] = max(age, oldest.get(pair, 0.0))
        self._told |= depth.keys()
        pairs = sorted(self._told)
        meaning = "Jobs of a kind that are pending."
        yield gauges("windlass_kind_depth", meaning, _LABELS, {pair: depth[pair] for pair in pairs})
        meaning = "How long the job of a kind that was due first has waited, of those that are pending."
        ages = {pair: oldest.get(pair, 0.0) for pair in pairs}
        yield gauges("windlass_kind_oldest_waiting_seconds", meaning, _LABELS, ages)
