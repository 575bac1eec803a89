"""Schedules in the tests of an app: they come due when the test moves its clock."""

from datetime import UTC, datetime, timedelta

import pytest

from windlass import App
from windlass.testing import FakeClock, in_memory


@pytest.mark.slow
async def test_declared_schedules_run_when_the_clock_says_so() -> None:
    app = App("sqlite:///not-touched.db")
    ran: list[datetime] = []

    @app.every("0 3 * * *", timezone="Europe/Berlin")
    @app.job
    async def tidy() -> None:
        ran.append(clock.now())

    clock = FakeClock(datetime(2026, 3, 28, 12, tzinfo=UTC))
    async with in_memory(app, clock=clock) as test, test.server():
        await test.advance(timedelta(days=1))

    # the clocks of Berlin went ahead in this night
    assert ran == [datetime(2026, 3, 29, 1, tzinfo=UTC)]


async def test_without_a_server_nothing_fires() -> None:
    app = App("memory://")

    @app.every(1)
    @app.job
    async def tidy() -> None: ...

    async with in_memory(app) as test:
        assert await test.advance(60) == 0
        assert await test.client.schedules.list() == []
