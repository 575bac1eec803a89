"""Who holds which unique key, of those that were read."""

from collections.abc import Iterator, MutableMapping

from windlass.kit.moves.holds import Holder
from windlass.stores.slatedb import keys
from windlass.stores.slatedb.damaged import free_if_damaged
from windlass.stores.slatedb.known import Known
from windlass.stores.slatedb.records import HolderRecord, encode, holder_record


class Holders(MutableMapping[str, Holder]):
    """Holders by the name of their key; every change goes into `changes`."""

    def __init__(self, changes: dict[bytes, bytes | None]) -> None:
        self._changes = changes
        self._known: Known[str, Holder] = Known()

    def has_read(self, name: str) -> bool:
        """Whether it is known who holds this key."""
        return self._known.has_read(name)

    def read(self, name: str, value: bytes | None) -> None:
        """Know who holds a key."""
        found = None if value is None else free_if_damaged(holder_record, value, f"unique key {name!r}")
        if found is None:
            self._known.absent.add(name)
        else:
            self._known[name] = found.holder()

    def forget(self) -> None:
        """Know nothing; what was changed has been written."""
        self._known = Known()

    def __getitem__(self, name: str) -> Holder:
        return self._known[name]

    def __setitem__(self, name: str, holder: Holder) -> None:
        self._forget_time(name)
        self._known[name] = holder
        self._changes[keys.hold(name)] = encode(HolderRecord(holder.job_id, holder.digest, holder.ends_at))
        if holder.ends_at is not None:
            self._changes[keys.hold_time(holder.ends_at, name)] = b""

    def __delitem__(self, name: str) -> None:
        self._forget_time(name)
        del self._known[name]
        self._known.absent.add(name)
        self._changes[keys.hold(name)] = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def _forget_time(self, name: str) -> None:
        holder = self._known.get(name)
        if holder is not None and holder.ends_at is not None:
            self._changes[keys.hold_time(holder.ends_at, name)] = None
