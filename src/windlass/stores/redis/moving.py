"""What lets the jobs of a store go to another one, and takes in those of another: one script for each call."""

from collections.abc import Sequence
from typing import Final, cast

import msgspec

from windlass.core.ids import JobId
from windlass.core.moving import HeldKey, Moved, Packed, Parcel, Unpacked
from windlass.kit.moves import moving
from windlass.stores.redis.caller import Caller
from windlass.stores.redis.parcels import PackedRow, TimedRow, keys_of, packed_of, parcel_of, timed_of
from windlass.stores.redis.replies import damaged
from windlass.stores.redis.requests import Ask, kv_pairs, packed_text

LOOKED_AT: Final = 2_000
"""Jobs that one script looks at for those that wait: the server does nothing else meanwhile."""
PARCEL_BYTES: Final = 4 * 1024 * 1024
"""How large a parcel becomes before it is full, however few jobs are in it."""

_moved: Final[msgspec.msgpack.Decoder[Moved | None]] = msgspec.msgpack.Decoder(Moved | None)
_packed = msgspec.msgpack.Decoder(tuple[int | None, bool, list[PackedRow]])
_unpacked = msgspec.msgpack.Decoder(tuple[int, list[str]] | None)
_timed = msgspec.msgpack.Decoder(list[TimedRow])
_decode = msgspec.msgpack.Decoder().decode


class Moving:
    """Jobs come and go under the keys that begin with one prefix; see `core.moving`."""

    def __init__(self, caller: Caller) -> None:
        """Run through `caller`."""
        self._caller = caller
        self._passed: dict[str, int] = {}
        """By queue, the number up to which no job waited when it was packed last: so none is looked at twice."""

    async def moved(self) -> Moved | None:
        """Return where the jobs go."""
        return _moved.decode(await self._caller.look("moved", {}))

    async def everywhere(self) -> bool:
        """Return True: what one key says holds for all queues."""
        return True

    async def set_moved(self, moved: Moved | None) -> None:
        """Let nothing new begin, or let it begin again."""
        await self._caller.run("set_moved", {"moved": None if moved is None else packed_text(moved)})

    async def pack(self, queue: str, *, limit: int) -> Packed:
        """Return waiting jobs of a queue."""
        passed = self._passed.pop(queue, None)
        found, more = await self._waiting(queue, limit, after=passed)
        if passed is not None and not more:
            # one that ran may wait again behind what was passed by
            found, _ = await self._waiting(queue, limit, after=None)
        if found:
            self._passed[queue] = found[0].job.head.seq - 1
        return packed_of(found)

    async def _waiting(self, queue: str, limit: int, *, after: int | None) -> tuple[list[PackedRow], bool]:
        """Return as many as fit into a parcel, and whether there may be more behind them."""
        found: list[PackedRow] = []
        size, more = 0, True
        while more and len(found) < limit and size < PARCEL_BYTES:
            ask: Ask = {"queue": queue, "after": after, "most": LOOKED_AT}
            ask |= {"limit": limit - len(found), "bytes": PARCEL_BYTES - size}
            reply = await self._caller.look("pack", ask)
            size += len(reply)
            after, more, rows = _packed.decode(reply)
            found += rows
        return found, more

    async def unpack(self, parcel: Parcel) -> bool:
        """Put the jobs of a parcel in line, if it is the next one."""
        moving.check(parcel)
        return cast("bool", _decode(await self._caller.once("unpack", parcel_of(parcel))))

    async def unpacked(self, move: str, queue: str) -> Unpacked | None:
        """Return the last parcel of a move and a queue."""
        found = _unpacked.decode(await self._caller.look("unpacked", {"move": move, "queue": queue}))
        return None if found is None else Unpacked(found[0], [JobId(job_id) for job_id in found[1]])

    async def let_go(
        self,
        *,
        move: str | None = None,
        jobs: Sequence[JobId] = (),
        keys: Sequence[str] = (),
        kv: Sequence[bytes] = (),
        schedules: Sequence[str] = (),
    ) -> bool:
        """Forget what another store has now; what is gone already does no harm."""
        values = kv_pairs(dict.fromkeys(kv))
        ask = {"move": move, "jobs": [*jobs], "keys": [*keys], "kv": values, "schedules": [*schedules]}
        done = _decode(await self._caller.run("let_go", ask))
        if not isinstance(done, bool):
            raise damaged(*done)
        return done

    async def timed_keys(self, *, limit: int) -> list[HeldKey]:
        """Return keys that time alone frees."""
        return [timed_of(row) for row in _timed.decode(await self._caller.look("timed_keys", {"limit": limit}))]

    async def take_keys(self, keys: Sequence[HeldKey]) -> None:
        """Let keys be held here until their time is over."""
        await self._caller.run("take_keys", {"keys": keys_of(keys)})
