"""What is kept beside jobs: the caller's own values, locks, servers, the audit."""

from windlass.core import commands
from windlass.core.requests import KvAny
from windlass.core.topics import lock_topic
from windlass.kit.records import in_utf8, server_text
from windlass.stores.postgres.moves.enqueue import write_kv
from windlass.stores.postgres.rows import json_text, plain_text
from windlass.stores.postgres.work import Changes, Statement, Work


def write_kv_if(_: Changes, command: commands.WriteKv) -> Work[bool]:
    """Write a value if its condition holds; the comparison and the write are one statement."""
    key, value, expected = command.write
    if isinstance(expected, KvAny):
        yield from write_kv({key: value})
        return True
    if expected is None:
        return (yield from _write_if_absent(key, value))
    if value is None:
        rows = yield Statement("kv_remove", {"key": key, "expected": expected})
    else:
        rows = yield Statement("kv_replace", {"key": key, "value": value, "expected": expected})
    return bool(rows)


def _write_if_absent(key: bytes, value: bytes | None) -> Work[bool]:
    if value is None:
        return not (yield Statement("kv_get", {"keys": [key]}))
    return bool((yield Statement("kv_insert", {"key": key, "value": value})))


def take_lock(changes: Changes, command: commands.TakeLock) -> Work[bool]:
    """Take or renew a lock that is free, over, or the caller's own."""
    parameters = {"now": changes.now, "name": command.name, "holder": command.holder, "ttl": command.ttl}
    rows = yield Statement("lock", parameters)
    return bool(rows)


def free_lock(changes: Changes, command: commands.FreeLock) -> Work[bool]:
    """Free a lock; one that is over was not the caller's any more."""
    rows = yield Statement("unlock", {"now": changes.now, "name": command.name, "holder": command.holder})
    if not rows:
        return False
    changes.topics.add(lock_topic(command.name))
    return bool(rows[0][0])


def write_heartbeat(changes: Changes, command: commands.WriteHeartbeat) -> Work[None]:
    """Write that a server is live."""
    server = command.server
    yield Statement("beat", {"now": changes.now, "server_id": server.id, "record": server_text(server)})


def remove_server(_: Changes, command: commands.RemoveServer) -> Work[None]:
    """Remove the record of a server."""
    yield Statement("leave", {"server_id": command.server_id})


def write_timings(_: Changes, command: commands.WriteTimings) -> Work[None]:
    """Add counts to those that are kept."""
    if command.timings:
        minutes, queues, kinds, whats, ranges, counts = map(list, zip(*command.timings, strict=True))
        parameters = {
            "minutes": minutes,
            "queues": queues,
            "kinds": kinds,
            "whats": whats,
            "ranges": ranges,
            "counts": counts,
        }
        yield Statement("write_timings", parameters)


def write_audit(_: Changes, command: commands.WriteAudit) -> Work[None]:
    """Keep what people did."""
    entries = command.entries
    details = [{in_utf8(name): in_utf8(value) for name, value in entry.detail.items()} for entry in entries]
    parameters = {
        "ats": [entry.at for entry in entries],
        "actors": [plain_text(entry.actor) for entry in entries],
        "actions": [plain_text(entry.action) for entry in entries],
        "targets": [plain_text(entry.target) for entry in entries],
        "details": [json_text(detail) for detail in details],
    }
    yield Statement("write_audit", parameters)
