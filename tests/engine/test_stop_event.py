import asyncio
import threading

import pytest

from windlass.engine.stop_event import StopEvent


async def test_whoever_waits_is_woken_with_the_first_reason() -> None:
    event = StopEvent()
    waiting = [asyncio.create_task(event.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert (event.is_set(), event.reason) == (False, None)

    event.fire("cancel")
    event.fire("stop")
    async with asyncio.timeout(10):
        await asyncio.gather(*waiting)

    assert (event.is_set(), event.reason) == (True, "cancel")
    await event.wait()


async def test_a_thread_waits_for_it_and_it_is_fired_from_another() -> None:
    event = StopEvent()
    seen = asyncio.create_task(asyncio.to_thread(event.wait_sync, 10))
    waiting = asyncio.create_task(event.wait())
    await asyncio.sleep(0)

    threading.Thread(target=event.fire, args=("timeout",)).start()

    async with asyncio.timeout(10):
        assert await seen
        await waiting
    assert event.reason == "timeout"


def test_a_wait_ends_by_its_own_time() -> None:
    event = StopEvent()

    assert not event.wait_sync(0)
    event.fire("stop")
    assert event.wait_sync(0)
    assert event.wait_sync()


async def test_a_wait_that_is_cancelled_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    event = StopEvent()
    gone, stays = asyncio.create_task(event.wait()), asyncio.create_task(event.wait())
    await asyncio.sleep(0)

    gone.cancel()
    event.fire("stop")
    async with asyncio.timeout(10):
        await stays

    assert gone.cancelled()
    assert caplog.text == ""


def test_a_loop_that_was_closed_has_nobody_left_to_wake() -> None:
    event = StopEvent()
    loop = asyncio.new_event_loop()
    waiting = event.wait()
    task = loop.create_task(waiting)
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()

    event.fire("stop")

    assert event.is_set()
    waiting.close()
    assert not task.done()
