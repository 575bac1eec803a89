import asyncio
from collections.abc import AsyncIterator, Callable
from contextvars import Context
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

import windlass
from tests.client.rated_store import RatedStore
from tests.engine.executors.given import a_job
from tests.engine.given import a_handler, settlements_of
from windlass.client.client import Client
from windlass.core.errors import StoreUnavailable
from windlass.core.job import Job
from windlass.core.requests import Claimed
from windlass.core.states import State
from windlass.core.verdict import LEASE_EXPIRED
from windlass.engine import claim_loop, slots
from windlass.engine.attempt import Attempt
from windlass.engine.attempt_services import AttemptServices
from windlass.engine.attempt_stopper import AttemptStopper
from windlass.engine.claim_loop import ClaimLoop
from windlass.engine.claim_plan import ClaimPlan, Line
from windlass.engine.execution import Execution
from windlass.engine.executors.processes import Processes
from windlass.engine.executors.threads import Threads
from windlass.engine.hooks import Hooks
from windlass.engine.notes import Notes
from windlass.engine.ready import ReadyHandlers
from windlass.engine.settlement_writer import PLAIN
from windlass.engine.slots import Slots, may_be_poison
from windlass.engine.tally import Tally
from windlass.engine.unstarted_claims import AHEAD_FOR
from windlass.system import TaskSpawn
from windlass.testing import FakeClock

LEASE = timedelta(seconds=30)


class Doors:
    """Keeps the answers of a store's claims back, each until its door is opened."""

    def __init__(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shut: list[asyncio.Event] = []
        self._all_open = False
        self._claim = client.store.claim
        monkeypatch.setattr(client.store, "claim", self.claim)

    async def claim(self, *args: Any, **kwargs: Any) -> Claimed:  # noqa: ANN401 - whatever the store takes
        claims = await self._claim(*args, **kwargs)
        if not self._all_open:
            self.shut.append(asyncio.Event())
            await self.shut[-1].wait()
        return claims

    async def open(self, place: int = 0) -> None:
        """Let one answer through, the first unless another is named."""
        await until(lambda: len(self.shut) > place)
        self.shut.pop(place).set()
        await turns()

    async def two(self) -> None:
        """Let answers through until two claims are under way."""
        while len(self.shut) < 2:
            await self.open()

    def open_all(self) -> None:
        """Keep nothing back from now on."""
        self._all_open = True
        for door in self.shut:
            door.set()


class House:
    """Two slots and their claim loop; attempts end when the test says so, or at once."""

    def __init__(self, client: Client, *, slots: int = 2, at_once: bool = False) -> None:
        self.at_once = at_once
        self.begun: list[Attempt] = []
        self.errors: list[Exception] = []
        self.settlements = settlements_of(client)
        handler = a_handler()
        counts = Tally()
        self.slots = Slots(
            slots,
            Started(self),
            store=client.store,
            settlements=self.settlements,
            stopper=AttemptStopper(self.settlements, client.clock),
            counts=counts,
            clock=client.clock,
        )
        self.held = self.settlements.held
        self.claims = ClaimLoop(
            ClaimPlan(
                [Line("default", 1, LEASE, frozenset({None}))], order="strict", worker="me", draw=client.rng.random
            ),
            ReadyHandlers({}, {"default": handler}),
            self.slots,
            services=AttemptServices(client, Notes(client.store)),
            hooks=Hooks([], [], TaskSpawn()),
            poll_interval=timedelta(seconds=1),
            on_store_error=self.errors.append,
        )

    async def close(self) -> None:
        self.claims.stop()
        await self.claims.last_claim(10)
        await self.settlements.drain()
        self.slots.close()

    def end(self, attempt: Attempt) -> None:
        assert attempt.task is not None
        attempt.task.cancel()
        self.slots.end(attempt, PLAIN)


class Started(Execution):
    """Keeps the attempts that are started, whose code ends when the test says so, or at once."""

    def __init__(self, house: House) -> None:
        super().__init__(windlass.App("memory://"), threads=Threads(), processes=Processes(most=1))
        self._house = house

    def start(self, attempt: Attempt, loop: asyncio.AbstractEventLoop, context: Context | None = None) -> None:
        self._house.begun.append(attempt)
        if self._house.at_once:
            self.on_end(attempt, PLAIN)
            return
        attempt.task = loop.create_task(wait_for_ever(), context=context)


def every_job(_job: Job) -> bool:
    return True


async def wait_for_ever() -> None:
    await asyncio.Event().wait()


@pytest.fixture
async def house(client: Client) -> AsyncIterator[House]:
    made = House(client)
    made.claims.begin()
    yield made
    await made.close()


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

    assert house.slots.running == set(house.begun[1:])
    assert house.slots.finished == 1


async def test_the_next_claim_is_made_when_the_store_has_said(clock: FakeClock) -> None:
    store = RatedStore(clock)
    async with windlass.App(store, clock=clock) as app:
        await app.client.enqueue("default", b"")
        store.open_in(0.25)
        house = House(app.client)
        house.claims.begin()
        await until(lambda: store.refused == 1)
        await turns()

        clock.advance(0.25)

        await until(lambda: len(house.begun) == 1)
        await house.close()
    assert store.refused == 1


async def test_what_is_claimed_is_held_until_its_end_is_written(client: Client, house: House) -> None:
    await client.enqueue("default", b"")
    await until(lambda: len(house.begun) == 1)
    [attempt] = house.begun
    assert house.held.attempts() == [attempt]

    house.end(attempt)
    assert house.held.attempts() == [attempt]
    await house.settlements.drain()

    assert house.held.attempts() == []


@pytest.mark.parametrize("error", [StoreUnavailable("away"), RuntimeError("a bug")])
async def test_a_worker_goes_on_after_any_error_of_the_store(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    claim = client.store.claim
    failures = [error, error]

    async def failing(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the store takes
        if failures:
            raise failures.pop()
        return await claim(*args, **kwargs)

    monkeypatch.setattr(client.store, "claim", failing)
    house = House(client)
    house.claims.begin()
    await client.enqueue("default", b"")
    for _ in range(2):
        await clock.timers(1)
        clock.advance(2)
    await until(lambda: len(house.begun) == 1)

    assert house.errors == [error, error]
    house.end(house.begun[0])
    house.claims.stop()
    await house.claims.last_claim(10)
    await house.settlements.drain()


async def test_no_more_is_claimed_while_too_many_ends_wait_for_the_store_and_then_it_is(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(client.store), "features", replace(client.store.features, most_unsettled=1))
    house = House(client)
    house.claims.begin()
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
    house.claims.stop()
    await house.claims.last_claim(10)
    await house.settlements.drain()
    house.slots.close()


async def test_an_end_gives_back_what_was_not_begun(client: Client, house: House, clock: FakeClock) -> None:
    for _ in range(12):
        await client.enqueue("default", b"")
    for _ in range(4):
        await until(lambda: len(house.slots.running) == 2)
        house.end(next(iter(house.slots.running)))
    await turns()
    assert len(house.held) > 2
    clock.advance(0.1)

    house.claims.stop()
    await house.claims.last_claim(10)
    await house.settlements.drain()

    jobs = await client.jobs()
    states = [job.state for job in jobs]
    assert (states.count(State.RUNNING), states.count(State.SUCCEEDED), states.count(State.PENDING)) == (2, 4, 6)
    assert {job.attempt for job in jobs if job.state is State.PENDING} == {0}
    for attempt in list(house.slots.running):
        house.end(attempt)


async def test_a_fast_worker_asks_for_the_next_jobs_while_some_are_coming_and_begins_them_in_line(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1_000):
        await client.enqueue("default", str(number).encode())
    doors, house = Doors(client, monkeypatch), House(client, at_once=True)
    house.claims.begin()
    await doors.two()
    begun = len(house.begun)

    await doors.open(1)
    assert len(house.begun) == begun
    await doors.open(0)

    assert len(house.begun) > begun + claim_loop.FAST // 2
    assert [int(attempt.job.payload) for attempt in house.begun] == list(range(len(house.begun)))
    while len(house.begun) < 1_000:
        assert len(doors.shut) <= 2
        await doors.open()
    house.claims.stop()
    doors.open_all()
    await house.claims.last_claim(10)
    await house.settlements.drain()
    assert house.held.attempts() == []


async def test_a_fast_worker_sleeps_soon_after_the_last_job(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(1_000):
        await client.enqueue("default", b"")
    doors, house = Doors(client, monkeypatch), House(client, at_once=True)
    house.claims.begin()
    while len(house.begun) < 1_000:
        await doors.open()

    empty = 0
    while doors.shut:
        empty += 1
        assert empty <= 3, "it looks again and again where nothing is"
        await doors.open()

    house.claims.stop()
    await house.claims.last_claim(10)
    await house.settlements.drain()


async def test_a_worker_with_one_slot_has_one_claim_under_way(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(1_000):
        await client.enqueue("default", b"")
    doors, house = Doors(client, monkeypatch), House(client, slots=1, at_once=True)
    house.claims.begin()

    while len(house.begun) < 1_000:
        assert len(doors.shut) <= 1
        await doors.open()

    house.claims.stop()
    doors.open_all()
    await house.claims.last_claim(10)
    await house.settlements.drain()


async def test_an_end_gives_back_what_two_claims_bring_afterwards(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(1_000):
        await client.enqueue("default", b"")
    doors, house = Doors(client, monkeypatch), House(client, at_once=True)
    house.claims.begin()
    await doors.two()
    begun = len(house.begun)

    house.claims.stop()
    for _ in range(2):
        await doors.open()
    await house.claims.last_claim(10)
    await house.settlements.drain()

    jobs = await client.jobs(limit=1_000)
    assert [(job.state, job.attempt) for job in jobs[begun:]] == [(State.PENDING, 0)] * (1_000 - begun)
    assert len(house.begun) == begun


async def a_claim_behind_another(client: Client, monkeypatch: pytest.MonkeyPatch) -> tuple[House, Doors]:
    """Return a worker whose second claim was answered, and waits for the first."""
    for _ in range(1_000):
        await client.enqueue("default", b"")
    doors, house = Doors(client, monkeypatch), House(client, at_once=True)
    house.claims.begin()
    await doors.two()
    await doors.open(1)
    assert len(doors.shut) == 1
    return house, doors


async def attempts_of(client: Client, state: State) -> list[int]:
    return [job.attempt for job in await client.jobs(limit=1_000) if job.state is state]


async def gone(house: House, doors: Doors) -> None:
    """Stop the worker in order."""
    house.claims.stop()
    doors.open_all()
    await house.claims.last_claim(10)
    await house.settlements.drain()
    house.slots.close()


async def test_an_end_gives_back_what_waits_behind_a_claim_that_is_never_answered(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    house, _ = await a_claim_behind_another(client, monkeypatch)
    begun, held = len(house.begun), len(house.held)

    house.claims.stop()
    await house.settlements.drain()
    assert held > 0
    assert house.held.attempts() == []
    last = asyncio.create_task(house.claims.last_claim(0.5))
    await clock.timers(1)
    clock.advance(0.5)
    await last

    # what the claim without an answer took is left to its lease
    assert len(await attempts_of(client, State.PENDING)) >= held
    assert set(await attempts_of(client, State.PENDING)) == {0}
    assert len(house.begun) == begun


async def test_an_end_gives_back_what_is_answered_later_behind_a_claim_that_is_never_answered(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(1_000):
        await client.enqueue("default", b"")
    doors, house = Doors(client, monkeypatch), House(client, at_once=True)
    house.claims.begin()
    await doors.two()
    begun = len(house.begun)
    running = len(await attempts_of(client, State.RUNNING))

    house.claims.stop()
    await doors.open(1)
    last = asyncio.create_task(house.claims.last_claim(0.5))
    await clock.timers(1)
    clock.advance(0.5)
    await last
    await house.settlements.drain()

    assert len(await attempts_of(client, State.RUNNING)) < running
    assert (len(house.begun), len(house.held)) == (begun, 0)


async def test_a_worker_that_is_abandoned_gives_nothing_back(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    house, _ = await a_claim_behind_another(client, monkeypatch)
    running = len(await attempts_of(client, State.RUNNING))

    house.claims.abandon()
    await house.claims.last_claim(10)
    await turns()

    assert (len(house.settlements), len(house.held)) == (0, 0)
    assert len(await attempts_of(client, State.RUNNING)) == running


async def test_what_waits_behind_a_claim_is_given_back_when_its_queue_is_paused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    house, doors = await a_claim_behind_another(client, monkeypatch)
    begun, held = len(house.begun), len(house.held)

    await client.pause("default")
    await turns()
    await house.settlements.drain()

    assert held > 0
    assert (len(house.begun), len(house.held)) == (begun, 0)
    await gone(house, doors)


async def test_what_a_claim_brings_of_a_queue_that_was_paused_meanwhile_is_given_back(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await client.enqueue("default", b"")
    doors, house = Doors(client, monkeypatch), House(client)
    house.claims.begin()
    await until(lambda: len(doors.shut) == 1)

    await client.pause("default")
    await turns()
    await doors.open()
    await house.settlements.drain()

    assert await attempts_of(client, State.PENDING) == [0, 0, 0]
    assert house.begun == []
    await gone(house, doors)


async def test_what_waits_behind_a_claim_for_a_second_is_given_back(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    house, doors = await a_claim_behind_another(client, monkeypatch)
    begun, held = len(house.begun), len(house.held)

    clock.advance(AHEAD_FOR)
    await house.settlements.drain()

    assert held > 0
    assert (len(house.begun), len(house.held)) == (begun, 0)
    await gone(house, doors)


async def test_an_error_of_one_claim_loses_nothing_of_the_next(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(1_000):
        await client.enqueue("default", b"")
    claim = client.store.claim
    made = 0

    async def failing(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever the store takes
        nonlocal made
        made += 1
        if made % 3 == 0:
            raise StoreUnavailable("away")
        return await claim(*args, **kwargs)

    monkeypatch.setattr(client.store, "claim", failing)
    house = House(client, at_once=True)
    house.claims.begin()
    while len(house.begun) < 1_000:
        await turns()
        clock.advance(1)

    assert house.errors
    house.claims.stop()
    await house.claims.last_claim(10)
    await house.settlements.drain()
    assert len({attempt.job.id for attempt in house.begun}) == len(house.begun) == 1_000


async def test_a_job_that_may_be_poison_is_not_begun_while_a_claim_is_under_way(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(1_000):
        await client.enqueue("default", b"")
    doors, house = Doors(client, monkeypatch), House(client, at_once=True)
    house.claims.begin()
    await doors.two()
    begun = len(house.begun)
    monkeypatch.setattr(slots, "may_be_poison", every_job)

    await doors.open()
    await house.settlements.drain()
    assert (len(house.begun), len(house.held)) == (begun, 1)
    await doors.open()
    await house.settlements.drain()
    await until(lambda: len(house.begun) == begun + 1)

    house.claims.stop()
    doors.open_all()
    await house.claims.last_claim(10)
    await house.settlements.drain()
