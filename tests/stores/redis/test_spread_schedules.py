"""Schedules that are kept with their queues, each under a hash tag of its own: what races and crashes leave."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from tests.redis.asking import ask
from tests.redis.cluster import new_cluster_url
from tests.redis.keys import prefix_of, servers_of
from windlass.connect import open_store
from windlass.core.commands import WriteSchedule
from windlass.core.errors import NotAtomicHere
from windlass.core.schedule import FireOutcome, Firing, Schedule
from windlass.core.store import Store
from windlass.core.topics import Hub
from windlass.stores.redis.options import Options, Place
from windlass.stores.redis.prepare import Vouching
from windlass.stores.redis.queues import Queues
from windlass.stores.redis.room import open_room
from windlass.stores.redis.spread import Spread
from windlass.testing import FakeClock, SeededRng
from windlass.testing.conformance.given import a_job, a_schedule, kept, written

ROUNDS = 50


@pytest.fixture
def url() -> Iterator[str]:
    with new_cluster_url(spread=True) as url:
        yield url


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(url: str, clock: FakeClock) -> AsyncIterator[Store]:
    store = open_store(url, clock=clock, rng=SeededRng())
    await store.open()
    yield store
    await store.close()


class SlowQueues(Queues):
    """Queues in front of which somebody is held up: after a place was written down, or before one is forgotten."""

    held_up: asyncio.Event
    go: asyncio.Event
    keeping: bool = True

    async def keep_schedule(self, schedule_id: str, queue: str) -> str:
        at = await super().keep_schedule(schedule_id, queue)
        if self.keeping:
            await self._wait()
        return at

    async def forget_schedule(self, schedule_id: str, queue: str) -> None:
        if not self.keeping:
            await self._wait()
        await super().forget_schedule(schedule_id, queue)

    async def _wait(self) -> None:
        self.held_up.set()
        await self.go.wait()


@pytest.fixture
async def slow(url: str, store: Store, clock: FakeClock) -> AsyncIterator[SlowQueues]:  # noqa: ARG001 - it is open
    parts = urlsplit(url)
    places = tuple(Place(host, int(port)) for host, port in (each.split(":") for each in parts.netloc.split(",")))
    options = Options("cluster", places, prefix=prefix_of(url), spread=True)
    rng = SeededRng(2)
    room = await open_room(options, clock, rng, Hub())
    queues = SlowQueues(
        room.runner, options.prefix, lambda: rng.token_bytes(16).hex(), Vouching(room.runner, options).vouch
    )
    queues.held_up, queues.go = asyncio.Event(), asyncio.Event()
    yield queues
    await queues.close()
    await room.close()


def _in(queue: str, clock: FakeClock) -> Schedule:
    return replace(a_schedule("s", clock.now()), queue=queue)


async def _forget(url: str) -> None:
    """Remove what is written down at home about where schedules are, as a crash between two writes leaves it."""
    key = f"{{{prefix_of(url)}}}|schedules_at"
    for server in servers_of(url):
        if key in await asyncio.to_thread(ask, server, "KEYS", "*schedules_at"):
            assert await asyncio.to_thread(ask, server, "DEL", key) == 1


async def test_a_schedule_whose_place_is_not_known_at_home_is_found(store: Store, url: str, clock: FakeClock) -> None:
    await store.enqueue([a_job("b")])
    schedule = await written(store, _in("a", clock))

    await _forget(url)
    fired = await store.fire(Firing("s", schedule.revision, [a_job("a")], schedule.next_run_at))
    assert fired.outcome is FireOutcome.DONE
    await _forget(url)
    with pytest.raises(NotAtomicHere):
        await store.write_schedule(_in("b", clock), expected=(await kept(store, "s")).revision)
    await _forget(url)
    assert await store.write_schedule(_in("b", clock), expected=None) is None
    await _forget(url)
    assert await store.remove_schedule("s")

    assert (await store.schedules()).schedules == []
    assert await store.write_schedule(_in("b", clock), expected=None) is not None


async def test_whoever_was_too_slow_with_another_queue_gives_way(
    store: Store, slow: SlowQueues, clock: FakeClock
) -> None:
    """It has written down where the schedule is to be, and somebody else thinks that it was killed then."""
    late = asyncio.ensure_future(Spread(slow).do(WriteSchedule(_in("a", clock), None)))
    await asyncio.wait_for(slow.held_up.wait(), 10)

    revision = await store.write_schedule(_in("b", clock), expected=None)
    slow.go.set()

    assert revision is not None
    assert await late is None
    assert [(each.queue, each.revision) for each in (await store.schedules()).schedules] == [("b", revision)]
    assert await store.remove_schedule("s")
    assert (await store.schedules()).schedules == []


async def test_whoever_was_taken_for_killed_and_was_not_keeps_its_schedule(
    store: Store, slow: SlowQueues, clock: FakeClock
) -> None:
    """Its place was written down and not the schedule yet, when somebody looked who forgets that place later."""
    slow.keeping = False
    await slow.keep_schedule("s", "a")
    late = asyncio.ensure_future(Spread(slow).do(WriteSchedule(_in("b", clock), None)))
    await asyncio.wait_for(slow.held_up.wait(), 10)

    revision = await store.write_schedule(_in("a", clock), expected=None)
    slow.go.set()

    assert revision is not None
    assert await late is None
    assert [(each.queue, each.revision) for each in (await store.schedules()).schedules] == [("a", revision)]
    fired = await store.fire(Firing("s", revision, [a_job("a")], clock.now()))
    assert fired.outcome is FireOutcome.DONE
    assert await store.remove_schedule("s")
    assert (await store.schedules()).schedules == []


async def test_a_schedule_that_is_put_while_it_is_removed_can_be_fired_and_removed(
    url: str, store: Store, clock: FakeClock
) -> None:
    other = open_store(url, clock=clock, rng=SeededRng(1))
    await other.open()
    survived = 0
    for _ in range(ROUNDS):
        await written(store, _in("a", clock))
        _, answer = await asyncio.gather(
            store.remove_schedule("s"), other.write_schedule(_in("a", clock), expected=None)
        )

        there = (await store.schedules()).schedules
        assert [schedule.revision for schedule in there] == ([] if answer is None else [answer])
        for schedule in there:
            survived += 1
            fired = await store.fire(Firing("s", schedule.revision, [a_job("a")], schedule.next_run_at))
            assert fired.outcome is FireOutcome.DONE
            assert await store.remove_schedule("s")
    await other.close()
    assert (await store.schedules()).schedules == []
    assert survived > 0
