import asyncio

from windlass.kit.deadline import Deadline


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_deadline_that_passes_is_told_once() -> None:
    told: list[float] = []
    rang = asyncio.Event()

    def passed() -> None:
        told.append(now())
        rang.set()

    deadline = Deadline(passed)
    at = now() + 0.03

    deadline.set(at)

    await rang.wait()
    await asyncio.sleep(0.03)
    assert len(told) == 1
    assert told[0] > at - 0.003


async def test_a_call_that_has_ended_is_not_told_of_its_deadline() -> None:
    told: list[float] = []
    deadline = Deadline(lambda: told.append(now()))
    deadline.set(now() + 0.01)

    deadline.clear()

    await asyncio.sleep(0.03)
    assert told == []


async def test_the_timer_of_an_earlier_call_leaves_a_later_one_its_time() -> None:
    rang = asyncio.Event()
    deadline = Deadline(rang.set)
    deadline.set(now() + 0.01)
    deadline.clear()
    later = now() + 0.05

    deadline.set(later)

    await rang.wait()
    assert now() > later - 0.003


async def test_a_call_with_less_time_than_the_one_before_ends_sooner() -> None:
    rang = asyncio.Event()
    deadline = Deadline(rang.set)
    deadline.set(now() + 60)
    deadline.clear()

    deadline.set(now() + 0.01)

    await asyncio.wait_for(rang.wait(), 10)


async def test_after_a_close_nothing_is_told() -> None:
    told: list[float] = []
    deadline = Deadline(lambda: told.append(now()))
    deadline.set(now() + 0.01)

    deadline.close()

    await asyncio.sleep(0.03)
    assert told == []
