"""What an owner reads when it opens a database, and what it writes into an empty one."""

from datetime import datetime
from typing import Final

from windlass.core.errors import SchemaMissing, SchemaTooNew
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.database import Database
from windlass.stores.slatedb.minutes import Minutes
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
    version = records.layout(found)
    if version > LAYOUT:
        raise SchemaTooNew(shown, version, LAYOUT)
    return True


async def read_begin(view: View, now: datetime) -> Begin:
    """Read what an owner has in memory: whatever is few, however many jobs there are."""
    counters = await view.get(keys.COUNTERS)
    moved = await view.get(keys.MOVED)
    queues = await rows_of(view, keys.QUEUES)
    schedules = await rows_of(view, keys.SCHEDULES)
    servers = await rows_of(view, keys.SERVERS)
    served_under = await rows_of(view, keys.SERVED_UNDER)
    return Begin(
        counters=records.Counters() if counters is None else records.counters(counters),
        queues={keys.names_of(key[1:])[0]: records.queue_record(value) for key, value in queues},
        schedules={keys.name_of(key): records.schedule(value) for key, value in schedules},
        servers={keys.name_of(key): records.server(value) for key, value in servers},
        served_under={keys.name_of(key): value.decode() for key, value in served_under},
        minutes=await Minutes.read(view, now),
        moved=None if moved is None else records.moved(moved),
    )
