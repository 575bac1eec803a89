"""Callers that come while the store is being closed: each of them is told, and none keeps it open for long."""

import asyncio
import gc
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, NoReturn

import pytest

from tests.http.frames import Request
from tests.slatedb.s3 import BUCKET, new_bucket_url, running
from tests.slatedb.s3_server import Answer
from tests.stores.slatedb.lived import job, numbered
from tests.stores.slatedb.opened import (
    database_of,
    engine_of,
    eventually,
    in_room,
    new_address,
    opened,
    room_of,
    store_at,
    until_full,
)
from windlass.connect import open_store
from windlass.core.errors import ClientClosed, OutcomeUnknown, StoreUnavailable, WindlassError
from windlass.store_url import parse
from windlass.stores.slatedb import owning
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.commands import BeatOwner
from windlass.stores.slatedb.pending_calls import PendingCall
from windlass.stores.slatedb.room import Room

PATIENCE: Final = 30.0
DEADLINE: Final = 3.0
SPARE: Final = 2.5
"""Seconds for the engine to be closed, and for a machine that has much else to do."""
refuse: Final[Callable[[Room, WindlassError], None]] = vars(Room)["_refuse"]
"""It cannot be timed from outside when others are refused."""


class Late(deque[PendingCall]):
    """What waits, with a caller that comes right after all were taken."""

    def __init__(self, waiting: "deque[PendingCall]", late: PendingCall) -> None:
        super().__init__(waiting)
        self._late: list[PendingCall] = [late]

    def popleft(self) -> PendingCall:
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
        first, late = (PendingCall(BeatOwner(), future) for future in futures)
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
            await room.submit(BeatOwner())


@pytest.mark.parametrize("busy", ["idle", "busy"])
async def test_a_store_whose_bucket_is_gone_is_closed_within_the_deadline_of_one_call(
    monkeypatch: pytest.MonkeyPatch, busy: str
) -> None:
    with new_bucket_url(timeout=f"{DEADLINE:g}") as url:
        store = open_store(url)
        await store.open()
        await store.enqueue([job(1)])
        with monkeypatch.context() as gone:
            refused: list[str] = []

            def refuse(request: Request) -> Answer:
                refused.append(f"{request.method} {request.path}")
                return Answer(503)

            gone.setattr(running().server, "answer", refuse)
            calls: list[asyncio.Future[Any]] = []
            if busy == "busy":
                calls.append(asyncio.ensure_future(store.enqueue([job(2)])))
                # others may ask this server too, and the engine for more than its flush
                flush = f"PUT /{BUCKET}{parse(url, ['slatedb+s3']).path}/wal/"
                await eventually(lambda: any(line.startswith(flush) for line in refused))
                calls.append(asyncio.ensure_future(store.stats()))
                await until_full(store)
                calls.append(asyncio.ensure_future(store.enqueue([job(3)])))
                # a task begins with the next turn of the event loop
                await asyncio.sleep(0)

            took = await seconds_to_close(store)

            async with asyncio.timeout(PATIENCE):
                told = await asyncio.gather(*calls, return_exceptions=True)
        async with asyncio.timeout(PATIENCE):
            again = open_store(url)
            await again.open()
            kept = await again.get([numbered(1)])
            await again.close()

    assert took < DEADLINE + SPARE
    assert all(isinstance(error, (OutcomeUnknown, StoreUnavailable)) for error in told)
    assert kept != [None]


async def test_a_store_that_is_closed_does_not_wait_until_it_may_flush_again() -> None:
    store = store_at(replace(new_address(), flush=timedelta(seconds=PATIENCE)))
    await store.open()
    await store.enqueue([job(1)])
    waiting = asyncio.ensure_future(store.enqueue([job(2)]))
    await eventually(lambda: database_of(store).unflushed)

    took = await seconds_to_close(store)

    assert await waiting == [(numbered(2), True)]
    assert took < DEADLINE


async def test_a_store_that_is_being_opened_anew_is_closed_within_the_deadline_of_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = store_at(replace(new_address(), timeout=DEADLINE))
    await store.open()
    begun = never_opened(monkeypatch)
    await in_room(store, engine_of(store).shutdown)
    with suppress(OutcomeUnknown):
        await store.enqueue([job(1)])
    waiting = asyncio.ensure_future(store.enqueue([job(2)]))
    await eventually(lambda: begun)

    took = await seconds_to_close(store)

    with pytest.raises(StoreUnavailable, match="nothing of what was asked was begun"):
        await waiting
    assert took < DEADLINE + SPARE


async def test_whoever_gives_up_an_opening_waits_no_longer_than_for_one_call(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # what others have left is theirs
    gc.collect()
    caplog.clear()
    begun = never_opened(monkeypatch)
    opening = asyncio.ensure_future(store_at(replace(new_address(), timeout=DEADLINE)).open())
    await eventually(lambda: begun)
    began = time.monotonic()

    opening.cancel()
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait([opening])

    assert opening.cancelled()
    assert time.monotonic() - began < DEADLINE + SPARE
    gc.collect()
    assert caplog.text == ""


async def seconds_to_close(store: Any) -> float:  # noqa: ANN401 - any store
    began = time.monotonic()
    async with asyncio.timeout(PATIENCE):
        await store.close()
    return time.monotonic() - began


def never_opened(monkeypatch: pytest.MonkeyPatch) -> list[Address]:
    """Let no database be opened any more; return where it was tried."""
    begun: list[Address] = []

    async def hang(address: Address) -> NoReturn:
        begun.append(address)
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(owning, "OPEN_AGAIN_AFTER", 0.0)
    monkeypatch.setattr(owning, "open_database", hang)
    return begun
