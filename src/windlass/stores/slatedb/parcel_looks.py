"""What a move between stores looks at: where the jobs go, what came here, and which keys only time frees."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from windlass.core.errors import StoreCorrupt
from windlass.core.moving import HeldKey, Moved, Unpacked
from windlass.core.queries import GetMoved, GetUnpacked, ListTimedKeys
from windlass.kit.damage import DECODE_ERRORS
from windlass.kit.moves.holds import Holder, Holds
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.damaged import decoded, free_if_damaged
from windlass.stores.slatedb.loading import gets
from windlass.stores.slatedb.view import ReadState, View

_MICROSECOND: Final = timedelta(microseconds=1)


async def moved(state: ReadState, query: GetMoved) -> Moved | None:
    """Return where the jobs of this store go or went."""
    del query
    return await read_moved(state.view)


async def read_moved(view: View) -> Moved | None:
    """Return where the jobs of a store go; a mark that cannot be read still says that they go."""
    value = await view.get(keys.MOVED)
    if value is None:
        return None
    then = "nothing new begins here until it is written again"
    return decoded(records.moved, value, "where the jobs of this store go", then) or Moved(
        "an address that is lost", ""
    )


async def unpacked(state: ReadState, query: GetUnpacked) -> Unpacked | None:
    """Return the last parcel of a move and a queue that was unpacked here."""
    value = await state.view.get(keys.parcel(query.move, query.queue))
    return read_unpacked(value)


def read_unpacked(value: bytes | None) -> Unpacked | None:
    """Return the last parcel of a move and a queue; raises `StoreCorrupt` where it cannot be read."""
    try:
        return None if value is None else records.unpacked(value)
    except DECODE_ERRORS as error:
        message = f"which parcel came last cannot be read ({error}): empty this store, and move the jobs here anew"
        raise StoreCorrupt(message) from error


async def timed_keys(state: ReadState, query: ListTimedKeys) -> list[HeldKey]:
    """Return keys that only time frees and whose time is not over, those first that are free soonest."""
    start, end = keys.hold_time(state.now + _MICROSECOND), keys.after(keys.HOLD_TIMES)
    rows = await state.view.scan(start, end, limit=query.limit)
    holders = await _holders(state.view, [keys.text_behind_time(key) for key, _ in rows])
    return list(Holds(holders).timed(state.now))


async def _holders(view: View, names: Sequence[str]) -> dict[str, Holder]:
    values = await gets(view, [keys.hold(name) for name in names])
    found = {
        name: free_if_damaged(records.holder_record, value, f"unique key {name!r}")
        for name, value in zip(names, values, strict=True)
        if value is not None
    }
    return {name: kept.holder() for name, kept in found.items() if kept is not None}
