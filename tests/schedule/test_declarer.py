"""On a store that another process serves, a server declares its schedules and fires none."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.engine.served_store import ServedStore
from tests.schedule.given import JOB, SECOND, a_client, due_times
from windlass import App, Server, ServerConfig
from windlass.client.client import Client
from windlass.http.services import ServingServices
from windlass.schedule.upholding import EVERY
from windlass.testing import FakeClock
from windlass.testing.conformance.served import FailingStore


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(clock: FakeClock) -> AsyncIterator[Client]:
    """A client where the store is served from."""
    async with a_client(clock) as client:
        yield client


@pytest.fixture
def store(client: Client) -> ServedStore:
    return ServedStore(client.store)


def a_release(store: Any, clock: FakeClock, rule: str | float) -> Server:  # noqa: ANN401 - as good as a store
    app = App(store, clock=clock)

    @app.every(rule)
    @app.job(queue="worked-by-nobody-yet")
    async def report() -> None: ...

    return Server(app)


async def rule_of(client: Client) -> str | None:
    schedule = await client.schedules.get("report")
    return None if schedule is None else schedule.rule


async def test_what_a_server_declares_is_written_before_it_is_seen(
    client: Client, clock: FakeClock, store: ServedStore
) -> None:
    """Whoever fires for it would go by what another release has left."""
    async with a_release(store, clock, "0 3 * * *"):
        assert store.calls.index("write_schedule") < store.calls.index("beat")
        assert await rule_of(client) == "0 3 * * *"


async def test_it_fires_nothing_by_itself(client: Client, clock: FakeClock, store: ServedStore) -> None:
    await client.schedules.put("beat", 1, JOB)
    async with a_release(store, clock, 1):
        await clock.let_pass(60)

    assert await due_times(client.store, "beat") == await due_times(client.store, "report") == []
    assert {"due_schedules", "fire"}.isdisjoint(store.calls)


async def test_what_cannot_be_written_at_the_start_is_written_later(
    client: Client, clock: FakeClock, store: ServedStore, caplog: pytest.LogCaptureFixture
) -> None:
    behind: Any = store
    failing = FailingStore(behind)
    failing.failing["write_schedule"] = 2
    async with a_release(failing, clock, "0 3 * * *"):
        assert await rule_of(client) is None
        await clock.let_pass(10)

        assert await rule_of(client) == "0 3 * * *"
    assert "could not be written, it is tried again: no write_schedule today" in caplog.text


async def test_what_a_server_of_an_old_release_wrote_goes_with_it(
    client: Client, clock: FakeClock, store: ServedStore
) -> None:
    async with a_release(store, clock, "0 3 * * *"):
        await clock.let_pass(1)
        async with a_release(store, clock, "0 2 * * *"):
            await clock.let_pass(3 * EVERY)
            assert await rule_of(client) == "0 2 * * *"

        await clock.let_pass(2 * EVERY)

        assert await rule_of(client) == "0 3 * * *"


async def test_whoever_serves_the_store_fires_for_it(client: Client, clock: FakeClock, store: ServedStore) -> None:
    begun, server = clock.now(), a_release(store, clock, 10)
    services = ServingServices(client, ServerConfig())
    await services.start()
    async with server:
        services.look()
        await clock.let_pass(25)
    # nobody declares it any more
    await clock.let_pass(30)
    await services.stop()

    assert await due_times(client.store, "report") == [begun + n * SECOND for n in (10, 20)]
