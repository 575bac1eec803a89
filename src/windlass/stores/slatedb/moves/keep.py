"""What a store keeps beside jobs: values, locks, servers and what people did."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Literal, NamedTuple

from windlass.core.duration import later
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.requests import KvAny, KvWrite
from windlass.core.stats import TimingCount
from windlass.core.topics import lock_topic
from windlass.kit.moves import moving
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.damaged import free_if_damaged
from windlass.stores.slatedb.records import LockRecord
from windlass.stores.slatedb.table import Table


class LockCall(NamedTuple):
    """Who wants which lock, for how long."""

    name: str
    holder: str
    ttl: timedelta


class UnlockCall(NamedTuple):
    """Who lets go of which lock."""

    name: str
    holder: str


async def kv_write(table: Table, write: KvWrite) -> bool:
    """Write one of the caller's own values if its condition holds."""
    moving.refuse(table.moved)
    if write.expected is not KvAny.ANY and await table.value(keys.value(write.key)) != write.expected:
        return False
    table.put_values({write.key: write.value})
    return True


async def lock(table: Table, call: LockCall) -> bool:
    """Take or renew a lock; False while another holder has it."""
    if await _holder(table, call.name) not in {None, call.holder}:
        return False
    kept = LockRecord(call.holder, later(table.now, call.ttl))
    table.put(keys.named(keys.LOCKS, call.name), records.encode(kept))
    return True


async def unlock(table: Table, call: UnlockCall) -> bool:
    """Let go of a lock; False when the holder no longer had it."""
    table.news.add(lock_topic(call.name))
    if await _holder(table, call.name) != call.holder:
        return False
    table.put(keys.named(keys.LOCKS, call.name), None)
    return True


async def _holder(table: Table, name: str) -> str | None:
    kept = await table.value(keys.named(keys.LOCKS, name))
    found = None if kept is None else free_if_damaged(records.lock_record, kept, f"lock {name!r}")
    return None if found is None or found.ends_at <= table.now else found.holder


async def beat(table: Table, server: ServerRecord) -> None:
    """Write that a server is live."""
    table.beat(replace(server, seen_at=table.now))


async def ended_servers(table: Table, _: None) -> list[str]:
    """Return the servers that a former owner has left behind, on proof that its process has ended."""
    return [server_id for server_id in table.servers if server_id in table.ended_servers]


async def leave(table: Table, server_id: str) -> None:
    """Take a server out."""
    table.forget_server(server_id)


async def write_timings(table: Table, timings: Sequence[TimingCount]) -> None:
    """Add counts to those that are kept."""
    added: defaultdict[bytes, Counter[tuple[Literal["waited", "ran"], int]]] = defaultdict(Counter)
    for minute, queue, kind, what, within, count in timings:
        added[keys.minute(minute, queue, kind, family=keys.TIMINGS)][what, within] += count
    # all of them are read before one is written: if that fails, the caller repeats all of them
    kept = [await table.value(key) for key in added]
    for (key, counts), value in zip(added.items(), kept, strict=True):
        for what, within, count in () if value is None else records.timings(value):
            counts[what, within] += count
        table.put(key, records.encode([(*of, count) for of, count in sorted(counts.items())]))


async def write_audit(table: Table, entries: Sequence[AuditEntry]) -> None:
    """Keep what people did."""
    for entry in entries:
        table.counters.entry += 1
        table.put(keys.audit(table.counters.entry), records.encode(entry))
