"""What is kept beside jobs: the caller's own values, locks, servers, the audit."""

from collections.abc import Sequence
from datetime import timedelta

from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.requests import KvAny, KvWrite
from windlass.core.stats import TimingCount
from windlass.core.topics import lock_topic
from windlass.kit.records import in_utf8, server_text
from windlass.stores.postgres.moves.enqueue import write_kv
from windlass.stores.postgres.rows import json_text, plain_text
from windlass.stores.postgres.work import Changes, Statement, Work


def kv_write(_: Changes, write: KvWrite) -> Work[bool]:
    """Write a value if its condition holds; the comparison and the write are one statement."""
    key, value, expected = write
    if isinstance(expected, KvAny):
        yield from write_kv({key: value})
        return True
    if expected is None:
        return (yield from _write_if_absent(key, value))
    if value is None:
        rows = yield Statement("kv_remove", [key, expected])
    else:
        rows = yield Statement("kv_replace", [key, value, expected])
    return bool(rows)


def _write_if_absent(key: bytes, value: bytes | None) -> Work[bool]:
    if value is None:
        return not (yield Statement("kv_get", [[key]]))
    return bool((yield Statement("kv_insert", [key, value])))


def lock(changes: Changes, name: str, holder: str, ttl: timedelta) -> Work[bool]:
    """Take or renew a lock that is free, over, or the caller's own."""
    rows = yield Statement("lock", [changes.now, name, holder, ttl])
    return bool(rows)


def unlock(changes: Changes, name: str, holder: str) -> Work[bool]:
    """Let go of a lock; one that is over was not the caller's any more."""
    rows = yield Statement("unlock", [changes.now, name, holder])
    if not rows:
        return False
    changes.topics.add(lock_topic(name))
    return bool(rows[0][0])


def beat(changes: Changes, server: ServerRecord) -> Work[None]:
    """Write that a server is live."""
    yield Statement("beat", [changes.now, server.id, server_text(server)])


def leave(_: Changes, server_id: str) -> Work[None]:
    """Take a server out."""
    yield Statement("leave", [server_id])


def write_timings(_: Changes, timings: Sequence[TimingCount]) -> Work[None]:
    """Add counts to those that are kept."""
    if timings:
        yield Statement("write_timings", [list(column) for column in zip(*timings, strict=True)])


def write_audit(_: Changes, entries: Sequence[AuditEntry]) -> Work[None]:
    """Keep what people did."""
    columns = [
        [entry.at for entry in entries],
        [plain_text(entry.actor) for entry in entries],
        [plain_text(entry.action) for entry in entries],
        [plain_text(entry.target) for entry in entries],
        [json_text({in_utf8(name): in_utf8(value) for name, value in entry.detail.items()}) for entry in entries],
    ]
    yield Statement("write_audit", columns)
