"""What is kept beside jobs: the caller's own values, locks, servers, timings, the audit."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

import msgspec

from windlass.core.duration import later, to_micros
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.requests import KvAny, KvWrite
from windlass.core.stats import TimingCount
from windlass.core.topics import lock_topic
from windlass.kit.records import server_text
from windlass.stores.sqlite.moves.enqueue import write_kv
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import Transaction


class LockCall(NamedTuple):
    """A lock, who wants it and for how long."""

    name: str
    holder: str
    ttl: timedelta


def kv_write(tx: Transaction, writes: list[KvWrite]) -> list[bool]:
    """Write the values whose condition holds."""
    return [_kv_write(tx, write) for write in writes]


def _kv_write(tx: Transaction, write: KvWrite) -> bool:
    if write.expected is not KvAny.ANY:
        row = tx.row("kv_get", (write.key,))
        if (None if row is None else row[0]) != write.expected:
            return False
    write_kv(tx, {write.key: write.value})
    return True


def lock(tx: Transaction, calls: list[LockCall]) -> list[bool]:
    """Take or renew locks that are free, over, or the caller's own."""
    return [_lock(tx, call) for call in calls]


def _lock(tx: Transaction, call: LockCall) -> bool:
    expires_at = to_micros(later(tx.moment, call.ttl))
    parameters = {"name": call.name, "holder": call.holder, "now": tx.now, "expires_at": expires_at}
    return tx.run("lock", parameters) > 0


def unlock(tx: Transaction, calls: list[tuple[str, str]]) -> list[bool]:
    """Let go of locks; one that is over was not the caller's any more."""
    return [_unlock(tx, name, holder) for name, holder in calls]


def _unlock(tx: Transaction, name: str, holder: str) -> bool:
    row = tx.row("unlock", (name, holder))
    if row is None:
        return False
    tx.topics.add(lock_topic(name))
    return bool(row[0] > tx.now)


def beat(tx: Transaction, servers: list[ServerRecord]) -> list[None]:
    """Write that servers are live."""
    for server in servers:
        tx.run("beat", (server.id, tx.now, server_text(server)))
    return [None] * len(servers)


def leave(tx: Transaction, ids: list[str]) -> list[None]:
    """Take servers out."""
    for server_id in ids:
        tx.run("leave", (server_id,))
    return [None] * len(ids)


def write_timings(tx: Transaction, calls: list[Sequence[TimingCount]]) -> list[None]:
    """Add counts to those that are kept."""
    for timings in calls:
        tx.cursor.executemany(sql("write_timing"), [(to_micros(minute), *rest) for minute, *rest in timings])
    return [None] * len(calls)


def write_audit(tx: Transaction, calls: list[Sequence[AuditEntry]]) -> list[None]:
    """Keep what people did."""
    for entries in calls:
        for entry in entries:
            detail = msgspec.json.encode(dict(entry.detail)).decode()
            tx.run("write_audit", (to_micros(entry.at), entry.actor, entry.action, entry.target, detail))
    return [None] * len(calls)
