"""Many callers of whom some go away, and callers who go away while their connection is opened.

Those who go away in the middle of any call are in `tests/stores/test_faults_cancelled.py`.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.redis.keys import with_options
from tests.stores.redis.calls import opened
from tests.stores.redis.inside import idle_wires
from windlass.core.requests import KvWrite
from windlass.core.store import Store
from windlass.testing.conformance.failing import cancelled_at

MOST_STEPS: Final = 100
KEYS: Final = 4


@pytest.fixture
async def narrow(url: str) -> AsyncIterator[Store]:
    """One connection for all: whoever comes next has that of whoever was there before, if it may be used again."""
    async with opened(with_options(url, "connections=1")) as store:
        for number in range(KEYS):
            await store.kv_write(KvWrite(b"key %d" % number, b"value %d" % number))
        yield store


async def get_own_answers(store: Store) -> None:
    """Ask for what nobody else asks for, and see that this is what is answered."""
    answers = await asyncio.gather(*(store.kv_get([b"key %d" % number]) for number in range(KEYS)))

    assert answers == [[b"value %d" % number] for number in range(KEYS)]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("connections", [1, 3])
def test_many_callers_some_of_whom_go_away_get_their_own_answers(url: str, connections: int, loop: str) -> None:
    loops = pytest.importorskip(loop)

    with asyncio.Runner(loop_factory=loops.new_event_loop) as runner:
        answers, gone = runner.run(ask_and_go_away(with_options(url, f"connections={connections}")))

    assert len(answers) >= 200
    # in the middle of something, most of them: the quicker the store, the fewer
    assert gone >= 50
    assert [(own, answer) for own, answer in answers if own != answer] == []


async def ask_and_go_away(url: str) -> tuple[list[tuple[bytes, bytes | None]], int]:
    """Let many write and read what is their own, some of whom are cancelled; return what each got, how many left."""
    chance = random.Random(52)
    answers: list[tuple[bytes, bytes | None]] = []

    async def echo(text: bytes) -> None:
        assert await store.kv_write(KvWrite(text, text))
        [answer] = await store.kv_get([text])
        answers.append((text, answer))

    gone = 0
    async with opened(url) as store:
        for turn in range(60):
            calls = [asyncio.create_task(echo(b"%d %d" % (turn, number))) for number in range(8)]
            for _ in range(chance.randrange(30)):
                await asyncio.sleep(0)
            for call in calls[::2]:
                call.cancel()
            await asyncio.wait(calls)
            gone += sum(call.cancelled() for call in calls)
            assert [call for call in calls if not call.cancelled() and call.exception()] == []
    return answers, gone


async def test_a_call_that_was_cancelled_while_it_connects_leaves_nothing_open(narrow: Store) -> None:
    hang_up(narrow)
    await asyncio.sleep(0)
    before = sockets()

    step = 1
    while await cancelled_at(step, narrow.kv_get([b"key 0"])):
        # what was cut off is closed in the next turn of the loop
        await asyncio.sleep(0)
        assert sockets() <= before
        await get_own_answers(narrow)
        hang_up(narrow)
        await asyncio.sleep(0)
        step += 1
        assert step < MOST_STEPS

    # to connect takes several steps, and the call itself one more
    assert step > 3


def hang_up(store: Store) -> None:
    """Let the next call find no connection."""
    for wire in idle_wires(store):
        wire.terminate()


def sockets() -> set[str]:
    links = (str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
    return {link for link in links if link.startswith("socket:")}
