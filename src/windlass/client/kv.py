"""The caller's own key space."""

from collections.abc import Awaitable, Callable, Sequence

from windlass.client.listing import Listing
from windlass.core.errors import InvalidValue
from windlass.core.names import MAX_KEY, check_key, check_value
from windlass.core.requests import KvWrite
from windlass.core.store import Store

Key = bytes | str


class KeyValue:
    """Small values that live beside the jobs: keys of 1 to 1,024 bytes (`str` as UTF-8), values of at most 256 KiB."""

    def __init__(self, reach: Callable[[], Awaitable[Store]]) -> None:
        """Work on the store that `reach` gives."""
        self._reach = reach

    async def get(self, key: Key) -> bytes | None:
        """Return the value of `key`, or None."""
        name = check_key(key)
        [value] = await (await self._reach()).kv_get((name,))
        return value

    async def put(self, key: Key, value: bytes) -> None:
        """Write `value`, whatever was there."""
        await self._write(KvWrite(check_key(key), check_value(value)))

    async def delete(self, key: Key) -> None:
        """Delete `key`; harmless when it is not there."""
        await self._write(KvWrite(check_key(key), None))

    async def compare_and_set(self, key: Key, expected: bytes | None, value: bytes) -> bool:
        """Write `value` if `key` holds `expected` (None: if it is not there); return whether it was written."""
        return await self._write(KvWrite(check_key(key), check_value(value), _expected(expected)))

    async def compare_and_delete(self, key: Key, expected: bytes) -> bool:
        """Delete `key` if it holds `expected`; return whether it was deleted."""
        return await self._write(KvWrite(check_key(key), None, check_value(expected)))

    def scan(
        self, prefix: Key = b"", *, after: Key | None = None, limit: int | None = None
    ) -> Listing[tuple[bytes, bytes]]:
        """List the pairs whose key begins with `prefix`, in the order of their bytes, past `after`; at most `limit`."""
        start = _prefix(prefix)
        past = None if after is None else check_key(after)

        async def read(last: bytes | None, size: int) -> Sequence[tuple[bytes, tuple[bytes, bytes]]]:
            store = await self._reach()
            return [(pair[0], pair) for pair in await store.kv_scan(start, after=last or past, limit=size)]

        return Listing(read, limit)

    async def _write(self, write: KvWrite) -> bool:
        return await (await self._reach()).kv_write(write)


def _expected(value: bytes | None) -> bytes | None:
    return None if value is None else check_value(value)


def _prefix(prefix: Key) -> bytes:
    if prefix in ("", b""):
        return b""
    if len(prefix) > MAX_KEY:
        message = f"a kv prefix has at most {MAX_KEY:,} bytes, not {len(prefix):,}"
        raise InvalidValue(message)
    return check_key(prefix)
