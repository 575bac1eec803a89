"""Releases that declare one schedule differently, whose servers start and stop in any order."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.schedule.given import JOB, a_client
from windlass import App, Server
from windlass.client.client import Client
from windlass.schedule.upholding import EVERY
from windlass.testing import FakeClock
from windlass.testing.conformance.served import FailingStore


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(clock: FakeClock) -> AsyncIterator[Client]:
    async with a_client(clock) as client:
        yield client


def a_release(store: Any, clock: FakeClock, rule: str) -> Server:  # noqa: ANN401 - a store, or as good as one
    app = App(store, clock=clock)

    @app.every(rule)
    @app.job
    async def report() -> None: ...

    return Server(app)


async def rule_of(client: Client) -> str | None:
    schedule = await client.schedules.get("report")
    return None if schedule is None else schedule.rule


async def test_what_a_server_of_an_old_release_wrote_goes_with_it(
    client: Client, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "windlass")
    old, new = a_release(client.store, clock, "0 2 * * *"), a_release(client.store, clock, "0 3 * * *")
    async with new:
        await clock.let_pass(1)
        async with old:
            await clock.let_pass(3 * EVERY)
            # it started last: the other one does not contend with it
            assert await rule_of(client) == "0 2 * * *"

        await clock.let_pass(2 * EVERY)

        assert await rule_of(client) == "0 3 * * *"
        assert "schedule 'report' was as another server declared it that is gone" in caplog.text


async def test_servers_of_two_releases_do_not_contend(client: Client, clock: FakeClock) -> None:
    old, new = a_release(client.store, clock, "0 2 * * *"), a_release(client.store, clock, "0 3 * * *")
    async with old:
        await clock.let_pass(1)
        async with new:
            revision = (await client.store.schedules()).schedules[0].revision
            await clock.let_pass(5 * EVERY)

            [schedule] = (await client.store.schedules()).schedules
            assert (schedule.rule, schedule.revision) == ("0 3 * * *", revision)


async def test_what_was_put_at_run_time_is_left_alone(client: Client, clock: FakeClock) -> None:
    async with a_release(client.store, clock, "0 2 * * *"):
        await client.schedules.put("report", "0 4 * * *", JOB)

        await clock.let_pass(2 * EVERY)

        assert await rule_of(client) == "0 4 * * *"


async def test_what_was_removed_or_paused_stays_so(client: Client, clock: FakeClock) -> None:
    async with a_release(client.store, clock, "0 2 * * *"):
        await client.schedules.pause("report")
        await clock.let_pass(2 * EVERY)
        paused = await client.schedules.get("report")

        await client.schedules.remove("report")
        await clock.let_pass(2 * EVERY)

        assert paused is not None
        assert paused.paused
        assert await rule_of(client) is None


async def test_a_look_that_fails_is_told_of_and_made_again(
    client: Client, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    failing = FailingStore(client.store)
    async with a_release(failing, clock, "0 3 * * *"):
        await clock.let_pass(1)
        async with a_release(client.store, clock, "0 2 * * *"):
            failing.failing["schedules"] = 1

        await clock.let_pass(EVERY + 10)
        assert "could not be seen, it is tried again: no schedules today" in caplog.text
        assert await rule_of(client) == "0 2 * * *"

        await clock.let_pass(EVERY + 10)
        assert await rule_of(client) == "0 3 * * *"
