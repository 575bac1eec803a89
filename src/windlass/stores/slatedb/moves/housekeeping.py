"""Housekeeping: records beside jobs whose time is over."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.table import Table

RECEIPTS_KEPT: Final = timedelta(minutes=10)
SERVERS_KEPT: Final = timedelta(days=1)
MINUTES_KEPT: Final = timedelta(days=8)
AT_ONCE: Final = 1_000


async def prune_beside(table: Table) -> None:
    """Forget what is past its time, some of each kind at once."""
    now = table.now
    for server_id in [key for key, server in table.servers.items() if server.seen_at <= now - SERVERS_KEPT]:
        del table.servers[server_id]
    await _prune_locks(table)
    await _prune_times(table, keys.HOLD_TIMES, keys.hold_time(now + timedelta(microseconds=1)), _forget_hold)
    receipts_until = keys.receipt_time(now - RECEIPTS_KEPT + timedelta(microseconds=1))
    await _prune_times(table, keys.RECEIPT_TIMES, receipts_until, _forget_receipt)
    for family in (keys.MINUTES, keys.TIMINGS):
        minutes_until = keys.minute(_minute(now - MINUTES_KEPT) + timedelta(microseconds=1), family=family)
        await _prune_times(table, family, minutes_until, _forget_minute)


async def _prune_locks(table: Table) -> None:
    """Forget locks whose time is over, some further on with each call: they are in the order of their names."""
    start = table.pruned_to.get(keys.LOCKS, keys.LOCKS)
    rows = await table.scan(start, keys.after(keys.LOCKS), limit=AT_ONCE)
    for key, value in rows:
        if records.lock_record(value).ends_at <= table.now:
            table.put(key, None)
    table.pruned_to[keys.LOCKS] = keys.LOCKS if len(rows) < AT_ONCE else rows[-1][0] + b"\0"


async def _prune_times(
    table: Table, family: bytes, end: bytes, forget: Callable[[Table, bytes], Awaitable[None]]
) -> None:
    """Forget what lies before `end` in a family that is in the order of time.

    It begins where the last call has ended: what was deleted there has left marks behind.
    """
    start = table.pruned_to.get(family, family)
    if end < start:
        # the clock was set back: what came since lies before
        start = family
    rows = await table.scan(start, end, limit=AT_ONCE)
    for key, _ in rows:
        await forget(table, key)
    table.pruned_to[family] = end if len(rows) < AT_ONCE else rows[-1][0] + b"\0"


async def _forget_hold(table: Table, key: bytes) -> None:
    name = keys.text_behind_time(key)
    await table.read_holders([name])
    table.holds.prune_one(name, table.now)
    table.put(key, None)


async def _forget_receipt(table: Table, key: bytes) -> None:
    table.put(keys.receipt(keys.text_behind_time(key)), None)
    table.put(key, None)


async def _forget_minute(table: Table, key: bytes) -> None:
    table.put(key, None)


def _minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)
