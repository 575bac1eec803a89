"""Callers who go away in the middle of a call: their reply is never read by the next one.

On SQLite and in memory no reply is read off a connection. What a driver of Postgres leaves of a call that was cancelled
is shown in `postgres/test_connections.py`.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.each_store import new_url
from tests.redis.keys import with_options
from tests.stores.http.served import benched
from tests.stores.redis.calls import LOOKS, WRITES, Call, Scenario, left, opened, seen
from tests.stores.redis.owners import strays
from windlass.core.requests import KvWrite
from windlass.core.store import Store
from windlass.testing.conformance.failing import cancelled_at

MOST_STEPS: Final = 100
KEYS: Final = 4


@dataclass(frozen=True)
class Line:
    """A store on one connection, whose next caller has that of the one before if it may be used again.

    `store` leads to the same jobs by another way, `seen` tells what is there under a name, and `strays` what no call
    will ever delete.
    """

    narrow: Store
    store: Store
    seen: Callable[[str], Awaitable[list[object]]]
    strays: Callable[[], list[str]]


@pytest.fixture(params=["redis", "http+memory"])
async def line(request: pytest.FixtureRequest) -> AsyncIterator[Line]:
    async with _on_redis() if request.param == "redis" else _over_http() as line:
        for number in range(KEYS):
            await line.narrow.kv_write(KvWrite(b"key %d" % number, b"value %d" % number))
        yield line


@asynccontextmanager
async def _on_redis() -> AsyncGenerator[Line]:
    with new_url("redis") as url:
        async with opened(url) as store, opened(with_options(url, "connections=1")) as narrow:
            yield Line(narrow, store, lambda name: left(store, url, name), lambda: strays(url))


@asynccontextmanager
async def _over_http() -> AsyncGenerator[Line]:
    async with benched(options="connections=1") as bench:
        store = bench.serving.store
        yield Line(bench.direct, store, lambda name: seen(store, name), list)


async def get_own_answers(store: Store) -> None:
    """Ask for what nobody else asks for, and see that this is what is answered."""
    answers = await asyncio.gather(*(store.kv_get([b"key %d" % number]) for number in range(KEYS)))

    assert answers == [[b"value %d" % number] for number in range(KEYS)]


async def made(store: Store, call: Call) -> Any:  # noqa: ANN401 - whatever is answered
    return await call(store)


@pytest.mark.parametrize("look", LOOKS)
async def test_whoever_comes_after_a_look_that_was_cancelled_at_any_step_gets_its_own_answer(
    line: Line, look: str
) -> None:
    step = 1
    while await cancelled_at(step, made(line.narrow, LOOKS[look])):
        await get_own_answers(line.narrow)
        step += 1
        assert step < MOST_STEPS

    assert step > 1


@pytest.mark.parametrize("scenario", WRITES, ids=lambda scenario: scenario.__name__)
async def test_a_call_that_was_cancelled_at_any_step_is_done_once_or_not_at_all_and_answers_nobody_else(
    line: Line, scenario: Scenario
) -> None:
    call = await scenario(line.store, "name00x")
    not_done = await line.seen("name00x")
    await call(line.narrow)
    done = await line.seen("name00x")

    step, hit = 0, True
    while hit:
        step += 1
        name = f"name{step:02d}x"
        hit = await cancelled_at(step, made(line.narrow, await scenario(line.store, name)))
        await get_own_answers(line.narrow)

        assert await line.seen(name) in (not_done, done)
        assert step < MOST_STEPS

    assert step > 1
    assert line.strays() == []
