"""Commands and queries of `windlass move` on Redis: the function that executes each, by one script."""

from collections.abc import Iterable
from typing import Final

import msgspec

from windlass.core import commands, queries
from windlass.core.ids import JobId
from windlass.core.moving import HeldKey, Moved, Packed, Unpacked
from windlass.core.store_calls import table_of
from windlass.stores.redis.caller import Caller
from windlass.stores.redis.damaged import left_out
from windlass.stores.redis.parcels import (
    PackedJob,
    PackedRow,
    TimedRow,
    keys_of,
    packed_job_of,
    packed_of,
    parcel_of,
    timed_of,
)
from windlass.stores.redis.requests import Ask, kv_pairs, packed_text
from windlass.stores.redis.stored_jobs import FramedRow, decoded

LOOKED_AT: Final = 2_000
"""Jobs that one script looks at for those that wait: the server does nothing else meanwhile."""
PARCEL_BYTES: Final = 4 * 1024 * 1024
"""How large a parcel becomes before it is full, however few jobs are in it."""

_moved: Final[msgspec.msgpack.Decoder[Moved | None]] = msgspec.msgpack.Decoder(Moved | None)
_packed = msgspec.msgpack.Decoder(tuple[int | None, bool, list[FramedRow]])
_row = msgspec.msgpack.Decoder(PackedRow)
_unpacked = msgspec.msgpack.Decoder(tuple[int, list[str]] | None)
_timed = msgspec.msgpack.Decoder(tuple[list[TimedRow], list[str]])
_decode = msgspec.msgpack.Decoder().decode
_left_out_key: Final = left_out("the holder of a unique key")


async def moved(caller: Caller, query: queries.GetMoved) -> Moved | None:
    """Return where the jobs go."""
    del query
    return _moved.decode(await caller.look("moved", {}))


async def set_moved(caller: Caller, command: commands.SetMoved) -> None:
    """Let this store take nothing new, or let it take jobs again."""
    mark = None if command.moved is None else packed_text(command.moved)
    await caller.execute(command, "set_moved", {"moved": mark})


async def pack(caller: Caller, query: queries.PackJobs) -> Packed:
    """Return waiting jobs of a queue."""
    queue, limit = query.queue, query.limit
    passed = caller.packed_up_to.pop(queue, None)
    found, more = await _waiting(caller, queue, limit, after=passed)
    if passed is not None and not more:
        # one that ran may wait again behind what was passed by
        found, _ = await _waiting(caller, queue, limit, after=None)
    if found:
        caller.packed_up_to[queue] = found[0][0].seq - 1
    return packed_of(found)


async def _waiting(caller: Caller, queue: str, limit: int, *, after: int | None) -> tuple[list[PackedJob], bool]:
    """Return as many as fit into a parcel, and whether there may be more behind them."""
    found: list[PackedJob] = []
    size, more = 0, True
    while more and len(found) < limit and size < PARCEL_BYTES:
        ask: Ask = {"queue": queue, "after": after, "most": LOOKED_AT}
        ask |= {"limit": limit - len(found), "bytes": PARCEL_BYTES - size}
        reply = await caller.look("pack", ask)
        size += len(reply)
        after, more, rows = _packed.decode(reply)
        # a damaged one stays where it is
        packed = [decoded(row, _job_of) for _, row in rows if row is not None]
        found += [one for one in packed if one is not None and one[0].queue == queue]
    return found, more


async def unpack(caller: Caller, command: commands.UnpackJobs) -> bool:
    """Enqueue the jobs of a parcel, if it is the next one."""
    reply = _decode(await caller.execute(command, "unpack", parcel_of(command.parcel)))
    match reply:
        case False:
            return False
        case [True, damaged]:
            _note_damaged_keys(damaged)
            return True
        case _:
            raise await caller.stored.refusal(*reply)


async def unpacked(caller: Caller, query: queries.GetUnpacked) -> Unpacked | None:
    """Return the last parcel of a move and a queue."""
    found = _unpacked.decode(await caller.look("unpacked", {"move": query.move, "queue": query.queue}))
    return None if found is None else Unpacked(found[0], [JobId(job_id) for job_id in found[1]])


async def delete_moved(caller: Caller, command: commands.DeleteMoved) -> bool:
    """Delete what another store has now; what is gone already does no harm, so a repeat needs no earlier reply."""
    ask: Ask = {
        "move": command.move,
        "jobs": [*command.jobs],
        "keys": [*command.keys],
        "kv": kv_pairs(dict.fromkeys(command.kv)),
        "schedules": [*command.schedules],
    }
    done = _decode(await caller.run("let_go", ask))
    if not isinstance(done, bool):
        raise await caller.stored.error(*done)
    return done


async def timed_keys(caller: Caller, query: queries.ListTimedKeys) -> list[HeldKey]:
    """Return keys that time alone frees."""
    rows, damaged = _timed.decode(await caller.look("timed_keys", {"limit": query.limit}))
    _note_damaged_keys(damaged)
    return [timed_of(row) for row in rows]


async def take_keys(caller: Caller, command: commands.TakeKeys) -> None:
    """Let keys be held here until their time is over."""
    _note_damaged_keys(_decode(await caller.execute(command, "take_keys", {"keys": keys_of(command.keys)})))


def _note_damaged_keys(damaged: Iterable[str]) -> None:
    for why in damaged:
        _left_out_key(why)


def _job_of(row: bytes) -> PackedJob:
    return packed_job_of(_row.decode(row))


COMMANDS: Final = table_of(
    commands.SetMoved.by_coroutine(set_moved),
    commands.UnpackJobs.by_coroutine(unpack),
    commands.DeleteMoved.by_coroutine(delete_moved),
    commands.TakeKeys.by_coroutine(take_keys),
)
QUERIES: Final = table_of(
    queries.GetMoved.by_coroutine(moved),
    queries.PackJobs.by_coroutine(pack),
    queries.GetUnpacked.by_coroutine(unpacked),
    queries.ListTimedKeys.by_coroutine(timed_keys),
)
