"""The clock that tests move."""

import asyncio
import threading
from datetime import timedelta

from windlass.testing import FakeClock


async def test_time_stands_still_until_it_is_moved() -> None:
    clock = FakeClock()
    start, began = clock.now(), clock.monotonic()

    clock.advance(timedelta(minutes=1, microseconds=1))

    assert clock.now() - start == timedelta(minutes=1, microseconds=1)
    assert clock.monotonic() - began == 60.000001
    assert clock.now().tzinfo is not None


async def test_timers_run_in_their_order_each_at_its_own_time() -> None:
    clock = FakeClock()
    seen: list[tuple[str, float]] = []

    def again() -> None:
        seen.append(("second", clock.monotonic()))
        clock.call_later(1, lambda: seen.append(("chained", clock.monotonic())))

    clock.call_later(3.5, lambda: seen.append(("last", clock.monotonic())))
    clock.call_later(2, again)
    clock.call_later(1, lambda: seen.append(("first", clock.monotonic())))
    clock.call_later(1, lambda: seen.append(("also first", clock.monotonic())))
    clock.advance(10)

    assert seen == [("first", 1), ("also first", 1), ("second", 2), ("chained", 3), ("last", 3.5)]
    assert clock.monotonic() == 10


async def test_a_timer_that_is_not_due_waits_on() -> None:
    clock = FakeClock()
    seen: list[float] = []
    clock.call_later(2, lambda: seen.append(clock.monotonic()))

    clock.advance(1.999999)
    assert (seen, clock.waiting) == ([], 1)
    clock.advance(0.000001)

    assert (seen, clock.waiting) == ([2], 0)


async def test_a_cancelled_timer_does_not_run() -> None:
    clock = FakeClock()
    seen: list[str] = []
    timer = clock.call_later(1, lambda: seen.append("run"))

    timer.cancel()
    clock.advance(2)
    timer.cancel()

    assert (seen, clock.waiting) == ([], 0)


async def test_a_sleeper_wakes_at_its_time() -> None:
    clock = FakeClock()
    sleeping = asyncio.ensure_future(clock.sleep(5))
    await clock.timers(1)

    clock.advance(4)
    await asyncio.sleep(0)
    assert not sleeping.done()
    clock.advance(1)

    await sleeping


async def test_a_cancelled_sleeper_leaves_no_timer() -> None:
    clock = FakeClock()
    sleeping = asyncio.ensure_future(clock.sleep(5))
    await clock.timers(1)

    sleeping.cancel()
    await asyncio.gather(sleeping, return_exceptions=True)

    assert clock.waiting == 0


async def test_no_time_at_all_passes_at_the_next_turn_of_the_loop() -> None:
    clock = FakeClock()
    seen: list[str] = []

    clock.call_later(0, lambda: seen.append("run"))
    await clock.sleep(0)

    assert (seen, clock.waiting) == (["run"], 0)


async def test_whoever_waits_for_timers_hears_of_each() -> None:
    clock = FakeClock()
    waiting = asyncio.ensure_future(clock.timers(2))
    clock.call_later(1, lambda: None)
    await asyncio.sleep(0)
    assert not waiting.done()

    clock.call_later(1, lambda: None)

    await waiting


async def test_a_timer_runs_in_the_loop_that_asked_for_it() -> None:
    clock = FakeClock()
    threads: list[str] = []

    async def sleep_elsewhere() -> None:
        await clock.sleep(5)
        threads.append(threading.current_thread().name)

    thread = threading.Thread(target=lambda: asyncio.run(sleep_elsewhere()), name="elsewhere")
    thread.start()
    await clock.timers(1)

    clock.advance(5)
    await asyncio.to_thread(thread.join)

    assert threads == ["elsewhere"]


def test_a_timer_of_a_closed_loop_is_let_go() -> None:
    clock = FakeClock()

    async def leave_a_timer() -> None:
        clock.call_later(1, lambda: None)

    asyncio.run(leave_a_timer())
    clock.advance(1)

    assert clock.waiting == 0


async def test_time_that_passes_lets_what_wakes_come_to_its_next_wait() -> None:
    clock = FakeClock()
    woken: list[float] = []

    async def beat() -> None:
        while True:
            await clock.sleep(10)
            await asyncio.sleep(0)
            woken.append(clock.monotonic())

    beating = asyncio.create_task(beat())

    await clock.let_pass(35)

    assert woken == [10, 20, 30]
    assert clock.monotonic() == 35
    beating.cancel()


async def test_after_each_step_somebody_may_be_asked() -> None:
    clock = FakeClock()
    asked: list[float] = []

    async def ask() -> None:
        await asyncio.sleep(0)
        asked.append(clock.monotonic())

    sleeping = [asyncio.create_task(clock.sleep(seconds)) for seconds in (1, 2)]

    await clock.let_pass(3, after_each=ask)

    assert asked == [0, 1, 2, 3]
    assert all(task.done() for task in sleeping)


async def test_a_wait_for_less_than_it_can_tell_comes_to_its_end() -> None:
    """The rest of two floats: whoever sleeps until a moment would else sleep for it again and again."""
    clock = FakeClock()
    until = 4e-7

    async def wait() -> None:
        while clock.monotonic() < until:
            await clock.sleep(until - clock.monotonic())

    await asyncio.gather(wait(), clock.let_pass(1))

    assert clock.monotonic() == 1.0
