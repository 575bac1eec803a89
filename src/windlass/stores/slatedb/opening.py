"""What an owner reads when it opens a database, and what it writes into an empty one."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from windlass.core.errors import SchemaMissing, SchemaTooNew, StoreCorrupt
from windlass.core.schedule import Schedule
from windlass.kit.damage import DECODE_ERRORS
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.damaged import decoded, read_rows, read_schedule
from windlass.stores.slatedb.database import Database
from windlass.stores.slatedb.minutes import Minutes
from windlass.stores.slatedb.parcel_looks import read_moved
from windlass.stores.slatedb.queue_looks import read_row
from windlass.stores.slatedb.ranges import rows_of
from windlass.stores.slatedb.table import Begin
from windlass.stores.slatedb.view import View

LAYOUT: Final = 1
"""The version of the layout that this release reads and writes."""


async def prepare(database: Database, shown: str, *, create: bool) -> None:
    """Look whether the layout is one that we know, and write ours where there is none."""
    if await check_layout(database, shown):
        return
    if not create:
        raise SchemaMissing(f"{shown} has no Windlass store, and ?create=no forbids to make one")
    await database.write({keys.LAYOUT: records.encode(LAYOUT)})
    await database.flush()


async def check_layout(view: View, shown: str) -> bool:
    """Return whether there is a layout; refuse one that is newer than we know."""
    found = await view.get(keys.LAYOUT)
    if found is None:
        return False
    try:
        version = records.layout(found)
    except DECODE_ERRORS as error:
        message = f"which layout {shown} has cannot be read ({error}): restore the store from a backup"
        raise StoreCorrupt(message) from error
    if version > LAYOUT:
        raise SchemaTooNew(shown, version, LAYOUT)
    return True


async def read_begin(view: View, now: datetime) -> Begin:
    """Read what an owner has in memory: whatever is few, however many jobs there are."""
    schedules = {keys.name_of(key): read_schedule(key, value) for key, value in await rows_of(view, keys.SCHEDULES)}
    servers = await rows_of(view, keys.SERVERS)
    served_under = await rows_of(view, keys.SERVED_UNDER)
    rows = await rows_of(view, keys.QUEUES)
    queues = {keys.queue_of(key): await read_row(view, key, value) for key, value in rows}
    return Begin(
        counters=await _read_counters(view, schedules.values()),
        queues=queues,
        schedules=schedules,
        servers=dict(read_rows(servers, lambda key, value: (keys.name_of(key), records.server(value)), "a server")),
        served_under=dict(
            read_rows(served_under, lambda key, value: (keys.name_of(key), value.decode()), "the owner of a server")
        ),
        minutes=await Minutes.read(view, now),
        moved=await read_moved(view),
        # what could not be read is written anew
        recounted=[
            queue for (_, value), queue in zip(rows, queues, strict=True) if records.encode(queues[queue]) != value
        ],
    )


async def _read_counters(view: View, schedules: Iterable[Schedule]) -> records.Counters:
    """Return the last numbers that were given; where they cannot be read, those that are found in use."""
    value = await view.get(keys.COUNTERS)
    then = "counting goes on behind the last numbers that are in use"
    found = records.Counters() if value is None else decoded(records.counters, value, "the counters", then)
    if found is not None:
        return found
    return records.Counters(
        await _last_number(view, keys.ORDER),
        max((schedule.revision for schedule in schedules), default=0),
        await _last_number(view, keys.AUDIT),
    )


async def _last_number(view: View, family: bytes) -> int:
    rows = await view.scan(family, keys.after(family), limit=1, reverse=True)
    return keys.number_of(rows[0][0]) if rows else 0
