"""Callers who go away in the middle of a call: their reply is never read by the next one."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from tests.stores.http.served import Bench, benched
from tests.stores.redis.calls import LOOKS, WRITES, Call, Scenario, seen
from windlass.core.requests import KvWrite
from windlass.core.store import Store
from windlass.testing.conformance.failing import cancelled_at

MOST_STEPS: Final = 100
KEYS: Final = 4


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """One connection for all: whoever comes next has that of whoever was there before, if it may be used again."""
    async with benched(options="connections=1") as bench:
        for number in range(KEYS):
            await bench.direct.kv_write(KvWrite(b"key %d" % number, b"value %d" % number))
        yield bench


async def get_own_answers(store: Store) -> None:
    """Ask for what nobody else asks for, and see that this is what is answered."""
    answers = await asyncio.gather(*(store.kv_get([b"key %d" % number]) for number in range(KEYS)))

    assert answers == [[b"value %d" % number] for number in range(KEYS)]


async def made(store: Store, call: Call) -> Any:  # noqa: ANN401 - whatever is answered
    return await call(store)


@pytest.mark.parametrize("look", LOOKS)
async def test_whoever_comes_after_a_look_that_was_cancelled_at_any_step_gets_its_own_answer(
    bench: Bench, look: str
) -> None:
    step = 1
    while await cancelled_at(step, made(bench.direct, LOOKS[look])):
        await get_own_answers(bench.direct)
        step += 1
        assert step < MOST_STEPS

    assert step > 1


@pytest.mark.parametrize("scenario", WRITES, ids=lambda scenario: scenario.__name__)
async def test_a_call_that_was_cancelled_at_any_step_is_done_once_or_not_at_all_and_answers_nobody_else(
    bench: Bench, scenario: Scenario
) -> None:
    narrow, store = bench.direct, bench.serving.store
    call = await scenario(store, "name00x")
    not_done = await seen(store, "name00x")
    await call(narrow)
    done = await seen(store, "name00x")

    step, hit = 0, True
    while hit:
        step += 1
        name = f"name{step:02d}x"
        hit = await cancelled_at(step, made(narrow, await scenario(store, name)))
        await get_own_answers(narrow)

        assert await seen(store, name) in (not_done, done)
        assert step < MOST_STEPS

    assert step > 1
