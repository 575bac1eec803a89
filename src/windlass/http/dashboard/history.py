"""The minutes of the last day, as far as somebody has asked for them: read once, piece by piece, and kept."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar, cast

from windlass.core.clock import Clock
from windlass.core.stats import BOUNDS, MinuteCounts, QueueStats, TimingCount
from windlass.core.store import Store
from windlass.http.dashboard.steps import FARTHEST, MINUTE, Happened

T = TypeVar("T")

FRESH: Final = 15.0
"""Seconds that the running minute counts as it was read."""
AGAIN: Final = 2 * MINUTE
"""How far back a minute may still grow: a transaction counts in the minute of its begin."""
LONGEST_GAP: Final = 10 * MINUTE
"""After a longer time without a look all is read anew."""
AT_ONCE: Final = 0.06
"""Seconds that one look reads for: what is farther back is read by the next ones."""
QUICK: Final = 0.02
"""Seconds: after a piece that took less the next one is longer, else shorter."""
PIECE: Final = 5 * MINUTE
MOST_HISTORIES: Final = 16
LATELY: Final = 60
"""Minutes of which it is known in which queue something happened."""


class History:
    """What happened minute by minute on one queue, or on all.

    A minute that is over is read once. How much a look reads is bounded by time, not by rows: a store has one for each
    minute, queue and kind.
    """

    def __init__(self, clock: Clock, queue: str | None) -> None:
        self._clock = clock
        self._queue = queue
        self._lock = asyncio.Lock()
        self._made: dict[Hashable, Any] = {}
        self._begin()

    def _begin(self) -> None:
        self.minutes: dict[datetime, Happened] = {}
        """By their begin; one in which nothing happened is not there."""
        self.lately: dict[datetime, Counter[str]] = {}
        """How many jobs of each queue succeeded in the minutes of the last hour, whatever queue this is about."""
        self.now: datetime | None = None
        """The time of the store when it was last read."""
        self.since: datetime | None = None
        """From here on all minutes are known."""
        self.stats: Sequence[QueueStats] = ()
        """The counts of that moment."""
        self._read_at = 0.0
        self._read_in: datetime | None = None
        self._piece = PIECE

    async def look(self, store: Store, stats: Sequence[QueueStats], reach: timedelta) -> None:
        """Read what is new, and more of what is farther back, up to `reach`; `stats` are those of now.

        Who comes while another one reads is content with what that one finds.
        """
        is_read = self._lock.locked()
        async with self._lock:
            if self.now is None or not is_read:
                began = self._clock.monotonic()
                if self._is_old():
                    await self._read_last(store, stats)
                await self._read_farther(store, reach, until=began + AT_ONCE)
                self._forget()

    def once(self, what: Hashable, make: Callable[[], T]) -> T:
        """Return what is made of this history; made again when more was read."""
        if what not in self._made:
            self._made[what] = make()
        return cast("T", self._made[what])

    def _is_old(self) -> bool:
        is_old = self.now is None or self._clock.monotonic() - self._read_at >= FRESH
        # a minute that has just begun is not to look like the one before
        return is_old or _minute(self._clock.now()) != self._read_in

    async def _read_last(self, store: Store, stats: Sequence[QueueStats]) -> None:
        read_at, read_in = self._clock.monotonic(), _minute(self._clock.now())
        # the time of the store, which stamps what is counted
        now = (await store.schedules(())).now
        if self.now is None or not -AGAIN <= now - self.now <= LONGEST_GAP:
            self._begin()
        await self._read(store, _minute(self.now or now) - AGAIN, _minute(now) + AGAIN)
        self.now, self.stats, self._read_at, self._read_in = now, stats, read_at, read_in

    async def _read_farther(self, store: Store, reach: timedelta, *, until: float) -> None:
        while self.now is not None and self.since is not None and self.since > _minute(self.now) - reach:
            began = self._clock.monotonic()
            if began >= until:
                return
            await self._read(store, max(_minute(self.now) - reach, self.since - self._piece), self.since)
            is_quick = self._clock.monotonic() - began < QUICK
            self._piece = self._piece * 2 if is_quick else max(MINUTE, self._piece // (2 * MINUTE) * MINUTE)

    async def _read(self, store: Store, first: datetime, until: datetime) -> None:
        """Take the minutes from `first` up to `until` in."""
        minutes = await store.minutes(since=first, until=until)
        timings = await store.timings(since=first, until=until)
        for each in [minute for minute in self.minutes if first <= minute < until]:
            del self.minutes[each]
        for each in [minute for minute in self.lately if first <= minute < until]:
            del self.lately[each]
        self._take_minutes(minutes)
        self._take_timings(timings)
        self._made.clear()
        self.since = first if self.since is None else min(first, self.since)

    def _take_minutes(self, minutes: Sequence[MinuteCounts]) -> None:
        for minute, queue, _, counts in minutes:
            if counts.succeeded:
                self.lately.setdefault(minute, Counter())[queue] += counts.succeeded
            if self._queue in (None, queue):
                happened = self._happened(minute)
                happened.counts = happened.counts.plus(counts)

    def _take_timings(self, timings: Sequence[TimingCount]) -> None:
        for minute, queue, _, what, place, attempts in timings:
            if self._queue in (None, queue) and 0 <= place <= len(BOUNDS):
                happened = self._happened(minute)
                (happened.waited if what == "waited" else happened.ran)[place] += attempts

    def _happened(self, minute: datetime) -> Happened:
        if minute not in self.minutes:
            self.minutes[minute] = Happened()
        return self.minutes[minute]

    def _forget(self) -> None:
        """Let go of what no chart shows."""
        if self.now is None or self.since is None:
            return
        oldest = _minute(self.now) - FARTHEST
        self.minutes = {minute: happened for minute, happened in self.minutes.items() if minute >= oldest}
        lately = _minute(self.now) - MINUTE * (LATELY - 1)
        self.lately = {minute: counts for minute, counts in self.lately.items() if minute >= lately}
        self.since = max(self.since, oldest)


class Histories:
    """The histories that were asked for lately, each by who may see how much, and by queue."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, History] = OrderedDict()

    def of(self, clock: Clock, seen_by: Hashable, queue: str | None) -> History:
        """Return the history of a queue, or of all."""
        key = seen_by, queue
        if key not in self._kept:
            self._kept[key] = History(clock, queue)
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_HISTORIES:
            self._kept.popitem(last=False)
        return self._kept[key]


def _minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)
