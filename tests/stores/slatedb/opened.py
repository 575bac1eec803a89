"""A store that is open on a database of its own, a look inside of it, and an engine whose flushes are held back."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from itertools import count
from typing import Any, Final, TypeVar

from windlass.core.clock import Clock
from windlass.core.store import Store
from windlass.core.topics import Topic
from windlass.stores.slatedb import SlateStore, room
from windlass.stores.slatedb.address import Address, Place
from windlass.stores.slatedb.database import Database
from windlass.stores.slatedb.dispatcher import Dispatcher
from windlass.stores.slatedb.owning import Owning
from windlass.stores.slatedb.room import Room
from windlass.stores.slatedb.table import Table
from windlass.testing import FakeClock, SeededRng

R = TypeVar("R")

PATIENCE: Final = 30.0
_numbers: Final = count()


def new_address() -> Address:
    """Return a database in memory that nobody has opened yet."""
    return Address("memory", f"opened-{next(_numbers)}", "")


def store_at(address: Address, clock: Clock | None = None) -> SlateStore:
    """Return a store, which is not open."""
    return SlateStore(address, clock=clock or FakeClock(), rng=SeededRng())


@asynccontextmanager
async def opened(address: Address | None = None, *, clock: Clock | None = None) -> AsyncGenerator[SlateStore]:
    """Give a store that is open."""
    store = store_at(address or new_address(), clock)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def room_of(store: Store) -> Room:
    """Return what an open store shares with others of this process."""
    found: Room = vars(store)["_room"]
    return found


def rooms() -> dict[Place, Room]:
    """Return the rooms of this process."""
    found: dict[Place, Room] = vars(room)["_rooms"]
    return found


def _owning(store: Store) -> dict[str, Any]:
    owning: Owning = vars(room_of(store))["_owning"]
    return vars(owning)


def database_of(store: Store) -> Database:
    """Return the database as its owner has it now."""
    found: Database = _owning(store)["_database"]
    return found


def engine_of(store: Store) -> Any:  # noqa: ANN401 - the engine's types are its own
    """Return what the engine has open now."""
    return vars(database_of(store))["_db"]


def table_of(store: Store) -> Table:
    """Return what the owner has in memory now."""
    found: Table = vars(_dispatcher(store))["_table"]
    return found


def _dispatcher(store: Store) -> Dispatcher:
    found: Dispatcher = _owning(store)["_dispatcher"]
    return found


async def until_full(store: Store) -> None:
    """Return when as many groups are on their way as may be: what is called from now on gathers."""
    has_room: asyncio.Event = vars(_dispatcher(store))["_room"]
    await eventually(lambda: not has_room.is_set())


async def in_room(store: Store, work: Callable[[], Awaitable[R]]) -> R:
    """Do something in the thread of the room."""

    async def run() -> R:
        return await work()

    loop: asyncio.AbstractEventLoop = vars(room_of(store))["_loop"]
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run(), loop))


@asynccontextmanager
async def gathering(store: Store) -> AsyncGenerator[None]:
    """Let calls that begin in this block be served together when it ends."""
    begun, over = threading.Event(), threading.Event()

    async def stand_still() -> None:
        begun.set()
        over.wait(PATIENCE)

    standing = asyncio.ensure_future(in_room(store, stand_still))
    try:
        await eventually(begun.is_set)
        yield
        # a task begins with the next turn of the event loop
        await asyncio.sleep(0)
    finally:
        over.set()
        await standing


async def eventually(true: Callable[[], object]) -> None:
    """Return when `true()`, which must come soon."""
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110 - another thread does it, and signals nothing
            await asyncio.sleep(0.005)


async def eventually_is(look: Callable[[], Awaitable[R]], expected: R) -> None:
    """Return when a look shows what is expected, which must come soon."""
    async with asyncio.timeout(PATIENCE):
        while await look() != expected:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.005)


async def pending(store: Store) -> int:
    """Return how many jobs wait on the queue of most tests."""
    [stats] = await store.stats("email")
    return stats.pending


@contextmanager
def impatient(store: Store, *, callers: bool = True) -> Generator[None]:
    """Let calls of the engine be given up soon, and callers with them.

    Those before and after may take their time on a busy machine.
    """
    address: Address = _owning(store)["_address"]

    def give(timeout: float) -> None:
        given = vars(database_of(store))["_address"] = replace(address, timeout=timeout)
        if callers:
            _owning(store)["_address"] = given

    give(0.3)
    yield
    give(address.timeout)


class Held:
    """Flushes that begin and go no further until `let_go`; those that come later pass. `flushes` counts all of them.

    They are given up by their deadline, or not even then: so it is when the deadlines of others come first.
    """

    def __init__(self, store: Store, *, given_up: bool = True) -> None:
        self._over = asyncio.Event()
        self._begun = threading.Event()
        self._loop: asyncio.AbstractEventLoop = vars(room_of(store))["_loop"]
        self._flush: Callable[..., Awaitable[None]]
        self.flushes = 0
        if given_up:
            engine = engine_of(store)
            self._flush = engine.flush_with_options
            engine.flush_with_options = self._hold
        else:
            self._flush = database_of(store).flush
            vars(database_of(store))["flush"] = self._hold

    async def begun(self) -> None:
        """Return when somebody waits for a flush."""
        await eventually(self._begun.is_set)

    async def let_go(self) -> None:
        """Let those who wait go on."""

        async def release() -> None:
            self._over.set()

        # the store may be closing by now
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(release(), self._loop))

    async def _hold(self, *options: object) -> None:
        self._begun.set()
        self.flushes += 1
        await self._over.wait()
        await self._flush(*options)


@contextmanager
def recorded(store: Store, *topics: Topic) -> Generator[list[str]]:
    """Give a list that gets an entry each time that one of these topics is rung."""
    rung: list[str] = []
    stop = store.listen(topics, lambda: rung.append("rung"))
    yield rung
    stop()
