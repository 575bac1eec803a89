"""A server on a store that another process serves runs only workers."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

import windlass
from tests.engine.served_store import ServedStore
from windlass import App, Server, ServerConfig
from windlass.client.client import Client
from windlass.core.states import State
from windlass.engine.context import Context
from windlass.testing import FakeClock, SeededRng

SERVICES = {"rescue", "promote", "prune", "ended_servers", "due_schedules", "fire"}


@pytest.fixture
def store(client: Client) -> ServedStore:
    return ServedStore(client.store)


@pytest.fixture
def app(store: ServedStore, clock: FakeClock) -> App:
    as_good_as_a_store: Any = store
    return App(as_good_as_a_store, clock=clock, rng=SeededRng(1))


async def test_it_runs_no_service_and_says_so(client: Client, clock: FakeClock, store: ServedStore, app: App) -> None:
    @app.every(1)
    @app.job
    async def tidy() -> None: ...

    await client.enqueue("default", b"", max_attempts=1)
    await client.claim("default", lease=1)
    async with app, Server(app):
        await clock.let_pass(180)
        [record] = await client.store.servers()

    assert SERVICES.isdisjoint(store.calls)
    assert store.calls.count("beat") > 10
    assert (record.details["served"], record.schedules) == ("yes", ("tidy",))
    assert (await client.stats("default")).running == 1


async def test_it_works_and_renews_what_it_holds(clock: FakeClock, app: App) -> None:
    go = asyncio.Event()

    @app.job(timeout=None)
    async def long(ctx: Context) -> str:
        ctx.log.info("waits")
        await go.wait()
        return "done"

    async with app, Server(app):
        handle = await long.enqueue()
        await clock.let_pass(timedelta(minutes=5))
        held = await handle.job()
        go.set()
        assert await handle.result(timeout=10) == "done"

    assert (held.state, held.delivery, len(held.log)) == (State.RUNNING, 1, 1)
    assert held.lease_expires_at is not None
    assert held.lease_expires_at > clock.now()


async def test_a_server_of_nothing_but_services_has_nothing_to_do_there(
    clock: FakeClock, store: ServedStore, app: App
) -> None:
    async with app, Server(app, ServerConfig(concurrency=0, schedules=False)):
        await clock.let_pass(60)
        [record] = await store.behind.servers()

    assert SERVICES.isdisjoint(store.calls)
    assert (record.details["scheduling"], record.details["served"]) == ("off", "yes")


async def test_a_client_leaves_the_services_to_whoever_serves_and_says_so_once(
    client: Client, clock: FakeClock, store: ServedStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "windlass")
    as_good_as_a_store: Any = store
    async with windlass.connect(as_good_as_a_store, clock=clock, services=True) as served:
        await served.enqueue("email")
        await clock.let_pass(60)

        assert await client.store.servers() == []

    assert SERVICES.isdisjoint(store.calls)
    assert [record.getMessage() for record in caplog.records] == [
        "services=True changes nothing here: whoever serves this store rescues, promotes and prunes"
    ]
