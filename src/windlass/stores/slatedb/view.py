"""What queries read through: a database, a snapshot of it, or a reader."""

from datetime import datetime
from typing import NamedTuple, Protocol

from windlass.stores.slatedb.address import Address


class View(Protocol):
    """What can be read."""

    async def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None where it has none."""
        ...

    async def scan(self, start: bytes, end: bytes, *, limit: int, reverse: bool = False) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` keys from `start` to before `end`, with their values, in order or from the last on."""
        ...


class ReadState(NamedTuple):
    """State that a query reads: the database as it is at one moment, the time of that moment, and its address."""

    view: View
    now: datetime
    address: Address
