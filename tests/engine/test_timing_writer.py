from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.engine.executors.given import a_job
from windlass.client.client import Client
from windlass.core.errors import StoreUnavailable
from windlass.core.stats import TimingCount
from windlass.engine.tally import Tally
from windlass.engine.timing_writer import EVERY, TimingWriter
from windlass.system import TaskSpawn
from windlass.testing import FakeClock

AROUND = timedelta(hours=1)


def writer_of(client: Client, tally: Tally) -> TimingWriter:
    return TimingWriter(client.store, tally, clock=client.clock, rng=client.rng, spawn=TaskSpawn())


async def kept(client: Client) -> dict[tuple[str, str, int], int]:
    now = client.clock.now()
    counts: dict[tuple[str, str, int], int] = {}
    for row in await client.store.timings(since=now - AROUND, until=now + AROUND):
        key = row.kind, row.what, row.range
        counts[key] = counts.get(key, 0) + row.attempts
    return counts


async def test_what_was_counted_is_written_once_every_ten_seconds_and_at_the_stop(
    client: Client, clock: FakeClock
) -> None:
    tally = Tally()
    tally.of(a_job(kind="counted before")).ran.add(1)
    writer = writer_of(client, tally)
    await writer.start()
    tally.begin(a_job(kind="work"), 0.001)
    tally.of(a_job(kind="work")).ran.add(0.02)

    await clock.let_pass(3 * EVERY)
    written = await kept(client)
    tally.of(a_job(kind="work")).ran.add(0.02)
    await writer.stop()

    assert written == {("work", "waited", 0): 1, ("work", "ran", 2): 1}
    assert await kept(client) == {("work", "waited", 0): 1, ("work", "ran", 2): 2}


async def test_nothing_is_written_when_nothing_ran(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = _failing(client, monkeypatch, times=0)
    writer = writer_of(client, Tally())

    await writer.tick()
    await writer.leave()

    assert calls == []


async def test_what_a_store_that_is_away_does_not_take_is_written_later_and_fails_nobody(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = Tally()
    writer = writer_of(client, tally)
    calls = _failing(client, monkeypatch, times=2)

    tally.of(a_job(kind="work")).ran.add(1)
    with pytest.raises(StoreUnavailable):
        await writer.tick()
    tally.of(a_job(kind="work")).ran.add(1)
    await writer.leave()
    await writer.tick()

    assert [sum(row.attempts for row in call) for call in calls] == [1, 2, 2]
    assert sum((await kept(client)).values()) == 2


def _failing(client: Client, monkeypatch: pytest.MonkeyPatch, *, times: int) -> list[Sequence[TimingCount]]:
    """Let the store fail so many times; return what it was asked to write."""
    calls: list[Sequence[TimingCount]] = []
    write: Any = client.store.write_timings

    async def fail(timings: Sequence[TimingCount]) -> None:
        calls.append(timings)
        if len(calls) <= times:
            message = "away"
            raise StoreUnavailable(message, retryable=True)
        await write(timings)

    monkeypatch.setattr(client.store, "write_timings", fail)
    return calls
