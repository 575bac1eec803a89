"""What a scheduler fires for servers that only work: what they declare, while they live."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.schedule.given import JOB, SECOND, a_client, a_declared, a_scheduler, due_times
from windlass.client.client import Client
from windlass.client.schedules import put_schedule
from windlass.core.looks import ServerRecord
from windlass.core.schedule import CatchUp
from windlass.engine.config import ServerConfig
from windlass.engine.served import Around
from windlass.schedule.declared_by_servers import DeclaredByServers
from windlass.schedule.scheduler import Scheduler
from windlass.system import TaskSpawn
from windlass.testing import FakeClock
from windlass.testing.clock import turns

HOUR = timedelta(hours=1)
DEAD_AFTER = 60 * SECOND


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(clock: FakeClock) -> AsyncIterator[Client]:
    async with a_client(clock) as client:
        yield client


@pytest.fixture
def counted(client: Client, clock: FakeClock) -> DeclaredByServers:
    return DeclaredByServers(client.store, dead_after=DEAD_AFTER, clock=clock)


@pytest.fixture
async def scheduler(client: Client, counted: DeclaredByServers) -> AsyncIterator[Scheduler]:
    around = Around(ServerConfig(), client.clock, client.rng, TaskSpawn(), client, "serving#1")
    scheduler = Scheduler(client, counted, around)
    yield scheduler
    await scheduler.stop()


def a_server(
    clock: FakeClock,
    *schedules: str,
    name: str = "worker#1",
    started: timedelta = timedelta(0),
    details: dict[str, str] | None = None,
) -> ServerRecord:
    at = clock.now() - started
    told = {"served": "yes"} if details is None else details
    return ServerRecord(name, name, "host", 1, "0", started_at=at, seen_at=at, schedules=schedules, details=told)


async def declared(client: Client, *, catch_up: CatchUp) -> None:
    """Write a schedule of each second, as a server does that declares it."""
    wanted = a_declared("tidy", 1, catch_up=catch_up).wanted(client.preparer)
    await put_schedule(client.store, wanted, declared=True)


async def test_what_live_servers_declare_counts_from_the_first_of_their_starts_on(
    client: Client, clock: FakeClock, counted: DeclaredByServers
) -> None:
    await client.store.beat(a_server(clock, "a", "b", started=HOUR))
    await client.store.beat(a_server(clock, "b", "c", name="worker#2", started=2 * HOUR))

    await counted.look()

    now = clock.now()
    assert {name: counted.since(name) for name in counted.ids} == {
        "a": now - HOUR,
        "b": now - 2 * HOUR,
        "c": now - 2 * HOUR,
    }
    assert counted.since("d") is None


async def test_what_a_server_declares_that_is_silent_or_gone_counts_no_more(
    client: Client, clock: FakeClock, counted: DeclaredByServers
) -> None:
    await client.store.beat(a_server(clock, "silent", name="silent#1"))
    clock.advance(DEAD_AFTER / 2)
    await client.store.beat(a_server(clock, "gone", name="gone#1"))
    await counted.look()
    assert set(counted.ids) == {"silent", "gone"}

    clock.advance(DEAD_AFTER / 2)
    await client.store.leave("gone#1")
    await counted.look()

    assert set(counted.ids) == set()


async def test_one_that_goes_over_to_another_server_has_counted_all_the_time(
    client: Client, clock: FakeClock, counted: DeclaredByServers
) -> None:
    begun = clock.now()
    await client.store.beat(a_server(clock, "tidy", name="old#1"))
    await counted.look()
    clock.advance(10)
    await client.store.beat(a_server(clock, "tidy", name="new#1"))
    await client.store.leave("old#1")

    await counted.look()

    assert counted.since("tidy") == begun


async def test_one_that_nobody_declared_for_a_while_counts_anew(
    client: Client, clock: FakeClock, counted: DeclaredByServers
) -> None:
    await client.store.beat(a_server(clock, "tidy"))
    await counted.look()
    await client.store.leave("worker#1")
    await counted.look()
    clock.advance(10)

    await client.store.beat(a_server(clock, "tidy"))
    await counted.look()

    assert counted.since("tidy") == clock.now()


async def test_a_server_whose_clock_is_ahead_counts_from_the_look_on(
    client: Client, clock: FakeClock, counted: DeclaredByServers
) -> None:
    await client.store.beat(a_server(clock, "tidy", started=-HOUR))

    await counted.look()

    assert counted.since("tidy") == clock.now()


@pytest.mark.parametrize("catch_up, made", [("none", (6, 7)), ("one", (5, 6, 7)), ("all", (1, 2, 3, 4, 5, 6, 7))])
async def test_what_came_due_while_nobody_declared_it_passed_in_down_time(
    client: Client, clock: FakeClock, scheduler: Scheduler, catch_up: CatchUp, made: tuple[int, ...]
) -> None:
    """Whoever serves the store was there all the time."""
    begun = clock.now()
    await scheduler.start()
    await declared(client, catch_up=catch_up)
    await clock.let_pass(5.5)
    assert await due_times(client.store, "tidy") == []

    await client.store.beat(a_server(clock, "tidy"))
    scheduler.look()
    await clock.let_pass(2)

    assert await due_times(client.store, "tidy") == [begun + n * SECOND for n in made]


async def test_a_server_that_is_heard_of_late_has_missed_nothing(
    client: Client, clock: FakeClock, scheduler: Scheduler
) -> None:
    begun = clock.now()
    await scheduler.start()
    await declared(client, catch_up="none")
    await turns()
    await client.store.beat(a_server(clock, "tidy"))

    await clock.let_pass(10)

    assert await due_times(client.store, "tidy") == [begun + n * SECOND for n in range(1, 11)]


@pytest.mark.parametrize(
    "others, made",
    [
        ([("serving#2", (), {"serves": "http"}), ("worker#1", ("tidy",), {"served": "yes"})], (1, 2, 3)),
        ([("serving#2", (), {"serves": "http", "scheduling": "off"}), ("worker#1", ("tidy",), {"served": "yes"})], ()),
        ([("serving#2", (), {"serves": "http"})], ()),
        ([("worker#1", ("tidy",), {"served": "yes"})], ()),
    ],
    ids=["served", "served without schedules", "declared by nobody", "served by nobody"],
)
async def test_a_newcomer_counts_on_whoever_serves_for_those_that_only_work(
    client: Client,
    clock: FakeClock,
    others: list[tuple[str, tuple[str, ...], dict[str, str]]],
    made: tuple[int, ...],
) -> None:
    """What they are about to fire is dropped by nobody; one that only works fires nothing by itself."""
    begun = clock.now()
    await declared(client, catch_up="none")
    clock.advance(3.5)
    for name, schedules, details in others:
        await client.store.beat(a_server(clock, *schedules, name=name, started=HOUR, details=details))
    newcomer = a_scheduler(client, declared=[a_declared("tidy", 1, catch_up="none")])

    await newcomer.start()
    await turns()

    assert await due_times(client.store, "tidy") == [begun + n * SECOND for n in made]
    await newcomer.stop()


@pytest.mark.parametrize("details, made", [({"serves": "http"}, (1, 2, 3)), ({"served": "yes"}, ())])
async def test_a_newcomer_counts_on_whoever_serves_for_what_was_put_at_run_time(
    client: Client, clock: FakeClock, details: dict[str, str], made: tuple[int, ...]
) -> None:
    begun = clock.now()
    await client.schedules.put("beat", 1, JOB, catch_up="none")
    clock.advance(3.5)
    await client.store.beat(a_server(clock, started=HOUR, details=details))
    newcomer = a_scheduler(client)

    await newcomer.start()
    await turns()

    assert await due_times(client.store, "beat") == [begun + n * SECOND for n in made]
    await newcomer.stop()
