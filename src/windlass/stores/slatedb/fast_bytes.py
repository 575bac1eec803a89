"""Bytes to the engine and back by one copy: its binding takes them one by one, in Python.

Private names of the binding are used where all of them are there and round trips give what went in; elsewhere
everything works as the binding does it.
"""

import ctypes
from collections.abc import Callable, Mapping
from functools import cache
from struct import Struct
from typing import Any, Final

from slatedb.uniffi import DbIterator, KeyRange, ScanOptions, WriteBatch
from slatedb.uniffi._slatedb_uniffi import slatedb as _binding

_NAMES: Final = (
    "_UniffiLib",
    "_UniffiRustBuffer",
    "_UniffiRustCallStatus",
    "_UniffiFfiConverterBytes",
    "_UniffiFfiConverterTypeKeyRange",
    "_UniffiFfiConverterTypeScanOptions",
    "_UniffiFfiConverterSequenceTypeKeyValue",
    "_UniffiFfiConverterTypeError",
    "_uniffi_check_call_status",
    "_uniffi_rust_call_async",
)
_CALLS: Final = (
    "ffi_slatedb_uniffi_rustbuffer_alloc",
    "ffi_slatedb_uniffi_rust_future_poll_rust_buffer",
    "ffi_slatedb_uniffi_rust_future_complete_rust_buffer",
    "ffi_slatedb_uniffi_rust_future_free_rust_buffer",
    "uniffi_slatedb_uniffi_fn_method_writebatch_put",
    "uniffi_slatedb_uniffi_fn_method_writebatch_delete",
    "uniffi_slatedb_uniffi_fn_method_dbiterator_next_batch",
)
_SAMPLES: Final = (b"k", b"", b"\0\xff" * 3, bytes(range(256)) * 5)
_LENGTH: Final = Struct(">i")
_SEQ_AND_TIME: Final = 16
_EXPIRY: Final = 8
_NO, _YES = b"\0", b"\1"

# What is private has no types that a checker could read.
_b: Final[Any] = _binding
_prepared: Final[dict[int, tuple[ScanOptions, bytes]]] = {}


def prepare(options: ScanOptions) -> ScanOptions:
    """Return the options, which nobody changes from now on, written already as the engine reads them."""
    if can_be_fast():
        lowered = _b._UniffiFfiConverterTypeScanOptions.lower(options)
        _prepared[id(options)] = options, _taken(lowered)
        _speed_up()
    return options


def batch_of(changes: Mapping[bytes, bytes | None]) -> WriteBatch:
    """Return a batch that puts every key with a value and deletes every key with None."""
    batch = WriteBatch()
    if can_be_fast():
        _fill(batch, changes)
        return batch
    for key, value in changes.items():
        if value is None:
            batch.delete(key)
        else:
            batch.put(key, value)
    return batch


async def next_pairs(rows: DbIterator, limit: int) -> list[tuple[bytes, bytes]]:
    """Return up to `limit` further keys with their values; fewer only at the end."""
    if not can_be_fast():
        return [(row.key, row.value) for row in await rows.next_batch(limit)]
    library = _b._UniffiLib
    found: list[tuple[bytes, bytes]] = await _b._uniffi_rust_call_async(
        library.uniffi_slatedb_uniffi_fn_method_dbiterator_next_batch(_clone(rows), limit),
        library.ffi_slatedb_uniffi_rust_future_poll_rust_buffer,
        library.ffi_slatedb_uniffi_rust_future_complete_rust_buffer,
        library.ffi_slatedb_uniffi_rust_future_free_rust_buffer,
        _pairs,
        _b._UniffiFfiConverterTypeError,
    )
    return found


@cache
def can_be_fast() -> bool:
    """Whether the binding is one that this file knows."""
    library = getattr(_b, "_UniffiLib", None)
    if not (all(hasattr(_b, name) for name in _NAMES) and all(hasattr(library, name) for name in _CALLS)):
        return False
    try:
        return all(map(_comes_back, _SAMPLES)) and _ranges_come_back() and _pairs_come_back()
    except Exception:  # noqa: BLE001 - whatever it is, this binding is not the one that this file knows
        return False


def _comes_back(sample: bytes) -> bool:
    taken: bytes = _b._UniffiFfiConverterBytes.lift(_lower_bytes(sample))
    return taken == sample


def _ranges_come_back() -> bool:
    ranges = [
        KeyRange(start=start, start_inclusive=bool(start), end=end, end_inclusive=not start)
        for start in (None, *_SAMPLES)
        for end in (None, *_SAMPLES)
    ]
    return all(_b._UniffiFfiConverterTypeKeyRange.lift(_lower_range(keys)) == keys for keys in ranges)


def _pairs_come_back() -> bool:
    rows = [
        _b.KeyValue(key=sample, value=sample * 2, seq=1, create_ts=-2, expire_ts=None if at % 2 else at)
        for at, sample in enumerate(_SAMPLES)
    ]
    lowered = _b._UniffiFfiConverterSequenceTypeKeyValue.lower(rows)
    return _pairs(lowered) == [(sample, sample * 2) for sample in _SAMPLES]


@cache
def _speed_up() -> None:
    """Let the binding write keys and ranges, and options that were prepared, as this file does."""
    slow: Callable[[ScanOptions], Any] = _b._UniffiFfiConverterTypeScanOptions.lower

    def lower_options(options: ScanOptions) -> Any:
        ready = _prepared.get(id(options))
        return slow(options) if ready is None else _lower(ready[1])

    _b._UniffiFfiConverterTypeScanOptions.lower = staticmethod(lower_options)
    _b._UniffiFfiConverterTypeKeyRange.lower = staticmethod(_lower_range)
    _b._UniffiFfiConverterBytes.lower = staticmethod(_lower_bytes)


def _fill(batch: WriteBatch, changes: Mapping[bytes, bytes | None]) -> None:
    status = _b._UniffiRustCallStatus.default()
    reference = ctypes.byref(status)
    put: Callable[..., None] = _b._UniffiLib.uniffi_slatedb_uniffi_fn_method_writebatch_put
    delete: Callable[..., None] = _b._UniffiLib.uniffi_slatedb_uniffi_fn_method_writebatch_delete
    for key, value in changes.items():
        if value is None:
            delete(_clone(batch), _lower_bytes(key), reference)
        else:
            put(_clone(batch), _lower_bytes(key), _lower_bytes(value), reference)
        if status.code:
            _b._uniffi_check_call_status(_b._UniffiFfiConverterTypeError, status)


def _clone(thing: Any) -> Any:
    return thing._uniffi_clone_handle()


def _lower_range(keys: KeyRange) -> Any:
    first, last = (_YES if bound else _NO for bound in (keys.start_inclusive, keys.end_inclusive))
    return _lower(_perhaps(keys.start) + first + _perhaps(keys.end) + last)


def _perhaps(value: bytes | None) -> bytes:
    return _NO if value is None else _YES + _LENGTH.pack(len(value)) + value


def _lower_bytes(value: bytes) -> Any:
    return _lower(_LENGTH.pack(len(value)) + value)


def _lower(data: bytes) -> Any:
    """Return a buffer of the engine's, which frees it, that holds `data`."""
    size = len(data)
    status = _b._UniffiRustCallStatus.default()
    buffer = _b._UniffiLib.ffi_slatedb_uniffi_rustbuffer_alloc(size, ctypes.byref(status))
    if status.code:
        _b._uniffi_check_call_status(None, status)
    ctypes.memmove(buffer.data, data, size)
    buffer.len = size
    return buffer


def _taken(buffer: Any) -> bytes:
    """Return what a buffer of the engine's holds, and free it."""
    try:
        return ctypes.string_at(buffer.data, buffer.len)
    finally:
        buffer.free()


def _pairs(buffer: Any) -> list[tuple[bytes, bytes]]:
    """Read rows: how many, and of each key, value, sequence number, time and an expiry that may be missing."""
    data = _taken(buffer)
    length = _LENGTH.unpack_from
    at = _LENGTH.size
    found: list[tuple[bytes, bytes]] = []
    for _ in range(length(data)[0]):
        key = at + 4
        key_end = key + length(data, at)[0]
        value = key_end + 4
        value_end = value + length(data, key_end)[0]
        found.append((data[key:key_end], data[value:value_end]))
        at = value_end + _SEQ_AND_TIME
        at += 1 + _EXPIRY if data[at] else 1
    if at != len(data):
        message = f"rows of the engine end at {at} of {len(data)} bytes"
        raise ValueError(message)
    return found
