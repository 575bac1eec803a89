"""Moves of a store, as somebody sees them who is limited to some queues: none is theirs to make."""

from collections.abc import Sequence
from typing import Final

from windlass.core.ids import JobId
from windlass.core.moving import HeldKey, Moved, Packed, Parcel, Unpacked
from windlass.http.beyond import refuse_beyond

_MOVE: Final = "a move of the store"


class ScopedMoving:
    """Refuses every step of a move with `NotAllowed`."""

    async def set_moved(self, moved: Moved | None) -> None:
        """Refuse: it is about all queues."""
        del moved
        refuse_beyond(_MOVE)

    async def pack(self, queue: str, *, limit: int) -> Packed:
        """Refuse: only all queues move together."""
        del queue, limit
        refuse_beyond(_MOVE)

    async def unpack(self, parcel: Parcel) -> bool:
        """Refuse: only all queues move together."""
        del parcel
        refuse_beyond(_MOVE)

    async def unpacked(self, move: str, queue: str) -> Unpacked | None:
        """Refuse: only all queues move together."""
        del move, queue
        refuse_beyond(_MOVE)

    async def let_go(
        self,
        *,
        move: str | None = None,
        jobs: Sequence[JobId] = (),
        keys: Sequence[str] = (),
        kv: Sequence[bytes] = (),
        schedules: Sequence[str] = (),
    ) -> bool:
        """Refuse: only all queues move together."""
        del move, jobs, keys, kv, schedules
        refuse_beyond(_MOVE)

    async def timed_keys(self, *, limit: int) -> list[HeldKey]:
        """Refuse: keys belong to all."""
        del limit
        refuse_beyond(_MOVE)

    async def take_keys(self, keys: Sequence[HeldKey]) -> None:
        """Refuse: keys belong to all."""
        del keys
        refuse_beyond(_MOVE)
