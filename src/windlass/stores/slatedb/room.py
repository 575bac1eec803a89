"""The room of a database in this process: one thread with an event loop of its own, for all stores of the process.

Calls come from any event loop. The thread opens the database when the first store comes, and closes it with the last.
"""

import asyncio
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from operator import attrgetter
from typing import Any, Final, TypeVar

from windlass.core.clock import Clock, Rng
from windlass.core.commands import ClaimJobs, SettleClaims
from windlass.core.errors import ClientClosed, WindlassError
from windlass.core.store_calls import StoreCall
from windlass.core.topics import Hub
from windlass.stores.slatedb.address import Address, Place
from windlass.stores.slatedb.commands import BeatOwner
from windlass.stores.slatedb.dispatcher import MOST_BYTES
from windlass.stores.slatedb.faults import forked, logger, unexpected
from windlass.stores.slatedb.moves.claim import GiveBackClaims
from windlass.stores.slatedb.owning import Owning
from windlass.stores.slatedb.pending_calls import PendingCall, answer

R = TypeVar("R")

MOST_CALLS: Final = 2_000
LOOK_EVERY: Final = 0.25
MOST_TRIES: Final = 10
"""Times that jobs are given back again: it may be they that the database breaks with, for everybody."""
_BY_RANK: Final = attrgetter("rank")


class Room:
    """The thread, what waits for it, and whoever listens."""

    def __init__(self, address: Address, clock: Clock, rng: Rng) -> None:
        self.pid = os.getpid()
        self.hub = Hub()
        self.guests = 0
        self.stopping = False
        self.opened: Future[None] = Future()
        self.closed: Future[None] = Future()
        self._address = address
        self._waiting: deque[PendingCall] = deque()
        self._called = asyncio.Event()
        self._awake = False
        self._over = False
        self._later: list[PendingCall] = []
        """Calls that nobody waits for, and that are to be made when the database can do them again."""
        self._owning = Owning(address, clock, rng, self.hub, given_up=self._give_back, in_doubt=self._remember)
        self._loop: asyncio.AbstractEventLoop | None = None
        threading.Thread(target=self._run, name="windlass slatedb", daemon=True).start()

    @property
    def lost(self) -> WindlassError | None:
        """What everybody here is told, or will be in a moment, since another owner has the database."""
        return self._owning.lost or self._owning.fenced

    def submit(self, call: StoreCall[R], request_id: str | None = None) -> "asyncio.Future[R]":
        """Let a call be served with those that have gathered; a query reads what was called before."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        if self.pid != os.getpid():
            future.set_exception(forked(self._address))
        elif self._owning.lost is not None or self.stopping:
            future.set_exception(self._owning.lost or ClientClosed())
        else:
            self._put(PendingCall(call, future, request_id=request_id))
        return future

    def stop(self) -> None:
        """Finish what was accepted, then let go of the database; `closed` tells when."""
        self.stopping = True
        self._wake()
        self._in_loop(self._owning.hurry)

    def _put(self, call: PendingCall) -> None:
        self._waiting.append(call)
        if self._over:
            # whoever called before that may come only now
            self._refuse(ClientClosed())
        if not self._awake:
            self._awake = True
            self._wake()

    def _wake(self) -> None:
        self._in_loop(self._called.set)

    def _in_loop(self, do: Callable[[], None]) -> None:
        if self._loop is not None:
            # it is closed once the last store was
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(do)

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        finally:
            self.stopping = self._over = True
            # who called while it was closed
            self._refuse(ClientClosed())
            self.closed.set_result(None)

    async def _work(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self.stopping:
            # whoever said so found no loop yet
            self._owning.hurry()
        try:
            await self._owning.open()
        except Exception as error:  # noqa: BLE001 - whoever opens is told
            await self._owning.close()
            self.opened.set_exception(error)
            return
        self.opened.set_result(None)
        keeper = asyncio.create_task(self._keep(), name="windlass slatedb keeper")
        while not self.stopping or self._waiting:
            await self._called.wait()
            self._called.clear()
            self._awake = False
            while self._waiting:
                await self._serve()
            if self.stopping:
                # those who have gone meanwhile give their jobs back
                await self._owning.answered()
        keeper.cancel()
        await asyncio.wait([keeper])
        await self._owning.close()

    async def _serve(self) -> None:
        """Serve what has gathered once there is room for it; until then it can be told that it comes too late."""
        try:
            dispatcher = await self._owning.ready()
            await dispatcher.room()
        except Exception as error:  # noqa: BLE001 - whoever waits is told
            self._refuse(error if isinstance(error, WindlassError) else unexpected(error))
            return
        if dispatcher.broken is not None:
            self._refuse(dispatcher.broken)
            return
        calls, weight = self._gathered()
        if calls:
            calls.sort(key=_BY_RANK)
            await dispatcher.serve(calls, weight)

    def _gathered(self) -> tuple[list[PendingCall], int]:
        """Take what is served together, and tell the bytes that it brings: no more than one object is to hold."""
        calls: list[PendingCall] = []
        weight = 0
        while self._waiting and len(calls) < MOST_CALLS and weight < MOST_BYTES:
            call = self._waiting.popleft()
            if not call.cancelled:
                calls.append(call)
                weight += call.weight
        return calls, weight

    async def _keep(self) -> None:
        """Beat, look whether the database is still ours, and tell those who have waited for too long."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            try:
                self._look_around()
            except Exception:  # noqa: BLE001 - without it nobody is told of a deadline, nor of another owner
                logger.exception("looking after the store failed: it is tried again")

    def _look_around(self) -> None:
        if self._owning.look_for_others() and self._owning.lost is not None:
            self._refuse(self._owning.lost)
            self._later.clear()
        self._owning.expire()
        before = time.monotonic() - self._owning.patience
        late: list[PendingCall] = []
        while self._waiting and self._waiting[0].since < before:
            late.append(self._waiting.popleft())
        if late:
            self._tell(late, self._owning.late())
        later, self._later = self._later, []
        for call in later:
            self._put(PendingCall(call.value, tries=call.tries))
        if self._owning.beat_is_due:
            self._put(PendingCall(BeatOwner()))

    def _refuse(self, error: WindlassError) -> None:
        """Tell all who wait; nothing of their calls was begun."""
        waiting: list[PendingCall] = []
        # one by one: others put theirs in meanwhile
        with contextlib.suppress(IndexError):
            while True:
                waiting.append(self._waiting.popleft())
        self._tell(waiting, error)

    def _tell(self, calls: list[PendingCall], error: WindlassError) -> None:
        """Tell those who wait why their calls were not begun; jobs that go back do so later."""
        answer([(call, error) for call in calls])
        self._later += [call for call in calls if isinstance(call.value, GiveBackClaims)]

    def _remember(self, call: PendingCall, result: Any) -> None:  # noqa: ANN401 - what was done
        """Know a settlement that was done when its caller, who was not told, repeats it."""
        if isinstance(call.value, SettleClaims) and not isinstance(result, BaseException):
            self._owning.untold.add(call.value.settlements, result)

    def _give_back(self, call: PendingCall, result: Any) -> None:  # noqa: ANN401 - what the call was answered
        """Put jobs back that were claimed for a caller who has gone."""
        self._remember(call, result)
        if isinstance(call.value, ClaimJobs) and not isinstance(result, BaseException) and result.jobs:
            self._put(PendingCall(GiveBackClaims(call.value, call.request_id, result.jobs)))
        elif isinstance(call.value, GiveBackClaims) and not self.stopping:
            # a close waits for no bucket
            self._give_back_later(call)

    def _give_back_later(self, call: PendingCall) -> None:
        """Make what was made in vain, or may be lost with the database, again: it is done once however often it is."""
        if call.tries < MOST_TRIES:
            self._later.append(PendingCall(call.value, tries=call.tries + 1))
        else:
            logger.error("claims whose caller had gone could not be given back: rescue will")


_rooms: dict[Place, Room] = {}
_guard: Final = threading.Lock()


async def enter(address: Address, clock: Clock, rng: Rng) -> Room:
    """Return the room of a database in this process, which is opened when nobody is there yet.

    Beside one that has lost the database another is opened, as it would be by another process.
    """
    while True:
        with _guard:
            room = _rooms.get(address.place)
            # whoever closed the last one may have been cancelled before it was out of the way
            if room is None or room.pid != os.getpid() or room.closed.done() or (room.lost and not room.stopping):
                room = _rooms[address.place] = Room(address, clock, rng)
            if not room.stopping:
                room.guests += 1
                break
        await asyncio.shield(asyncio.wrap_future(room.closed))
    opening = asyncio.wrap_future(room.opened)
    # whoever is cancelled meanwhile does not hear why it failed
    opening.add_done_callback(_heard)
    try:
        await asyncio.shield(opening)
    except BaseException:
        await leave(room, address.place)
        raise
    return room


def _heard(opening: "asyncio.Future[None]") -> None:
    if not opening.cancelled():
        opening.exception()


async def leave(room: Room, place: Place) -> None:
    """Let go of a room; the last one out closes it."""
    with _guard:
        room.guests -= 1
        last = room.guests == 0
        if last:
            room.stop()
    if last and room.pid == os.getpid():
        await asyncio.shield(asyncio.wrap_future(room.closed))
        with _guard:
            if _rooms.get(place) is room:
                del _rooms[place]
