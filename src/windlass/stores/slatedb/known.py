"""What was read of the database: asking for anything else is a mistake of ours, and not an absence."""

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class Known(MutableMapping[K, V]):
    """Values by key; `absent` are the keys that were looked for and are not there."""

    def __init__(self) -> None:
        self._values: dict[K, V] = {}
        self.absent: set[K] = set()

    @overload
    def get(self, key: K, default: None = None, /) -> V | None: ...

    @overload
    def get(self, key: K, default: V, /) -> V: ...

    @overload
    def get(self, key: K, default: T, /) -> V | T: ...

    def get(self, key: K, default: Any = None, /) -> Any:
        """Return a value that was read, or the default for one that is not there."""
        found = self._values.get(key)
        if found is not None:
            return found
        if key not in self.absent:
            raise _NotReadError(key)
        return default

    def __getitem__(self, key: K) -> V:
        if key in self._values or key in self.absent:
            return self._values[key]
        raise _NotReadError(key)

    def __contains__(self, key: object) -> bool:
        if key in self._values or key in self.absent:
            return key in self._values
        raise _NotReadError(key)

    def __setitem__(self, key: K, value: V) -> None:
        self._values[key] = value
        self.absent.discard(key)

    def __delitem__(self, key: K) -> None:
        """Forget what is known of a key; whoever deletes it from the database adds it to `absent`."""
        del self._values[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def has_read(self, key: K) -> bool:
        """Whether it is known if `key` is there."""
        return key in self._values or key in self.absent


class _NotReadError(Exception):
    """A key that nobody has read; it is no `KeyError`, which stands for an absence."""

    def __init__(self, key: object) -> None:
        super().__init__(f"{key!r} was not read")


class Written(MutableMapping[str, V]):
    """Values that are all in memory; every change is told to `write`, with None for a value that goes."""

    def __init__(self, values: dict[str, V], write: Callable[[str, V | None], None]) -> None:
        self._values = values
        self._write = write

    def __getitem__(self, key: str) -> V:
        return self._values[key]

    def __setitem__(self, key: str, value: V) -> None:
        self._values[key] = value
        self._write(key, value)

    def __delitem__(self, key: str) -> None:
        del self._values[key]
        self._write(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
