"""The caller's own keys and values."""

from bisect import bisect_left, insort
from collections.abc import Mapping

from windlass.core.requests import KvAny, KvWrite


class KeySpace:
    """Values by key, and the keys in the order of their bytes."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}
        self._keys: list[bytes] = []

    def get(self, key: bytes) -> bytes | None:
        """Return a value."""
        return self._values.get(key)

    def put(self, values: Mapping[bytes, bytes | None]) -> None:
        """Write values; None deletes."""
        for key, value in values.items():
            if value is None:
                self._delete(key)
            else:
                self._put(key, value)

    def write(self, write: KvWrite) -> bool:
        """Write one value if its condition holds; return whether it did."""
        if write.expected is not KvAny.ANY and self._values.get(write.key) != write.expected:
            return False
        self.put({write.key: write.value})
        return True

    def scan(self, prefix: bytes, after: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` pairs whose key begins with `prefix`, past `after`, in order."""
        # the key that follows `after` in the order of bytes is `after` with a zero behind it
        start = bisect_left(self._keys, prefix if after is None else max(prefix, after + b"\0"))
        found: list[tuple[bytes, bytes]] = []
        for key in self._keys[start : start + limit]:
            if not key.startswith(prefix):
                break
            found.append((key, self._values[key]))
        return found

    def _put(self, key: bytes, value: bytes) -> None:
        if key not in self._values:
            insort(self._keys, key)
        self._values[key] = value

    def _delete(self, key: bytes) -> None:
        if self._values.pop(key, None) is not None:
            del self._keys[bisect_left(self._keys, key)]
