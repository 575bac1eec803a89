"""What a store keeps beside jobs: values, locks, servers and what people did."""

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Literal

from windlass.core.commands import (
    FreeLock,
    RemoveServer,
    TakeLock,
    WriteAudit,
    WriteHeartbeat,
    WriteKv,
    WriteTimings,
)
from windlass.core.duration import later
from windlass.core.queries import ListEndedServers
from windlass.core.requests import KvAny
from windlass.core.topics import lock_topic
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.damaged import decoded, free_if_damaged
from windlass.stores.slatedb.records import LockRecord
from windlass.stores.slatedb.table import Table


async def write_kv(table: Table, command: WriteKv) -> bool:
    """Write one of the caller's own values if its condition holds."""
    write = command.write
    if write.expected is not KvAny.ANY and await table.value(keys.value(write.key)) != write.expected:
        return False
    table.put_values({write.key: write.value})
    return True


async def take_lock(table: Table, command: TakeLock) -> bool:
    """Take or renew a lock; False while another holder has it."""
    if await _holder(table, command.name) not in {None, command.holder}:
        return False
    kept = LockRecord(command.holder, later(table.now, command.ttl))
    table.put(keys.named(keys.LOCKS, command.name), records.encode(kept))
    return True


async def free_lock(table: Table, command: FreeLock) -> bool:
    """Free a lock; False when the holder no longer had it."""
    table.news.add(lock_topic(command.name))
    if await _holder(table, command.name) != command.holder:
        return False
    table.put(keys.named(keys.LOCKS, command.name), None)
    return True


async def _holder(table: Table, name: str) -> str | None:
    kept = await table.value(keys.named(keys.LOCKS, name))
    found = None if kept is None else free_if_damaged(records.lock_record, kept, f"lock {name!r}")
    return None if found is None or found.ends_at <= table.now else found.holder


async def write_heartbeat(table: Table, command: WriteHeartbeat) -> None:
    """Write that a server is live."""
    table.beat(replace(command.server, seen_at=table.now))


async def ended_servers(table: Table, query: ListEndedServers) -> list[str]:
    """Return the servers that a former owner has left behind, on proof that its process has ended."""
    del query
    return [server_id for server_id in table.servers if server_id in table.ended_servers]


async def remove_server(table: Table, command: RemoveServer) -> None:
    """Remove the record of a server."""
    table.forget_server(command.server_id)


async def write_timings(table: Table, command: WriteTimings) -> None:
    """Add counts to those that are kept."""
    added: defaultdict[bytes, Counter[tuple[Literal["waited", "ran"], int]]] = defaultdict(Counter)
    for minute, queue, kind, what, within, count in command.timings:
        added[keys.minute(minute, queue, kind, family=keys.TIMINGS)][what, within] += count
    # all of them are read before one is written: if that fails, the caller repeats all of them
    kept = [await table.value(key) for key in added]
    for (key, counts), value in zip(added.items(), kept, strict=True):
        before = None if value is None else decoded(records.timings, value, "how long attempts took", "it begins anew")
        for what, within, count in before or ():
            counts[what, within] += count
        table.put(key, records.encode([(*of, count) for of, count in sorted(counts.items())]))


async def write_audit(table: Table, command: WriteAudit) -> None:
    """Keep what people did."""
    for entry in command.entries:
        table.counters.entry += 1
        table.put(keys.audit(table.counters.entry), records.encode(entry))
