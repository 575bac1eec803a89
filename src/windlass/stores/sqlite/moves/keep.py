"""What is kept beside jobs: the caller's own values, locks, servers, timings, the audit."""

import msgspec

from windlass.core.commands import (
    FreeLock,
    RemoveServer,
    TakeLock,
    WriteAudit,
    WriteHeartbeat,
    WriteKv,
    WriteTimings,
)
from windlass.core.duration import later, to_micros
from windlass.core.requests import KvAny
from windlass.core.topics import lock_topic
from windlass.kit.records import server_text
from windlass.stores.sqlite.moves.enqueue import write_kv
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import Transaction


def write_kv_if(tx: Transaction, command: WriteKv) -> bool:
    """Write one of the caller's own values if its condition holds."""
    write = command.write
    if write.expected is not KvAny.ANY:
        row = tx.row("kv_get", {"key": write.key})
        if (None if row is None else row[0]) != write.expected:
            return False
    write_kv(tx, {write.key: write.value})
    return True


def take_lock(tx: Transaction, command: TakeLock) -> bool:
    """Take or renew a lock that is free, has expired, or is the caller's own."""
    expires_at = to_micros(later(tx.moment, command.ttl))
    parameters = {"name": command.name, "holder": command.holder, "now": tx.now, "expires_at": expires_at}
    return tx.run("lock", parameters) > 0


def free_lock(tx: Transaction, command: FreeLock) -> bool:
    """Free a lock; an expired one was not the caller's any more."""
    row = tx.row("unlock", {"name": command.name, "holder": command.holder})
    if row is None:
        return False
    tx.topics.add(lock_topic(command.name))
    return bool(row[0] > tx.now)


def write_heartbeat(tx: Transaction, command: WriteHeartbeat) -> None:
    """Write that a server is live."""
    server = command.server
    tx.run("beat", {"server_id": server.id, "now": tx.now, "record": server_text(server)})


def remove_server(tx: Transaction, command: RemoveServer) -> None:
    """Remove the record of a server."""
    tx.run("leave", {"server_id": command.server_id})


def write_timings(tx: Transaction, command: WriteTimings) -> None:
    """Add counts to those that are kept."""
    rows = [(to_micros(minute), *rest) for minute, *rest in command.timings]
    tx.cursor.executemany(sql("write_timing"), rows)


def write_audit(tx: Transaction, command: WriteAudit) -> None:
    """Keep what people did."""
    for entry in command.entries:
        tx.run(
            "write_audit",
            {
                "at": to_micros(entry.at),
                "actor": entry.actor,
                "action": entry.action,
                "target": entry.target,
                "detail": msgspec.json.encode(dict(entry.detail)).decode(),
            },
        )
