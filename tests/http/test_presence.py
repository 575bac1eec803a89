"""Servers on other machines, as they are written down where the store is served."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

import windlass
from windlass.core.looks import ServerRecord
from windlass.core.store import Store
from windlass.http import presence as module
from windlass.http.presence import Presence
from windlass.testing import FakeClock

HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(clock: FakeClock) -> AsyncIterator[Store]:
    async with windlass.connect("memory://", clock=clock) as client:
        yield client.store


@pytest.fixture
def rung() -> list[str]:
    return []


@pytest.fixture
def presence(store: Store, clock: FakeClock, rung: list[str]) -> Presence:
    return Presence(store, clock, lambda: rung.append("rung"))


def a_server(clock: FakeClock, *schedules: str, name: str = "far#1") -> ServerRecord:
    """A server of a machine whose clock is an hour behind."""
    at = clock.now() - HOUR
    return ServerRecord(name, name, "far", 1, "0", started_at=at, seen_at=at, schedules=schedules)


async def started(store: Store) -> list[datetime]:
    return [server.started_at for server in await store.servers()]


async def test_a_start_is_told_by_the_clock_of_the_store_and_stays(
    store: Store, clock: FakeClock, presence: Presence
) -> None:
    begun, server = clock.now(), a_server(clock)
    await presence.beat(server)
    clock.advance(10)

    await presence.beat(replace(server, running=3))

    [record] = await store.servers()
    assert record == replace(server, running=3, started_at=begun, seen_at=clock.now())


async def test_a_start_is_known_to_a_process_that_came_later(
    store: Store, clock: FakeClock, presence: Presence
) -> None:
    begun, server = clock.now(), a_server(clock)
    await presence.beat(server)
    clock.advance(10)

    await Presence(store, clock, lambda: None).beat(server)

    assert await started(store) == [begun]


async def test_it_rings_when_a_server_declares_others_than_before(
    clock: FakeClock, presence: Presence, rung: list[str]
) -> None:
    await presence.beat(a_server(clock))
    assert rung == []

    for schedules in (("tidy",), ("tidy",), ("tidy", "report"), ()):
        await presence.beat(a_server(clock, *schedules))

    assert len(rung) == 3


async def test_a_server_that_leaves_is_taken_out_and_rings_when_it_comes_again(
    store: Store, clock: FakeClock, presence: Presence, rung: list[str]
) -> None:
    await presence.beat(a_server(clock, "tidy"))

    await presence.leave("far#1")
    assert await store.servers() == []
    await presence.beat(a_server(clock, "tidy", name="far#2"))

    assert len(rung) == 2


async def test_what_is_remembered_does_not_grow_for_ever(
    store: Store, clock: FakeClock, presence: Presence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    begun = clock.now()
    for name in ("a#1", "b#1", "c#1"):
        await presence.beat(a_server(clock, name=name))
    clock.advance(10)

    # forgotten, and found again in the store
    await presence.beat(a_server(clock, name="a#1"))

    assert await started(store) == [begun] * 3


async def test_a_beat_that_comes_after_its_server_has_left_is_not_written(
    store: Store, clock: FakeClock, presence: Presence
) -> None:
    await presence.beat(a_server(clock))
    await presence.leave("far#1")

    await presence.beat(a_server(clock))
    await presence.beat(a_server(clock, name="far#2"))

    assert [server.id for server in await store.servers()] == ["far#2"]
