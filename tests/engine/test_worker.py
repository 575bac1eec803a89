import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.engine.executors.given import a_job
from tests.engine.given import a_handler, settlements_of
from windlass.client.client import Client
from windlass.core.errors import StoreUnavailable
from windlass.core.states import State
from windlass.core.verdict import LEASE_EXPIRED
from windlass.engine import worker as module
from windlass.engine.attempt import Attempt
from windlass.engine.claim_plan import ClaimPlan, Line
from windlass.engine.notes import Notes
from windlass.engine.office import Office
from windlass.engine.settlements import PLAIN
from windlass.engine.worker import Worker, may_be_poison
from windlass.testing import FakeClock

LEASE = timedelta(seconds=30)


class House:
    """A worker with two slots, whose attempts end when the test says so."""

    def __init__(self, client: Client) -> None:
        self.begun: list[Attempt] = []
        self.errors: list[Exception] = []
        self.settlements = settlements_of(client)
        handler = a_handler()
        self.worker = Worker(
            client.store,
            ClaimPlan(
                [Line("default", 1, LEASE, frozenset({None}))], order="strict", worker="me", draw=client.rng.random
            ),
            lambda _job: handler,
            slots=2,
            office=Office(client, Notes(client.store)),
            settlements=self.settlements,
            start=self.start,
            late=lambda _attempt: None,
            clock=client.clock,
            rng=client.rng,
            poll_interval=timedelta(seconds=1),
            failed=self.errors.append,
        )

    def start(self, attempt: Attempt) -> None:
        self.begun.append(attempt)
        attempt.task = asyncio.create_task(wait_for_ever())

    def end(self, attempt: Attempt) -> None:
        assert attempt.task is not None
        attempt.task.cancel()
        self.worker.ended(attempt, PLAIN)


async def wait_for_ever() -> None:
    await asyncio.Event().wait()


@pytest.fixture
async def house(client: Client) -> AsyncIterator[House]:
    made = House(client)
    made.worker.begin()
    yield made
    made.worker.end()
    await made.worker.last_claim(10)
    await made.settlements.drain()
    made.worker.close()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - nobody else says so
            await asyncio.sleep(0)


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    "changes, poison",
    [
        ({"attempt": 3}, True),
        ({"attempt": 2}, False),
        ({"attempt": 3, "last_error": "ValueError: x"}, False),
        ({"attempt": 1, "max_attempts": 1}, False),
        ({"attempt": 2, "max_attempts": 2}, True),
    ],
)
def test_a_job_with_one_attempt_left_after_a_rescue_may_be_poison(changes: dict[str, Any], poison: bool) -> None:  # noqa: FBT001
    job = a_job()._replace(last_error=LEASE_EXPIRED.summary)._replace(**changes)

    assert may_be_poison(job) is poison


async def test_a_slot_that_is_free_is_filled(client: Client, house: House) -> None:
    for _ in range(3):
        await client.enqueue("default", b"")
    await until(lambda: len(house.begun) == 2)
    await turns()
    assert len(house.begun) == 2

    house.end(house.begun[0])
    await until(lambda: len(house.begun) == 3)

    assert house.worker.running == set(house.begun[1:])
    assert house.worker.finished == 1


async def test_what_is_claimed_is_held_until_its_end_is_written(client: Client, house: House) -> None:
    await client.enqueue("default", b"")
    await until(lambda: len(house.begun) == 1)
    [attempt] = house.begun
    assert house.worker.held == {attempt.token: attempt}

    house.end(attempt)
    assert house.worker.held == {attempt.token: attempt}
    await house.settlements.drain()

    assert house.worker.held == {}


@pytest.mark.parametrize("error", [StoreUnavailable("away"), RuntimeError("a bug")])
async def test_a_worker_goes_on_after_any_error_of_the_store(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """B48."""
    claim = client.store.claim
    failures = [error, error]

    async def failing(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the store takes
        if failures:
            raise failures.pop()
        return await claim(*args, **kwargs)

    monkeypatch.setattr(client.store, "claim", failing)
    house = House(client)
    house.worker.begin()
    await client.enqueue("default", b"")
    for _ in range(2):
        await clock.timers(1)
        clock.advance(2)
    await until(lambda: len(house.begun) == 1)

    assert house.errors == [error, error]
    house.end(house.begun[0])
    house.worker.end()
    await house.worker.last_claim(10)
    await house.settlements.drain()


async def test_no_more_is_claimed_while_too_many_ends_wait_for_the_store_and_then_it_is(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, house: House
) -> None:
    monkeypatch.setattr(module, "MOST_UNSETTLED", 1)
    settle = client.store.settle
    away = True

    async def failing(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the store takes
        if away:
            raise StoreUnavailable("away")
        return await settle(*args, **kwargs)

    monkeypatch.setattr(client.store, "settle", failing)
    for _ in range(4):
        await client.enqueue("default", b"")
    await until(lambda: len(house.begun) == 2)
    for attempt in list(house.begun):
        house.end(attempt)
    clock.advance(0.9)
    await turns()
    assert len(house.begun) == 2

    away = False
    for _ in range(40):
        clock.advance(1)
        await turns(5)

    assert len(house.begun) == 4
    for attempt in house.begun[2:]:
        house.end(attempt)


async def test_an_end_gives_back_what_was_not_begun(client: Client, house: House, clock: FakeClock) -> None:
    for _ in range(12):
        await client.enqueue("default", b"")
    for _ in range(4):
        await until(lambda: len(house.worker.running) == 2)
        house.end(next(iter(house.worker.running)))
    await turns()
    assert len(house.worker.held) > 2
    clock.advance(0.1)

    house.worker.end()
    await house.worker.last_claim(10)
    await house.settlements.drain()

    jobs = await client.jobs()
    states = [job.state for job in jobs]
    assert (states.count(State.RUNNING), states.count(State.SUCCEEDED), states.count(State.PENDING)) == (2, 4, 6)
    assert {job.attempt for job in jobs if job.state is State.PENDING} == {0}
    for attempt in list(house.worker.running):
        house.end(attempt)
