"""Housekeeping: records beside jobs whose time is over."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from windlass.core.store_calls import Command, RepeatSafety
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.damaged import free_if_damaged
from windlass.stores.slatedb.table import Table

RECEIPTS_KEPT: Final = timedelta(minutes=10)
SERVERS_KEPT: Final = timedelta(days=1)
MINUTES_KEPT: Final = timedelta(days=8)
AT_ONCE: Final = 1_000
_MOMENT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class PruneBeside(Command[bool]):
    """Delete a page of each kind of records beside jobs that are past their time; return whether there may be more."""

    repeat = RepeatSafety.SAME


async def prune_beside(table: Table, command: PruneBeside) -> bool:
    """Delete what is past its time, some of each kind; return whether there may be more."""
    del command
    now = table.now
    for server_id in [key for key, server in table.servers.items() if server.seen_at <= now - SERVERS_KEPT]:
        table.forget_server(server_id)
    return any(
        [
            await _prune_locks(table),
            await _prune_times(table, keys.HOLD_TIMES, keys.hold_time(now + _MOMENT), _forget_holds),
            await _prune_times(
                table, keys.RECEIPT_TIMES, keys.receipt_time(now - RECEIPTS_KEPT + _MOMENT), _forget_receipts
            ),
            *[
                await _prune_times(
                    table, family, keys.minute(_minute(now - MINUTES_KEPT) + _MOMENT, family=family), _forget_minutes
                )
                for family in (keys.MINUTES, keys.TIMINGS)
            ],
        ]
    )


async def _prune_locks(table: Table) -> bool:
    """Forget locks whose time is over, some further on with each call: they are in the order of their names."""
    start = table.pruned_to.get(keys.LOCKS, keys.LOCKS)
    rows = await table.scan(start, keys.after(keys.LOCKS), limit=AT_ONCE)
    for key, value in rows:
        found = free_if_damaged(records.lock_record, value, f"lock {keys.name_of(key)!r}")
        if found is None or found.ends_at <= table.now:
            table.put(key, None)
    more = len(rows) == AT_ONCE
    table.pruned_to[keys.LOCKS] = rows[-1][0] + b"\0" if more else keys.LOCKS
    return more


async def _prune_times(
    table: Table, family: bytes, end: bytes, forget: Callable[[Table, Sequence[bytes]], Awaitable[None]]
) -> bool:
    """Forget what lies before `end` in a family that is in the order of time.

    It begins where the last call has ended: what was deleted there has left marks behind.
    """
    start = table.pruned_to.get(family, family)
    if end < start:
        # the clock was set back: what came since lies before
        start = family
    rows = await table.scan(start, end, limit=AT_ONCE)
    await forget(table, [key for key, _ in rows])
    more = len(rows) == AT_ONCE
    table.pruned_to[family] = rows[-1][0] + b"\0" if more else end
    return more


async def _forget_holds(table: Table, over: Sequence[bytes]) -> None:
    names = [keys.text_behind_time(key) for key in over]
    await table.read_holders(names)
    for key, name in zip(over, names, strict=True):
        table.holds.prune_one(name, table.now)
        table.put(key, None)


async def _forget_receipts(table: Table, over: Sequence[bytes]) -> None:
    for key in over:
        table.put(keys.receipt(keys.text_behind_time(key)), None)
        table.put(key, None)


async def _forget_minutes(table: Table, over: Sequence[bytes]) -> None:
    for key in over:
        table.put(key, None)


def _minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)
