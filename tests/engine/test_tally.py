import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import windlass
from tests.engine.executors.given import NOW, a_job
from tests.engine.given import an_attempt, settlements_of
from windlass.client.client import Client
from windlass.core.errors import StoreUnavailable
from windlass.core.requests import ClaimRequest, RescueRequest
from windlass.core.retention import KEEP_ALL
from windlass.core.stats import BOUNDS
from windlass.engine.settlement_writer import PLAIN
from windlass.engine.tally import MOST_PAIRS, Pair, Tally
from windlass.testing import FakeClock
from windlass.testing.clock import turns

HOUR = timedelta(hours=1)


def ends(tally: Tally) -> dict[str, int]:
    """How the attempts of `work` ended."""
    return {outcome: count for outcome, count in tally.pairs()[Pair("default", "work")].ends.items() if count}


@pytest.mark.parametrize(
    "seconds, place",
    [(0.0, 0), (0.005, 0), (0.0051, 1), (1.0, BOUNDS.index(1.0)), (7_200.0, len(BOUNDS) - 1), (1e9, len(BOUNDS))],
)
def test_a_bound_belongs_to_the_range_below_it(seconds: float, place: int) -> None:
    tally = Tally()

    tally.of(a_job()).ran.add(seconds)

    counts = tally.pairs()[Pair("default", "")]
    assert [each for each, count in enumerate(counts.ran.counts) if count] == [place]
    assert counts.ran.seconds == seconds


@pytest.mark.parametrize("due_for, waited", [(5.0, 5.5), (-5.0, 0.5)])
def test_a_job_has_waited_by_the_clock_of_the_store_and_since_its_claim_by_ours(due_for: float, waited: float) -> None:
    tally = Tally()

    tally.begin(a_job(run_at=NOW - timedelta(seconds=due_for), claimed_at=NOW), 0.5)

    assert tally.pairs()[Pair("default", "")].waited.seconds == waited


def test_more_queues_and_kinds_than_are_told_apart_count_as_other() -> None:
    tally = Tally()

    for number in range(MOST_PAIRS + 50):
        tally.of(a_job(kind=f"kind-{number}")).ran.add(1)

    pairs = tally.pairs()
    assert len(pairs) == MOST_PAIRS + 1
    assert sum(pairs[Pair("other", "other")].ran.counts) == 50


async def test_every_attempt_is_counted_once_with_its_times_and_its_end() -> None:
    raised: dict[str, Exception] = {
        "snoozed": windlass.Snooze(60),
        "cancelled": windlass.Cancel("no more"),
        "retried": ValueError(),
        "dead": windlass.PermanentFailure("never"),
        "released": windlass.Release(),
    }
    app, left, done = windlass.App("memory://"), set(raised) | {"succeeded"}, asyncio.Event()

    @app.job
    async def work(how: str) -> None:
        if how not in left:
            await asyncio.Event().wait()
        left.discard(how)
        if not left:
            done.set()
        if how in raised:
            raise raised[how]

    server = windlass.Server(app)
    async with app:
        handles = [await work.enqueue(how) for how in (*raised, "succeeded")]
        async with server:
            await asyncio.wait_for(done.wait(), 30)
            await server.stop(grace=0)
        now = app.client.clock.now()
        timings = await app.client.store.timings(since=now - HOUR, until=now + HOUR)

    counts = server.tally.pairs()[Pair("default", "work")]
    # what was released was claimed again, and given back by the stop
    again = server.tally.claimed - len(handles)
    assert counts.ends == {**dict.fromkeys((*raised, "succeeded"), 1), "released": 1 + again, "lost": 0}
    assert sum(counts.ran.counts) == sum(counts.waited.counts) >= len(handles)
    assert server.tally.lost == 0
    for what, times in (("waited", counts.waited), ("ran", counts.ran)):
        assert sum(row.attempts for row in timings if row.what == what) == sum(times.counts)


async def test_an_attempt_whose_claim_was_lost_is_counted_as_lost_and_by_nothing_else(client: Client) -> None:
    tally = Tally()
    settlements = settlements_of(client, counts=tally)
    attempt = await an_attempt(client)
    await client.store.rescue(RescueRequest(force=True), KEEP_ALL)

    settlements.add(attempt, PLAIN)
    await settlements.drain()

    assert tally.lost == 1
    assert ends(tally) == {"lost": 1}


async def test_a_success_that_a_transaction_of_the_handler_wrote_is_counted(tmp_path: Path) -> None:
    app = windlass.App(f"sqlite:///{tmp_path}/jobs.db")

    @app.job
    async def work(ctx: windlass.Context) -> None:
        async with ctx.transaction():
            pass

    server = windlass.Server(app)
    async with app, server:
        await (await work.enqueue()).result(timeout=30)

    assert ends(server.tally) == {"succeeded": 1}


async def test_what_the_store_does_not_do_is_counted_by_call(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what a server rescues, which it does while nothing can be claimed."""
    app, tried = windlass.App(client.store, clock=clock), asyncio.Event()
    await client.enqueue("default", b"", kind="elsewhere")
    await client.store.claim(ClaimRequest(("default",), 1, timedelta(seconds=1)))
    clock.advance(2)

    async def fail(*_: object, **__: object) -> None:
        tried.set()
        message = "away"
        raise StoreUnavailable(message, retryable=True)

    @app.job
    async def work() -> None: ...

    server = windlass.Server(app)
    async with app:
        monkeypatch.setattr(app.client.store, "claim", fail)
        async with server:
            await tried.wait()
            await turns()

    assert server.tally.store_errors == {"claim": 1, "settle": 0, "renew": 0}
    assert server.tally.rescued == 1


async def test_settlements_that_the_store_does_not_take_are_counted(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally, settle = Tally(), client.store.settle
    settlements = settlements_of(client, counts=tally)
    errors = [StoreUnavailable("away", retryable=True)]

    async def fail_once(*args: Any) -> Any:  # noqa: ANN401 - as the store's
        if errors:
            raise errors.pop()
        return await settle(*args)

    monkeypatch.setattr(client.store, "settle", fail_once)
    settlements.add(await an_attempt(client), PLAIN)
    await clock.let_pass(60)
    await settlements.drain()

    assert tally.store_errors["settle"] == 1
    assert ends(tally) == {"succeeded": 1}
