"""Named locks: one holder over all clients, renewed while it is held, taken over after its time."""

import asyncio

import pytest

from windlass.client.client import Client
from windlass.core.errors import InvalidName, InvalidValue, LockLost
from windlass.core.store import Store
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient, Woken, asleep, outlast, soon
from windlass.testing.conformance.given import MINUTE, SECOND


async def test_a_lock_has_one_holder(store: Store) -> None:
    assert await store.lock("l", "one", MINUTE)

    assert not await store.lock("l", "other", MINUTE)
    assert await store.lock("another", "other", MINUTE)


async def test_a_holder_renews_its_lock(store: Store, clock: FakeClock) -> None:
    await store.lock("l", "one", MINUTE)
    clock.advance(MINUTE / 2)

    assert await store.lock("l", "one", MINUTE)

    clock.advance(MINUTE / 2)
    assert not await store.lock("l", "other", MINUTE)


async def test_a_lock_is_taken_over_after_its_time(store: Store, clock: FakeClock) -> None:
    await store.lock("l", "one", MINUTE)
    clock.advance(MINUTE)

    assert await store.lock("l", "other", MINUTE)

    assert not await store.lock("l", "one", MINUTE)
    assert not await store.unlock("l", "one")
    assert await store.unlock("l", "other")


async def test_a_lock_that_was_let_go_is_free(store: Store) -> None:
    await store.lock("l", "one", MINUTE)

    assert await store.unlock("l", "one")

    assert not await store.unlock("l", "one")
    assert await store.lock("l", "other", MINUTE)


async def test_only_its_holder_lets_go_of_a_lock(store: Store) -> None:
    await store.lock("l", "one", MINUTE)

    assert not await store.unlock("l", "other")

    assert not await store.lock("l", "other", MINUTE)


async def test_of_rivals_one_takes_the_lock(store: Store) -> None:
    won = await asyncio.gather(*(store.lock("l", f"holder{n}", MINUTE) for n in range(20)))

    assert sum(won) == 1


async def test_the_second_holder_waits_for_the_first(open_client: OpenClient, clock: FakeClock, woken: Woken) -> None:
    one, other = await open_client(), await open_client()
    seen: list[str] = []

    async def second() -> None:
        async with other.lock("l", MINUTE):
            seen.append("second")

    async with one.lock("l", MINUTE):
        waiting = await asleep(clock, second(), timers=1)
        seen.append("first")

    await woken(waiting)
    assert seen == ["first", "second"]


async def test_a_wait_for_a_lock_can_be_bounded(client: Client, store: Store, clock: FakeClock) -> None:
    await store.lock("l", "somebody", MINUTE * 60)

    async def take() -> None:
        async with client.lock("l", MINUTE, wait=3):
            pass

    with pytest.raises(TimeoutError):
        await outlast(clock, take())


async def test_a_lock_is_renewed_while_it_is_held(client: Client, store: Store, clock: FakeClock) -> None:
    async with client.lock("l", 30) as held:
        for _ in range(6):
            await soon(clock.timers(1))
            clock.advance(10)
            await soon(clock.timers(1))
        assert not held.lost.is_set()
        assert not await store.lock("l", "other", MINUTE)


async def test_a_lock_that_was_taken_over_is_lost(client: Client, store: Store, clock: FakeClock, woken: Woken) -> None:
    with pytest.raises(LockLost):
        async with client.lock("l", 30) as held:
            await store.unlock("l", held.holder)
            await store.lock("l", "other", MINUTE)
            await soon(clock.timers(1))
            clock.advance(10)
            await woken(held.lost.wait())

    assert not await store.lock("l", "third", SECOND)


async def test_a_crashed_holders_lock_is_taken_over(client: Client, store: Store, clock: FakeClock) -> None:
    await store.lock("l", "crashed", SECOND * 5)

    async def take() -> str:
        async with client.lock("l", MINUTE) as held:
            return held.name

    assert await outlast(clock, take()) == "l"


async def test_an_error_in_the_block_lets_go_of_the_lock(client: Client, store: Store) -> None:
    message = "user code"
    with pytest.raises(RuntimeError, match=message):
        async with client.lock("l", MINUTE):
            raise RuntimeError(message)

    assert await store.lock("l", "other", MINUTE)


async def test_a_lock_that_cannot_be_is_refused(client: Client) -> None:
    with pytest.raises(InvalidName):
        async with client.lock("no spaces", MINUTE):
            pass
    with pytest.raises(InvalidValue):
        async with client.lock("l", 0):
            pass
