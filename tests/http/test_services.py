"""What a serving process runs beside its routes."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

import windlass
from windlass import ServerConfig, StoreUnavailable
from windlass.client.client import Client
from windlass.core.job import NewJob
from windlass.core.store import Store
from windlass.http.services import STOPPED_WITHIN, ServingServices
from windlass.testing import FakeClock, SeededRng
from windlass.testing.conformance.failing import cancelled_at
from windlass.testing.conformance.served import FailingStore

JOB = NewJob("default")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(clock: FakeClock) -> AsyncIterator[Client]:
    async with windlass.connect("memory://", clock=clock, rng=SeededRng(), keep_succeeded=30) as client:
        yield client


@pytest.fixture
async def services(client: Client) -> AsyncIterator[ServingServices]:
    services = ServingServices(client, ServerConfig(), name="front")
    yield services
    await services.stop()


class Silent:
    """A store that does not answer these calls."""

    def __init__(self, store: Store, *calls: str) -> None:
        self._store = store
        self._calls = calls

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return self._wait if name in self._calls else getattr(self._store, name)

    async def _wait(self, *_: object) -> None:
        await asyncio.Event().wait()


async def test_the_process_is_shown_among_the_servers_while_it_serves(
    client: Client, clock: FakeClock, services: ServingServices
) -> None:
    await services.start()
    await clock.let_pass(35)

    [record] = await client.store.servers()
    assert (record.id, record.name, record.details) == (services.id, "front", {"serves": "http"})
    assert (record.queues, record.kinds, record.schedules) == ((), (), ())
    assert clock.now() - record.seen_at <= timedelta(seconds=10)

    await services.stop()
    assert (await client.store.servers(), services.id) == ([], None)


async def test_it_is_another_process_at_every_start(client: Client, services: ServingServices) -> None:
    ids: set[str | None] = set()
    for _ in range(2):
        await asyncio.gather(*[services.start() for _ in range(3)])
        assert [record.id for record in await client.store.servers()] == [services.id]
        ids.add(services.id)
        await asyncio.gather(*[services.stop() for _ in range(3)])

    assert len(ids) == 2


async def test_stranded_jobs_wait_again_when_it_has_started(
    client: Client, clock: FakeClock, services: ServingServices
) -> None:
    await client.enqueue("email")
    await client.claim("email", lease=1)
    clock.advance(2)

    await services.start()

    assert (await client.stats("email")).pending == 1


async def test_servers_have_time_to_come_back_before_their_jobs_are_taken(client: Client, clock: FakeClock) -> None:
    for queue in ("lost", "held"):
        await client.enqueue(queue)
    await client.claim("lost", lease=1)
    held = await client.claim("held", lease=1)
    assert held is not None
    clock.advance(60)

    services = ServingServices(client, ServerConfig(), rescue_after=timedelta(seconds=15))
    await services.start()
    await clock.let_pass(14)
    assert (await client.stats("lost")).running == 1
    await client.renew(held, 30)
    await clock.let_pass(1)

    assert ((await client.stats("lost")).pending, (await client.stats("held")).running) == (1, 1)
    await services.stop()


async def test_it_rescues_promotes_and_prunes_as_the_settings_say(client: Client, clock: FakeClock) -> None:
    services = ServingServices(client, ServerConfig(rescue_interval=20, prune_interval=40, keep_succeeded=10))
    await services.start()
    await client.enqueue("lost")
    await client.claim("lost", lease=1)
    await client.enqueue("late", delay=5)
    await client.enqueue("done")
    claim = await client.claim("done")
    assert claim is not None
    await client.ack(claim)

    await clock.let_pass(19)
    assert [(row.queue, row.pending, row.running, row.succeeded) for row in await client.store.stats()] == [
        ("done", 0, 0, 1),
        ("late", 1, 0, 0),
        ("lost", 0, 1, 0),
    ]
    await clock.let_pass(1)
    assert (await client.stats("lost")).pending == 1
    await clock.let_pass(20)
    assert (await client.stats("done")).succeeded == 0

    await services.stop()


async def test_it_fires_what_was_put_at_run_time(client: Client, clock: FakeClock, services: ServingServices) -> None:
    await services.start()
    await client.schedules.put("beat", 10, JOB)

    await clock.let_pass(35)

    assert (await client.stats("default")).pending == 3


async def test_services_and_schedules_can_be_left_to_others(client: Client, clock: FakeClock) -> None:
    services = ServingServices(client, ServerConfig(services=False, schedules=False))
    await client.schedules.put("beat", 10, JOB)
    await client.enqueue("lost")
    await client.claim("lost", lease=1)
    await services.start()
    services.look()

    await clock.let_pass(60)

    [record] = await client.store.servers()
    assert record.details == {"serves": "http", "scheduling": "off"}
    assert ((await client.stats("default")).pending, (await client.stats("lost")).running) == (0, 1)
    await services.stop()


@pytest.mark.parametrize("call", ["beat", "ended_servers", "rescue"])
async def test_a_start_without_the_store_leaves_nothing_behind(client: Client, clock: FakeClock, call: str) -> None:
    failing: Any = FailingStore(client.store)
    failing.failing[call] = 1
    async with windlass.connect(failing, clock=clock) as served:
        services = ServingServices(served, ServerConfig())

        with pytest.raises(StoreUnavailable, match=f"no {call} today"):
            await services.start()
        assert (await client.store.servers(), services.id, clock.waiting) == ([], None, 0)

        await services.start()
        await services.stop()


async def test_a_start_that_is_cancelled_at_any_step_leaves_nothing_behind(client: Client, clock: FakeClock) -> None:
    step, services = 1, ServingServices(client, ServerConfig())
    while await cancelled_at(step, services.start()):
        assert (await client.store.servers(), services.id, clock.waiting) == ([], None, 0)
        step, services = step + 1, ServingServices(client, ServerConfig())
    await services.stop()

    assert step > 3
    assert (await client.store.servers(), clock.waiting) == ([], 0)


async def test_a_stop_does_not_wait_long_for_a_store_that_is_silent(
    client: Client, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    silent: Any = Silent(client.store, "leave")
    async with windlass.connect(silent, clock=clock) as served:
        services = ServingServices(served, ServerConfig(), name="front")
        await services.start()

        stopping = asyncio.ensure_future(services.stop())
        await clock.let_pass(STOPPED_WITHIN)
        await stopping

    assert "stays listed among the servers until it is seen to be gone" in caplog.text
    assert clock.waiting == 0
