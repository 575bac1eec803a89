"""What a move between stores looks at: where the jobs go, what came here, and which keys only time frees."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from windlass.core.moving import HeldKey, Moved, Unpacked
from windlass.kit.moves.holds import Holder, Holds
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.loading import gets
from windlass.stores.slatedb.view import View

_MICROSECOND: Final = timedelta(microseconds=1)


async def moved(view: View) -> Moved | None:
    """Return where the jobs of this store go or went."""
    value = await view.get(keys.MOVED)
    return None if value is None else records.moved(value)


async def unpacked(view: View, move: str, queue: str) -> Unpacked | None:
    """Return the last parcel of a move and a queue that was unpacked here."""
    value = await view.get(keys.parcel(move, queue))
    return None if value is None else records.unpacked(value)


async def timed_keys(view: View, *, limit: int, now: datetime) -> list[HeldKey]:
    """Return keys that only time frees and whose time is not over, those first that are free soonest."""
    rows = await view.scan(keys.hold_time(now + _MICROSECOND), keys.after(keys.HOLD_TIMES), limit=limit)
    holders = await _holders(view, [keys.text_behind_time(key) for key, _ in rows])
    return list(Holds(holders).timed(now))


async def _holders(view: View, names: Sequence[str]) -> dict[str, Holder]:
    values = await gets(view, [keys.hold(name) for name in names])
    return {
        name: records.holder_record(value).holder()
        for name, value in zip(names, values, strict=True)
        if value is not None
    }
