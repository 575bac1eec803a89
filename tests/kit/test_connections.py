"""A caller may leave at any moment, and takes neither a turn nor a session along."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from windlass import StoreUnavailable
from windlass.kit.connections import Connections
from windlass.testing.conformance.failing import cancelled_at

MOST = 2
MOST_STEPS = 50


class Session:
    """A connection to nowhere; one whose statement was left alone is broken."""

    numbers = itertools.count(1)
    outdated = False

    def __init__(self) -> None:
        self.number = next(self.numbers)
        self.idle_since = 0.0
        self.closed = False
        self._under_way = False

    @property
    def broken(self) -> bool:
        return self._under_way or self.closed

    async def ask(self) -> None:
        assert not self.broken, "another one is under way"
        self._under_way = True
        for _ in range(3):
            await asyncio.sleep(0)
        self._under_way = False

    async def close(self) -> None:
        self.closed = True

    def terminate(self) -> None:
        self.closed = True

    def abandon(self) -> None:
        self.closed = True


class Server:
    """Opens sessions, which takes a while, and knows which are open."""

    def __init__(self) -> None:
        self._sessions: list[Session] = []

    async def open(self, _timeout: float) -> Session:
        for _ in range(3):
            await asyncio.sleep(0)
        self._sessions.append(Session())
        return self._sessions[-1]

    @property
    def open_sessions(self) -> int:
        return sum(not session.closed for session in self._sessions)


def connections_to(server: Server) -> Connections[Session]:
    return Connections(
        server.open,
        most=MOST,
        where="nowhere",
        is_lost=lambda _: False,
        translate=lambda error, where: StoreUnavailable(f"{where}: {error}"),
        patient=False,
    )


def soon(seconds: float = 10) -> float:
    return asyncio.get_running_loop().time() + seconds


async def in_a_block(connections: Connections[Session]) -> None:
    async with connections.session(soon()) as session:
        await session.ask()


async def as_a_runner(connections: Connections[Session]) -> None:
    with connections.lent(connections.take_idle() or await connections.take(soon())) as session:
        await session.ask()


Call = Callable[[Connections[Session]], Coroutine[Any, Any, None]]


@pytest.mark.parametrize("call", [in_a_block, as_a_runner])
@pytest.mark.parametrize("others", range(MOST + 2))
async def test_who_leaves_at_any_step_leaves_every_turn_free_and_nothing_lent(call: Call, others: int) -> None:
    step = 1
    while True:
        server = Server()
        connections = connections_to(server)
        beside = [asyncio.create_task(call(connections)) for _ in range(others)]
        await asyncio.sleep(0)
        hit = await cancelled_at(step, call(connections))
        await asyncio.gather(*beside)

        await all_turns_are_free(connections)
        assert server.open_sessions <= MOST
        async with asyncio.timeout(1):
            await connections.close()
        assert server.open_sessions == 0
        if not hit:
            break
        step += 1
        assert step < MOST_STEPS

    # a session was opened or waited for, and a statement made
    assert step > 3


async def all_turns_are_free(connections: Connections[Session]) -> None:
    taken = [await connections.take(soon(1)) for _ in range(MOST)]
    with pytest.raises(StoreUnavailable, match="all 2 connections"):
        await connections.take(soon(0.001))
    for session in taken:
        await session.ask()
        connections.give(session)


@pytest.mark.parametrize("call", [in_a_block, as_a_runner])
async def test_who_leaves_in_a_crowd_holds_up_nobody(call: Call) -> None:
    server = Server()
    connections = connections_to(server)

    for turns in range(30):
        calls = [asyncio.create_task(call(connections)) for _ in range(8)]
        for _ in range(turns):
            await asyncio.sleep(0)
        for each in calls[::2]:
            each.cancel()
        await asyncio.wait(calls)
        assert [each for each in calls if not each.cancelled() and each.exception()] == []
        assert server.open_sessions <= MOST

    await all_turns_are_free(connections)
    await connections.close()
