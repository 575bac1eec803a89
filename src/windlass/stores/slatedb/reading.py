"""A database that another process may own, opened to look at it: nothing of it is changed, and its owner goes on."""

import asyncio
from typing import Any, TypeVar

from windlass.core.clock import Clock
from windlass.core.errors import ClientClosed, StoreReadOnly
from windlass.core.topics import Hub
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.calls import Look, Move
from windlass.stores.slatedb.database import Reader
from windlass.stores.slatedb.doors import open_reader
from windlass.stores.slatedb.faults import no_database
from windlass.stores.slatedb.opening import check_layout

R = TypeVar("R")


class Reading:
    """What a store has in place of a room when it only looks; belongs to the event loop that opened it."""

    def __init__(self, reader: Reader, address: Address, clock: Clock) -> None:
        self.hub = Hub()
        self._reader = reader
        self._address = address
        self._clock = clock
        self._closed = False

    def submit(self, move: Move[Any, R], argument: Any) -> "asyncio.Future[R]":  # noqa: ANN401, ARG002
        """Refuse every move."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        future.set_exception(
            StoreReadOnly(
                f"{self._address.where} is only looked at here (?look=yes), beside the process that owns it: change it "
                "through that one, for example by the http:// URL of its `windlass serve`"
            )
        )
        return future

    def look(self, look: Look[R]) -> "asyncio.Future[R]":
        """Look at what is durable by now."""
        if self._closed:
            raise ClientClosed
        return asyncio.ensure_future(look(self._reader, self._clock.now()))

    async def close(self) -> None:
        """Let go of the database."""
        self._closed = True
        await self._reader.close()


async def open_reading(address: Address, clock: Clock) -> Reading:
    """Open the database at `address`, which is there, to look at it."""
    reading = Reading(await open_reader(address), address, clock)
    try:
        there = await reading.look(lambda view, _: check_layout(view, address.where))
    except BaseException:
        await reading.close()
        raise
    if not there:
        await reading.close()
        raise no_database(address)
    return reading
