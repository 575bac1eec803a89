"""A database that another process may own, opened to look at it: nothing of it is changed, and its owner goes on."""

from typing import TypeVar

from windlass.core.clock import Clock
from windlass.core.errors import ClientClosed, StoreReadOnly
from windlass.core.store_calls import StoreCall
from windlass.core.topics import Hub
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.database import Reader
from windlass.stores.slatedb.doors import open_reader
from windlass.stores.slatedb.faults import no_database
from windlass.stores.slatedb.opening import check_layout
from windlass.stores.slatedb.queries import QUERIES
from windlass.stores.slatedb.view import ReadState

R = TypeVar("R")


class Reading:
    """What a store has in place of a room when it only looks; belongs to the event loop that opened it."""

    def __init__(self, reader: Reader, address: Address, clock: Clock) -> None:
        self.hub = Hub()
        self._reader = reader
        self._address = address
        self._clock = clock
        self._closed = False

    async def submit(self, call: StoreCall[R], request_id: str | None = None) -> R:
        """Execute a query on what is durable by now; refuse every call that only the owner executes."""
        del request_id
        query = QUERIES.get(type(call))
        if query is None:
            message = (
                f"{self._address.where} is only looked at here (?look=yes), beside the process that owns it: change it "
                "through that one, for example by the http:// URL of its `windlass serve`"
            )
            raise StoreReadOnly(message)
        if self._closed:
            raise ClientClosed
        reply: R = await query(ReadState(self._reader, self._clock.now(), self._address), call)
        return reply

    async def close(self) -> None:
        """Let go of the database."""
        self._closed = True
        await self._reader.close()


async def open_reading(address: Address, clock: Clock) -> Reading:
    """Open the database at `address`, which is there, to look at it."""
    reader = await open_reader(address)
    try:
        there = await check_layout(reader, address.where)
    except BaseException:
        await reader.close()
        raise
    if not there:
        await reader.close()
        raise no_database(address)
    return Reading(reader, address, clock)
