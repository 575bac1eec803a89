import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

import windlass
from tests.metrics.given import values
from windlass.client.client import Client
from windlass.core.errors import StoreUnavailable
from windlass.core.requests import ClaimRequest
from windlass.core.stats import KindStats, MinuteCounts, TimingCount, Totals
from windlass.engine.heart import new_record
from windlass.metrics import kind_counts
from windlass.metrics.kind_counts import COUNTED_FRESH, SHARE
from windlass.metrics.labels import MOST_PAIRS, MOST_QUEUES
from windlass.metrics.of_store import FRESH, StoreMetrics
from windlass.testing import FakeClock, SeededRng

MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(clock: FakeClock) -> AsyncIterator[Client]:
    async with windlass.connect("memory://", clock=clock, rng=SeededRng()) as client:
        yield client


class Asked:
    """The metrics of a store, asked whenever an answer has grown old."""

    def __init__(self, client: Client, clock: FakeClock) -> None:
        self._clock = clock
        self._metrics = StoreMetrics(client)

    async def told(self) -> dict[str, float]:
        self._clock.advance(FRESH)
        return values(await self._metrics.written())


async def test_a_store_tells_what_its_queues_hold_and_have_done(client: Client, clock: FakeClock) -> None:
    asked = Asked(client, clock)
    await client.enqueue("email", b"", kind="send")
    await client.enqueue("email", b"", kind="send", delay=3_600)
    await client.enqueue("later", b"")
    await client.pause("later")
    await client.store.beat(new_record("one#1", clock=clock))
    clock.advance(2 * MINUTE)
    await client.store.beat(new_record("two#2", clock=clock))

    told = await asked.told()

    assert told["windlass_store_up"] == 1
    assert told["windlass_queue_depth{queue=email,state=pending}"] == 1
    assert told["windlass_queue_depth{queue=email,state=scheduled}"] == 1
    assert told["windlass_queue_depth{queue=email,state=dead}"] == 0
    assert told["windlass_queue_oldest_waiting_seconds{queue=email}"] == 120 + FRESH
    assert told["windlass_queue_paused{queue=email}"] == 0
    assert told["windlass_queue_paused{queue=later}"] == 1
    assert told["windlass_queue_events_total{queue=email,event=enqueued}"] == 2
    assert told["windlass_servers{state=live}"] == told["windlass_servers{state=silent}"] == 1


async def test_what_waits_is_told_by_queue_and_kind(client: Client, clock: FakeClock) -> None:
    asked = Asked(client, clock)
    for kind in ("send", "send", None):
        await client.enqueue("email", b"", kind=kind)
        clock.advance(60)
    await client.enqueue("email", b"", kind="send", delay=3_600)
    await client.enqueue("sms", b"", kind="send")

    first = await asked.told()
    await client.store.claim(ClaimRequest(["email"], 1, MINUTE, [None]))
    second = await asked.told()
    clock.advance(COUNTED_FRESH)
    third = await asked.told()

    send, raw = "{queue=email,kind=send}", "{queue=email,kind=(raw)}"
    depth, oldest = "windlass_kind_depth", "windlass_kind_oldest_waiting_seconds"
    assert (first[depth + send], first[oldest + send]) == (2, 180 + FRESH)
    assert (first[depth + raw], first[oldest + raw]) == (1, 60 + FRESH)
    assert (first[depth + "{queue=sms,kind=send}"], first[oldest + "{queue=sms,kind=send}"]) == (1, FRESH)
    # a count holds for longer than other looks, and an empty line is told as such
    assert (second[depth + raw], second[oldest + raw]) == (1, 60 + FRESH)
    assert (third[depth + raw], third[oldest + raw]) == (0, 0)
    assert third[oldest + send] == 180 + 3 * FRESH + COUNTED_FRESH


async def test_a_count_of_kinds_that_takes_long_is_made_rarely(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, counts = Asked(client, clock), list[float]()

    async def slow() -> list[KindStats]:
        counts.append(clock.monotonic())
        clock.advance(2)
        return []

    monkeypatch.setattr(client.store, "waiting", slow)
    for _ in range(20):
        await asked.told()

    assert [later - before for before, later in pairwise(counts)] == [2 + SHARE * 2] * 2


async def test_without_a_count_of_kinds_all_the_rest_is_told(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = Asked(client, clock)
    await client.enqueue("email", b"", kind="send")
    before = await asked.told()
    with monkeypatch.context() as broken:
        broken.setattr(client.store, "waiting", asyncio.Event().wait)
        broken.setattr(kind_counts, "COUNT_PATIENCE", 0.01)
        async with asyncio.timeout(10):
            clock.advance(COUNTED_FRESH)
            await asked.told()
            clock.advance(COUNTED_FRESH)
            without = await asked.told()
    clock.advance(COUNTED_FRESH)
    back = await asked.told()

    depth = "windlass_kind_depth{queue=email,kind=send}"
    assert before[depth] == back[depth] == 1
    assert without["windlass_store_up"] == without["windlass_queue_depth{queue=email,state=pending}"] == 1
    assert not [name for name in without if name.startswith(("windlass_kind_depth", "windlass_kind_oldest"))]
    assert caplog.messages == ["metrics go without how many jobs of each kind wait: no answer within 0.01 s"]


async def test_what_happens_is_added_up_by_kind_from_one_look_to_the_next(client: Client, clock: FakeClock) -> None:
    asked = Asked(client, clock)
    await client.enqueue("email", b"", kind="send")
    first = await asked.told()
    for _ in range(20):
        await client.enqueue("email", b"", kind="send")
        await client.enqueue("email", b"")
        # longer than it is looked back in any case
        clock.advance(MINUTE)
    minute = clock.now().replace(second=0, microsecond=0)
    await client.store.write_timings([_timing(minute, "waited", 0, 3), _timing(minute, "ran", 16, 2)])

    second, third = await asked.told(), await asked.told()

    sent = "windlass_kind_events_total{queue=email,kind=send,event=enqueued}"
    assert (first[sent], second[sent], third[sent]) == (0, 20, 20)
    assert third["windlass_kind_events_total{queue=email,kind=(raw),event=enqueued}"] == 20
    pair = "queue=email,kind=send"
    assert third[f"windlass_job_wait_seconds_bucket{{{pair},le=0.005}}"] == 3
    assert third[f"windlass_job_wait_seconds_count{{{pair}}}"] == 3
    assert third[f"windlass_job_run_seconds_bucket{{{pair},le=7200.0}}"] == 0
    assert third[f"windlass_job_run_seconds_bucket{{{pair},le=+Inf}}"] == 2


async def test_a_minute_that_grows_after_its_end_is_counted_all_the_same(client: Client, clock: FakeClock) -> None:
    """A transaction counts in the minute of its begin, and so may the clock of a server."""
    asked, minute = Asked(client, clock), clock.now().replace(second=0, microsecond=0)
    await asked.told()
    await client.store.write_timings([_timing(minute, "ran", 0, 1)])
    clock.advance(MINUTE)
    first = await asked.told()
    await client.store.write_timings([_timing(minute, "ran", 0, 4)])

    second = await asked.told()

    count = "windlass_job_run_seconds_count{queue=email,kind=send}"
    assert (first[count], second[count]) == (1, 5)


async def test_without_the_store_it_tells_so_and_nothing_falls(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = Asked(client, clock)
    await client.enqueue("email", b"", kind="send")
    before = await asked.told()
    with monkeypatch.context() as broken:
        broken.setattr(client.store, "timings", _failing(StoreUnavailable("away", retryable=True)))
        down = await asked.told()
        broken.setattr(client.store, "timings", _failing(ZeroDivisionError()))
        worse = await asked.told()
    back = await asked.told()

    total = "windlass_queue_events_total{queue=email,event=enqueued}"
    for told in (down, worse):
        assert told["windlass_store_up"] == 0
        assert told[total] == before[total] == 1
        assert "windlass_queue_depth{queue=email,state=pending}" not in told
        assert any(name.startswith("windlass_build_info") for name in told)
    assert back["windlass_store_up"] == 1
    assert caplog.messages == ["metrics go without the store, until it is back: away"]


async def test_the_store_is_looked_at_once_in_five_seconds_however_many_ask(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics, looks, stats = StoreMetrics(client), list[str](), client.store.stats

    async def slow(*args: Any) -> Any:  # noqa: ANN401 - as the store's
        looks.append("a look")
        await asyncio.sleep(0)
        return await stats(*args)

    monkeypatch.setattr(client.store, "stats", slow)
    await asyncio.gather(*[metrics.written() for _ in range(5)])
    clock.advance(FRESH - 0.1)
    await metrics.written()
    before = len(looks)
    clock.advance(0.1)
    await metrics.written()

    assert (before, len(looks)) == (1, 2)


async def test_hostile_names_are_bounded_and_written_so_that_they_can_be_read(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of names, and such as would end the line that they stand in."""
    minute = clock.now().replace(second=0, microsecond=0)
    rows = [MinuteCounts(minute, f"q{n}", f"k{n}", Totals(1)) for n in range(2_000)]
    rows += [MinuteCounts(minute, 'a"} 1\nwindlass_store_up 0', "\ud800\\", Totals(enqueued=7))]
    timings = [TimingCount(minute, f"q{n}", "k", "ran", 3, 1) for n in range(2_000)]
    timings += [TimingCount(minute, "q0", "k", "ran", 99, 1)]
    waiting = [KindStats(f"q{n}", f"k{n}", 1, clock.now() - n * MINUTE) for n in reversed(range(2_000))]
    monkeypatch.setattr(client.store, "minutes", _giving(lambda: rows))
    monkeypatch.setattr(client.store, "waiting", _giving(lambda: waiting))
    monkeypatch.setattr(client.store, "timings", _giving(lambda: timings))
    for number in range(300):
        await client.enqueue(f"queue-{number}", b"")
        clock.advance(1)
    others = sorted(f"queue-{number}" for number in range(300))[MOST_QUEUES:]
    oldest = min(int(name.removeprefix("queue-")) for name in others)

    told = await Asked(client, clock).told()

    assert told["windlass_store_up"] == 1
    queues = {key for key in told if key.startswith("windlass_queue_paused")}
    assert len(queues) == MOST_QUEUES + 1
    assert told["windlass_queue_depth{queue=other,state=pending}"] == 300 - MOST_QUEUES
    assert told["windlass_queue_oldest_waiting_seconds{queue=other}"] == 300 - oldest + FRESH
    pairs = {key for key in told if key.startswith("windlass_kind_events_total") and "event=enqueued" in key}
    assert len(pairs) <= MOST_PAIRS + 1
    depth = {key: value for key, value in told.items() if key.startswith("windlass_kind_depth")}
    assert (len(depth) <= MOST_PAIRS + 1, sum(depth.values())) == (True, 2_000)
    assert told["windlass_kind_oldest_waiting_seconds{queue=other,kind=other}"] == 1_999 * 60 + 300 + FRESH


def _timing(minute: datetime, what: Any, place: int, count: int) -> TimingCount:  # noqa: ANN401 - one of two words
    return TimingCount(minute, "email", "send", what, place, count)


def _failing(error: Exception) -> Callable[..., Any]:
    async def fail(**_: object) -> None:
        raise error

    return fail


def _giving(rows: Callable[[], list[Any]]) -> Callable[..., Any]:
    async def give(**_: object) -> list[Any]:
        return rows()

    return give
