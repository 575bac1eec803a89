"""Callers who go away in the middle of a call: their reply is never read by the next one."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Final

import pytest

from tests.stores.http.running import only, runner_of, sockets, turns
from tests.stores.http.scripted import Act, Line, Request, Scripted, in_steps, reply
from windlass.api.operations import ENQUEUE, GLANCE
from windlass.stores.http.runner import Runner
from windlass.testing.conformance.failing import cancelled_at

MOST_STEPS: Final = 100


@pytest.fixture
async def narrow(server: Scripted) -> AsyncIterator[Runner]:
    """One connection for all: whoever comes next has that of whoever was there before, if it may be used again."""
    async with runner_of(server, connections="1") as runner:
        yield runner


async def get_own_answers(runner: Runner) -> None:
    """Ask for what nobody else asks for, and see that this is what is answered."""
    answers = await asyncio.gather(*(runner.call(GLANCE, b"mine %d" % number) for number in range(3)))

    assert answers == [b"mine %d" % number for number in range(3)]


@pytest.mark.parametrize("writes", [False, True])
async def test_whoever_comes_after_a_call_that_was_cancelled_at_any_step_gets_its_own_answer(
    narrow: Runner, *, writes: bool
) -> None:
    step = 1
    while await cancelled_at(step, narrow.call(ENQUEUE, b"another's", writes=writes)):
        await get_own_answers(narrow)
        step += 1
        assert step < MOST_STEPS

    # to wait for the reply is one of them
    assert step > 1


async def test_a_call_that_was_cancelled_while_it_connects_leaves_nothing_open(server: Scripted) -> None:
    before = sockets()

    step, hit = 1, True
    while hit:
        async with runner_of(server, connections="1") as runner:
            hit = await cancelled_at(step, runner.call(ENQUEUE, b"another's", writes=True))
            if hit:
                await only(before, server)
            await get_own_answers(runner)
        await only(before, server)
        step += 1
        assert step < MOST_STEPS

    # to connect takes several steps, and the call itself one more
    assert step > 3


def in_halves(first: asyncio.Event, go_on: asyncio.Event, at: int) -> Act:
    """Send a reply up to a byte, and the rest when it is time."""

    async def act(request: Request, line: Line) -> bool:
        data = reply(request.body)
        await line.send(data[:at])
        first.set()
        await go_on.wait()
        await line.send(data[at:])
        return True

    return act


@pytest.mark.parametrize("at", [0, 5, 40, len(reply(b"another's")) - 3])
async def test_a_reply_of_which_a_part_has_come_is_nobody_elses(server: Scripted, narrow: Runner, at: int) -> None:
    first, go_on = asyncio.Event(), asyncio.Event()
    server.acts.append(in_halves(first, go_on, at))
    call = asyncio.create_task(narrow.call(GLANCE, b"another's"))
    await first.wait()
    # let what was sent be read
    await turns(20)

    call.cancel()
    await asyncio.wait([call])
    go_on.set()

    await get_own_answers(narrow)


async def test_a_reply_that_came_as_the_caller_went_away_is_nobody_elses(server: Scripted, narrow: Runner) -> None:
    for number in range(30):
        call = asyncio.create_task(narrow.call(GLANCE, b"another's"))
        await turns(number)
        call.cancel()
        await asyncio.wait([call])
        await get_own_answers(narrow)
    assert len(server.requests) >= 90


async def test_many_callers_of_whom_some_go_away_get_their_own_answers(server: Scripted) -> None:
    chance = random.Random(7)
    gone = 0

    async def slowly(request: Request, line: Line) -> bool:
        return await in_steps(reply(request.body), chance.randrange(1, 60))(request, line)

    server.always = slowly
    async with runner_of(server, connections="3", timeout="20") as runner:
        for turn in range(25):
            bodies = [b"%d %d" % (turn, number) for number in range(8)]
            calls = [asyncio.create_task(runner.call(GLANCE, body)) for body in bodies]
            await turns(chance.randrange(15))
            for call in calls[::2]:
                call.cancel()
            await asyncio.wait(calls)
            gone += sum(call.cancelled() for call in calls)
            done = [(call.result(), body) for call, body in zip(calls, bodies, strict=True) if not call.cancelled()]
            assert all(answer == body for answer, body in done)

    assert gone > 25
