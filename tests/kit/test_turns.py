"""Turns go to whoever has waited longest, and none is ever lost."""

import asyncio

import pytest

from windlass.kit.turns import Turns


def soon() -> float:
    return asyncio.get_running_loop().time() + 10


async def test_there_are_as_many_turns_as_were_said() -> None:
    turns = Turns(2)

    assert [turns.take_free() for _ in range(3)] == [True, True, False]


async def test_a_turn_that_was_given_back_is_free() -> None:
    turns = Turns(1)
    turns.take_free()

    turns.give()

    assert [turns.take_free(), turns.take_free()] == [True, False]


async def test_who_waits_longest_has_the_next_turn_before_anybody_who_comes_later() -> None:
    turns = Turns(1)
    turns.take_free()
    served: list[int] = []

    async def wait(number: int) -> None:
        await turns.wait(soon())
        served.append(number)

    waiting = [asyncio.create_task(wait(number)) for number in range(3)]
    await asyncio.sleep(0)
    turns.give()
    came_between = turns.take_free()
    turns.give()
    turns.give()
    await asyncio.gather(*waiting)

    assert (came_between, served) == (False, [0, 1, 2])


async def test_who_waits_until_the_deadline_is_told_so_and_takes_no_turn_along() -> None:
    turns = Turns(1)
    turns.take_free()

    with pytest.raises(TimeoutError):
        await turns.wait(asyncio.get_running_loop().time() + 0.01)
    turns.give()

    assert [turns.take_free(), turns.take_free()] == [True, False]


async def test_who_is_left_alone_in_the_wait_gives_nothing_back() -> None:
    turns = Turns(1)
    turns.take_free()
    stays = asyncio.create_task(turns.wait(soon()))
    await asyncio.sleep(0)
    left_alone = turns.wait(soon())
    left_alone.send(None)

    left_alone.close()
    await asyncio.sleep(0)

    assert not stays.done()
    turns.give()
    await asyncio.wait_for(stays, 10)
    turns.give()
    assert [turns.take_free(), turns.take_free()] == [True, False]


async def test_a_turn_of_somebody_who_leaves_at_that_moment_goes_to_the_next() -> None:
    turns = Turns(1)
    turns.take_free()
    leaves, stays = (asyncio.create_task(turns.wait(soon())) for _ in range(2))
    await asyncio.sleep(0)

    turns.give()
    leaves.cancel()

    await asyncio.wait_for(stays, 10)
    assert leaves.cancelled()


async def test_somebody_who_has_left_is_passed_over() -> None:
    turns = Turns(1)
    turns.take_free()
    leaves, stays = (asyncio.create_task(turns.wait(soon())) for _ in range(2))
    await asyncio.sleep(0)

    leaves.cancel()
    turns.give()

    await asyncio.wait_for(stays, 10)
    assert leaves.cancelled()
