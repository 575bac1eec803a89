import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

import windlass
from windlass import Client, LockLost
from windlass.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(clock: FakeClock) -> AsyncIterator[Client]:
    async with windlass.connect("memory://", clock=clock) as client:
        yield client


async def test_a_lock_has_one_holder_and_the_next_is_woken_by_its_release(client: Client, clock: FakeClock) -> None:
    order: list[str] = []
    first_holds, first_may_go = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with client.lock("press", 30):
            order.append("first in")
            first_holds.set()
            await first_may_go.wait()
            order.append("first out")

    async def second() -> None:
        await first_holds.wait()
        async with client.lock("press", 30):
            order.append("second in")

    holders = asyncio.gather(first(), second())
    # the renewal of the first, and the look of the second
    await clock.timers(2)
    first_may_go.set()
    await holders

    assert order == ["first in", "first out", "second in"]


async def test_a_lock_is_renewed_while_it_is_held(client: Client, clock: FakeClock) -> None:
    async with client.lock("press", 30) as held:
        for _ in range(10):
            await clock.timers(1)
            clock.advance(10)
            await asyncio.sleep(0)
        taken = await client.store.lock("press", "somebody else", timedelta(seconds=30))

    assert not taken
    assert not held.lost.is_set()


async def test_a_lock_that_is_not_free_in_time_is_a_timeout(client: Client) -> None:
    await client.store.lock("press", "somebody else", timedelta(seconds=60))

    with pytest.raises(TimeoutError, match="'press' was not free in time"):
        async with client.lock("press", 30, wait=0):
            pass


async def test_the_close_ends_a_wait_for_a_lock(client: Client, clock: FakeClock) -> None:
    await client.store.lock("press", "somebody else", timedelta(seconds=60))
    taking = asyncio.create_task(client.lock("press", 30).__aenter__())
    await clock.timers(1)

    await client.close()

    with pytest.raises(windlass.ClientClosed):
        await taking


async def test_a_lock_is_taken_over_after_its_holder_expired(client: Client, clock: FakeClock) -> None:
    await client.store.lock("press", "somebody else", timedelta(seconds=2))

    async def take() -> None:
        async with client.lock("press", 30, wait=60):
            pass

    taking = asyncio.create_task(take())
    for _ in range(2):
        await clock.timers(1)
        clock.advance(1)
        await asyncio.sleep(0)

    await taking


async def test_a_lock_that_was_taken_over_is_lost_at_the_end_of_the_block(client: Client, clock: FakeClock) -> None:
    async def lose_it() -> None:
        async with client.lock("press", 30) as held:
            await clock.timers(1)
            await client.store.unlock("press", held.holder)
            await client.store.lock("press", "somebody else", timedelta(seconds=300))
            clock.advance(10)
            await held.lost.wait()

    with pytest.raises(LockLost) as lost:
        await lose_it()

    assert lost.value.name == "press"


async def test_an_error_of_the_block_comes_before_a_lost_lock(client: Client) -> None:
    async def lose_it_and_fail() -> None:
        async with client.lock("press", 30) as held:
            await client.store.unlock("press", held.holder)
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        await lose_it_and_fail()


async def test_a_lock_that_cannot_be_renewed_is_lost_when_its_time_is_over(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unavailable(_name: str, _holder: str, _ttl: timedelta) -> bool:
        raise windlass.StoreUnavailable("gone", retryable=True)

    async def hold_it() -> None:
        async with client.lock("press", 30) as held:
            monkeypatch.setattr(client.store, "lock", unavailable)
            for _ in range(3):
                await clock.timers(1)
                assert not held.lost.is_set()
                clock.advance(10)
                await asyncio.sleep(0)
            await held.lost.wait()

    with pytest.raises(LockLost):
        await hold_it()
