"""The callers' own key space, and locks."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import UnsetType

from windlass.api import kv_calls, operations
from windlass.api.shape import Blob, KvPair, blob, data
from windlass.core.duration import duration
from windlass.core.errors import InvalidValue
from windlass.core.names import MAX_KEY, check_key, check_name, check_value
from windlass.core.requests import KvAny, KvWrite
from windlass.http.call import Call, Handled


async def kv_get(call: Call[kv_calls.KvKeysAsked]) -> kv_calls.KvValuesTold:
    """Return values."""
    values = await call.store.kv_get([check_key(data(key)) for key in call.asked.keys])
    return kv_calls.KvValuesTold(values=[None if value is None else blob(value) for value in values])


async def kv_write(call: Call[kv_calls.KvWriteAsked]) -> kv_calls.Written:
    """Write a value, if its condition holds."""
    asked = call.asked
    expected = KvAny.ANY if isinstance(asked.expected, UnsetType) else _value(asked.expected)
    write = KvWrite(check_key(data(asked.key)), _value(asked.value), expected)
    return kv_calls.Written(written=await call.store.kv_write(write))


async def kv_scan(call: Call[kv_calls.KvScanAsked]) -> kv_calls.KvPairsTold:
    """List keys and values."""
    asked = call.asked
    prefix = data(asked.prefix)
    if len(prefix) > MAX_KEY:
        message = f"a kv prefix has at most {MAX_KEY:,} bytes, not {len(prefix):,}"
        raise InvalidValue(message)
    after = None if asked.after is None else check_key(data(asked.after))
    pairs = await call.store.kv_scan(prefix, after=after, limit=asked.limit)
    return kv_calls.KvPairsTold(pairs=[KvPair(key=blob(key), value=blob(value)) for key, value in pairs])


async def lock(call: Call[kv_calls.LockAsked]) -> kv_calls.HeldTold:
    """Take or renew a lock."""
    asked = call.asked
    ttl = duration(asked.ttl, "ttl")
    held = await call.store.lock(check_name(asked.name, "lock"), check_name(asked.holder, "holder"), ttl)
    return kv_calls.HeldTold(held=held)


async def unlock(call: Call[kv_calls.UnlockAsked]) -> kv_calls.HeldTold:
    """Let go of a lock."""
    asked = call.asked
    held = await call.store.unlock(check_name(asked.name, "lock"), check_name(asked.holder, "holder"))
    return kv_calls.HeldTold(held=held)


def _value(written: Blob | None) -> bytes | None:
    return None if written is None else check_value(data(written))


HANDLED: Final[Sequence[Handled[Any, Any]]] = (
    Handled(operations.KV_GET, kv_get),
    Handled(operations.KV_WRITE, kv_write),
    Handled(operations.KV_SCAN, kv_scan),
    Handled(operations.LOCK, lock),
    Handled(operations.UNLOCK, unlock),
)
