"""What is asked and told about the callers' own key space, and about locks."""

from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from windlass.api.calls import MOST_JOBS
from windlass.api.carried_call import PlainCall, concatenated, pages_of
from windlass.api.shape import (
    Asked,
    Blob,
    Key,
    KeyPrefix,
    KvPair,
    Limit,
    Name,
    Seconds,
    Told,
    Value,
    data,
    key_blob,
    prefix_blob,
    value_blob,
)
from windlass.core.commands import FreeLock, TakeLock, WriteKv
from windlass.core.duration import duration
from windlass.core.errors import InvalidValue
from windlass.core.names import MAX_KEY, check_key, check_name, check_value
from windlass.core.queries import GetKv, ScanKv
from windlass.core.requests import KvAny, KvWrite


class KvKeysAsked(Asked, kw_only=True):
    """Keys of the caller's own key space."""

    keys: Annotated[list[Key], Meta(max_length=MOST_JOBS)]


class KvValuesTold(Told, kw_only=True):
    """The values in the order of their keys, null for each that is not here."""

    values: list[Value | None]


class KvWriteAsked(Asked, kw_only=True):
    """A value to be written, null deletes; with `expected` only if the key now holds that, null for absent."""

    key: Key
    value: Value | None = None
    expected: Value | UnsetType | None = UNSET


class Written(Told, kw_only=True):
    """Whether the condition held and it was written."""

    written: bool


class KvScanAsked(Asked, kw_only=True):
    """Pairs whose key begins with `prefix`, in the order of their bytes, past `after`."""

    prefix: KeyPrefix = ""
    after: Key | None = None
    limit: Limit = 100


class KvPairsTold(Told, kw_only=True):
    """A page of pairs; where there may be more, `next` is the `after` of the next page."""

    pairs: list[KvPair]
    next: Key | None = None


class LockAsked(Asked, kw_only=True):
    """A lock to be taken or renewed for `ttl` seconds."""

    name: Name
    holder: Name
    ttl: Seconds


class UnlockAsked(Asked, kw_only=True):
    """A lock to be let go."""

    name: Name
    holder: Name


class HeldTold(Told, kw_only=True):
    """Whether the holder has it, or had it."""

    held: bool


def _kv_write_request(command: WriteKv) -> KvWriteAsked:
    write = command.write
    request = KvWriteAsked(key=key_blob(write.key), value=None if write.value is None else value_blob(write.value))
    if not isinstance(write.expected, KvAny):
        request.expected = None if write.expected is None else value_blob(write.expected)
    return request


def _kv_write_command(request: KvWriteAsked) -> WriteKv:
    expected = KvAny.ANY if isinstance(request.expected, UnsetType) else _value(request.expected)
    return WriteKv(KvWrite(check_key(data(request.key)), _value(request.value), expected))


def _kv_scan_query(request: KvScanAsked) -> ScanKv:
    prefix = data(request.prefix)
    if len(prefix) > MAX_KEY:
        message = f"a kv prefix has at most {MAX_KEY:,} bytes, not {len(prefix):,}"
        raise InvalidValue(message)
    return ScanKv(prefix, None if request.after is None else check_key(data(request.after)), request.limit)


def _kv_scan_response(query: ScanKv, pairs: list[tuple[bytes, bytes]]) -> KvPairsTold:
    return KvPairsTold(
        pairs=[KvPair(key=key_blob(key), value=value_blob(value)) for key, value in pairs],
        next=key_blob(pairs[-1][0]) if len(pairs) == query.limit else None,
    )


def _value(written: Blob | None) -> bytes | None:
    return None if written is None else check_value(data(written))


KV_GET: Final = PlainCall(
    GetKv,
    KvKeysAsked,
    KvValuesTold,
    request=lambda query: KvKeysAsked(keys=[key_blob(key) for key in query.keys]),
    read=lambda asked: GetKv([check_key(data(key)) for key in asked.keys]),
    response=lambda _, values: KvValuesTold(values=[None if each is None else value_blob(each) for each in values]),
    reply=lambda told: [None if value is None else data(value) for value in told.values],
    parts=pages_of("keys", concatenated),
)
KV_WRITE: Final = PlainCall(
    WriteKv,
    KvWriteAsked,
    Written,
    request=_kv_write_request,
    read=_kv_write_command,
    response=lambda _, written: Written(written=written),
    reply=lambda told: told.written,
)
KV_SCAN: Final = PlainCall(
    ScanKv,
    KvScanAsked,
    KvPairsTold,
    request=lambda query: KvScanAsked(
        prefix=prefix_blob(query.prefix),
        after=None if query.after is None else key_blob(query.after),
        limit=query.limit,
    ),
    read=_kv_scan_query,
    response=_kv_scan_response,
    reply=lambda told: [(data(pair.key), b"" if pair.value is None else data(pair.value)) for pair in told.pairs],
)
LOCK: Final = PlainCall(
    TakeLock,
    LockAsked,
    HeldTold,
    request=lambda command: LockAsked(name=command.name, holder=command.holder, ttl=command.ttl.total_seconds()),
    read=lambda asked: TakeLock(
        ttl=duration(asked.ttl, "ttl"), name=check_name(asked.name, "lock"), holder=check_name(asked.holder, "holder")
    ),
    response=lambda _, held: HeldTold(held=held),
    reply=lambda told: told.held,
)
UNLOCK: Final = PlainCall(
    FreeLock,
    UnlockAsked,
    HeldTold,
    request=lambda command: UnlockAsked(name=command.name, holder=command.holder),
    read=lambda asked: FreeLock(check_name(asked.name, "lock"), check_name(asked.holder, "holder")),
    response=lambda _, held: HeldTold(held=held),
    reply=lambda told: told.held,
)
