import asyncio
import logging
from datetime import timedelta

import pytest

from windlass.engine.service import Service
from windlass.system import TaskSpawn
from windlass.testing import FakeClock, SeededRng


class Noting(FakeClock):
    """Keeps note of how long it was slept by."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def sleep(self, delay: float) -> None:
        self.pauses.append(delay)
        await super().sleep(delay)


class Counting(Service):
    """Counts its ticks, and how many loops run at once."""

    name = "counting"
    interval = timedelta(seconds=5)

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock=clock, rng=SeededRng(), spawn=TaskSpawn())
        self.ticks = 0
        self.left = 0
        self.inside = 0
        self.failing = False

    async def tick(self) -> None:
        self.inside += 1
        try:
            assert self.inside == 1
            await asyncio.sleep(0)
            if self.failing:
                raise RuntimeError("the store is away")
            self.ticks += 1
        finally:
            self.inside -= 1

    async def leave(self) -> None:
        self.left += 1


@pytest.fixture
def clock() -> Noting:
    return Noting()


@pytest.fixture
def service(clock: FakeClock) -> Counting:
    return Counting(clock)


async def test_a_service_ticks_at_its_start_and_after_each_interval(service: Counting, clock: FakeClock) -> None:
    await service.start()
    for _ in range(3):
        await clock.timers(1)
        clock.advance(5)
    await clock.timers(1)

    assert service.running
    assert service.ticks == 4
    await service.stop()


async def test_a_stopped_service_ticks_no_more_and_can_be_started_again(service: Counting, clock: FakeClock) -> None:
    await service.start()
    await clock.timers(1)
    await service.stop()
    stopped_with = service.ticks

    await service.start()
    await clock.timers(1)
    await service.stop()

    assert (stopped_with, service.ticks, service.left) == (1, 2, 2)
    assert clock.waiting == 0


async def test_an_error_is_logged_backed_off_from_and_survived(
    service: Counting, clock: Noting, caplog: pytest.LogCaptureFixture
) -> None:
    service.failing = True
    await service.start()
    for _ in range(12):
        await clock.timers(1)
        clock.advance(clock.pauses[-1])
    service.failing = False
    await clock.timers(1)

    assert service.ticks == 1
    assert 0.375 <= clock.pauses[0] <= 0.625
    assert max(clock.pauses) == 30
    assert clock.pauses[-1] == 5
    assert caplog.records[0].levelno == logging.ERROR
    assert "counting failed 1 times in a row" in caplog.text
    await service.stop()


async def test_starts_and_stops_by_many_at_once_leave_one_loop_or_none(service: Counting) -> None:
    rng = SeededRng(7)

    async def somebody() -> None:
        for _ in range(50):
            await (service.start() if rng.random() < 0.5 else service.stop())
            if rng.random() < 0.5:
                await asyncio.sleep(0)

    await asyncio.gather(*[somebody() for _ in range(20)])
    await asyncio.gather(*[service.stop() for _ in range(20)])

    assert not service.running
    assert service.inside == 0
    assert len(asyncio.all_tasks()) == 1
