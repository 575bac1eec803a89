"""Callers that come while the store is being closed: each of them is told."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.stores.slatedb.opened import new_address, opened, room_of, store_at
from windlass.core.errors import ClientClosed, StoreUnavailable, WindlassError
from windlass.stores.slatedb.calls import Call
from windlass.stores.slatedb.room import OWNER_BEAT, Room

PATIENCE: Final = 30.0
refuse: Final[Callable[[Room, WindlassError], None]] = vars(Room)["_refuse"]
"""It cannot be timed from outside when others are refused."""


class Late(deque[Call]):
    """What waits, with a caller that comes right after all were taken."""

    def __init__(self, waiting: "deque[Call]", late: Call) -> None:
        super().__init__(waiting)
        self._late: list[Call] = [late]

    def popleft(self) -> Call:
        call = super().popleft()
        self._come()
        return call

    def clear(self) -> None:
        self._come()
        super().clear()

    def _come(self) -> None:
        if self._late:
            self.append(self._late.pop())


async def test_whoever_calls_while_others_are_refused_is_told_too() -> None:
    async with opened() as store:
        room = vars(room_of(store))
        futures: list[asyncio.Future[Any]] = [asyncio.get_running_loop().create_future() for _ in range(2)]
        first, late = (Call(OWNER_BEAT, None, future) for future in futures)
        room["_waiting"] = Late(deque([first]), late)

        refuse(room_of(store), StoreUnavailable("by plan"))

        async with asyncio.timeout(PATIENCE):
            await asyncio.wait(futures)
        assert {type(future.exception()) for future in futures} == {StoreUnavailable}


async def test_whoever_was_let_in_before_the_store_was_closed_and_calls_after_it_is_told() -> None:
    store = store_at(new_address())
    await store.open()
    room = room_of(store)
    await store.close()
    # it had looked before that
    room.stopping = False

    async with asyncio.timeout(PATIENCE):
        with pytest.raises(ClientClosed):
            await room.submit(OWNER_BEAT, None)
