"""Prunes page by page, each a transaction of its own, and remembers where the last page ended.

An old snapshot keeps every row that was deleted: a page that began at the beginning would step over all of them, and
take longer each time, until the server ends it and nothing is deleted any more.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Final

from windlass.core.retention import Retention
from windlass.stores.postgres.adder import Adder
from windlass.stores.postgres.moves.prune import (
    COUNTS,
    NOWHERE,
    SMALL_RECORDS,
    End,
    Place,
    forget_counts,
    forget_small,
    prune,
)
from windlass.stores.postgres.runner import Runner

MOST_PAGES: Final = 50
"""Pages of small records of one sort that go at once."""
ALL_EVERY: Final = 300.0
"""Seconds after which it begins at the beginning again, for records that were locked, or were committed late."""


class Pruner:
    """Deletes what is past its retention."""

    def __init__(self, runner: Runner, adder: Adder, *, remembers: bool) -> None:
        """Work through `runner`; it `remembers` nothing where a clock rules that can be told any time."""
        self._runner = runner
        self._adder = adder
        self._remembers = remembers
        self._records: dict[End, Place] = {}
        self._small: dict[str, datetime] = {}
        self._all_at = 0.0

    async def prune(self, retention: Retention, limit: int) -> int:
        """Delete up to `limit` finished records, and the small records that are over; return how many of the former."""
        anew = self._begins_anew()
        gone = await self._prune(retention, limit, NOWHERE if anew else self._records)
        # what is not added up yet would outlive the minutes that are
        await self._adder.add_up()
        for name in SMALL_RECORDS:
            await self._forget(name, None if anew else self._small.get(name))
        for name in COUNTS:
            await self._runner.run(partial(forget_counts, name=name), whole=False)
        return gone

    def _begins_anew(self) -> bool:
        """Whether it is time for a look from the beginning; once, since that may take longer than a call may."""
        now = asyncio.get_running_loop().time()
        if self._remembers and now < self._all_at:
            return False
        self._all_at = now + ALL_EVERY
        return True

    async def _prune(self, retention: Retention, limit: int, since: Mapping[End, Place]) -> int:
        counted = self._adder.counted if since else 0
        gone, last = await self._runner.run(
            lambda changes: prune(changes, retention, limit, since=since, counted=counted)
        )
        for end, place in last.items():
            # a look from the beginning that found a few late ones does not lead back to where they were
            self._records[end] = place if gone >= limit else max(place, self._records.get(end, place))
        return gone

    async def _forget(self, name: str, since: datetime | None) -> None:
        for _ in range(MOST_PAGES):
            last, more = await self._runner.run(partial(forget_small, name=name, since=since), whole=False)
            if last is not None:
                self._small[name] = last if more else max(last, self._small.get(name, last))
            if not more:
                return
            since = last
