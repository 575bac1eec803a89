"""Counts are exact at every moment, while many write and others add them up."""

import asyncio
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

import pytest

from tests.stores.postgres.racing import connection_to, opened_many, settlement, wanting
from windlass.core.job import Failure
from windlass.core.retention import Retention
from windlass.core.stats import QueueStats
from windlass.core.store import Store
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.stores.postgres import adder
from windlass.testing.conformance.given import a_job

VERDICTS: Final[list[Verdict]] = [
    ToSucceeded(),
    ToSucceeded(),
    ToSucceeded(b"1", "json"),
    ToDead(Failure("no")),
    ToCancelled("no"),
    ToReleased(),
    ToRetry(timedelta(0), Failure("no")),
    ToRetry(timedelta(milliseconds=5), Failure("no")),
    ToSnoozed(timedelta(milliseconds=5)),
]
FINISHED = ("succeeded", "dead", "cancelled")
STATES = ("scheduled", "pending", "running", *FINISHED)


class Writers:
    """Loops that do all that counts, on some stores."""

    def __init__(self, stores: list[Store]) -> None:
        self.over = False
        self._stores = stores
        self._rng = random.Random(3)

    async def work(self, store: Store) -> None:
        rng = self._rng
        while not self.over:
            made = await store.enqueue(
                [a_job("q", kind=rng.choice(["a", "b", None])) for _ in range(rng.randint(1, 4))]
            )
            claims = (await store.claim(wanting(limit=rng.randint(1, 4)))).jobs
            await store.settle([settlement(claim, rng.choice(VERDICTS), keep=rng.random() < 0.7) for claim in claims])
            chosen = [one.id for one in made if rng.random() < 0.3]
            match rng.randint(0, 5):
                case 0:
                    await store.cancel(chosen, Retention())
                case 1:
                    await store.retry(chosen)
                case 2:
                    await store.delete(chosen)
                case 3:
                    await store.prune(Retention(most=5), limit=10)
                case 4:
                    await store.reschedule(chosen, datetime.now(UTC) + timedelta(milliseconds=3))
                case _:
                    await store.promote(limit=10)


async def test_stats_are_never_wrong_while_writers_and_adders_work(
    schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adder, "ADD_AFTER", 5)
    seen: list[QueueStats] = []
    async with opened_many(schema, 4) as [reader, *stores], connection_to(schema) as outside, asyncio.timeout(60):
        writers = Writers(stores)
        tasks = [asyncio.ensure_future(writers.work(store)) for store in stores * 2]
        until = asyncio.get_running_loop().time() + 4
        while asyncio.get_running_loop().time() < until:
            seen += await reader.stats("q")
            # by one statement for both: what is counted is what is there
            [(counted, there)] = await outside.fetch(BOTH)
            assert counted == there
        writers.over = True
        await asyncio.gather(*tasks)
        [end] = await reader.stats("q")
        minutes = await reader.minutes(since=datetime(2000, 1, 1, tzinfo=UTC), until=datetime(2100, 1, 1, tzinfo=UTC))
        there_now = Counter(
            {row[0]: row[1] for row in await outside.fetch("select state, count(*) from windlass_job group by 1")}
        )

    assert len(seen) > 20
    assert all(getattr(one, state) >= 0 for one in seen for state in STATES)
    for before, after in pairwise(seen):
        assert all(old <= new for old, new in zip(before.totals, after.totals, strict=True))
    assert {state: getattr(end, state) for state in STATES} == {state: there_now[state] for state in STATES}
    assert sum(minute.counts.enqueued for minute in minutes) == end.totals.enqueued
    assert sum(minute.counts.succeeded for minute in minutes) == end.totals.succeeded


BOTH = """
select
    (select array_agg(total) from (
        select sum(n) as total from (
            select scheduled, pending, running, succeeded, dead, cancelled from windlass_count where minute = 'infinity'
            union all
            select scheduled, pending, running, succeeded, dead, cancelled from windlass_delta
        ) as counted
        cross join lateral (values ('scheduled', scheduled), ('pending', pending), ('running', running),
            ('succeeded', succeeded), ('dead', dead), ('cancelled', cancelled)) as each (state, n)
        group by state having sum(n) <> 0 order by state
    ) as totals),
    (select array_agg(total) from (
        select count(*)::numeric as total from windlass_job group by state order by state
    ) as totals)
"""
