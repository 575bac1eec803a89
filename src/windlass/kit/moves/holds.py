"""Who holds which unique key."""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from datetime import datetime

from windlass.core.duration import later
from windlass.core.errors import UniqueConflict
from windlass.core.ids import JobId
from windlass.core.moving import HeldKey
from windlass.core.unique import Hold
from windlass.kit.moves.record import Record
from windlass.kit.unique_keys import check_conflict


@dataclass(slots=True)
class Holder:
    """The job that holds a key; `ends_at` is set when time alone frees it."""

    job_id: JobId
    digest: bytes
    ends_at: datetime | None = None


def holder_for(hold: Hold, job_id: JobId, now: datetime) -> Holder:
    """Return the holder that a job becomes by taking `hold` now."""
    ends_at = None if hold.hold_for is None else later(now, hold.hold_for)
    return Holder(job_id, hold.digest, ends_at)


def live(holder: Holder | None, now: datetime) -> Holder | None:
    """Return the holder unless its time is over."""
    return None if holder is None or (holder.ends_at is not None and holder.ends_at <= now) else holder


def refuse(hold: Hold, holder: Holder, *, waiting: bool) -> None:
    """Raise `UniqueConflict` if `hold` does not put up with the holder, which is `waiting` or not."""
    check_conflict(hold, holder)
    if hold.on_conflict == "replace" and not waiting:
        raise UniqueConflict(hold.key, holder.job_id, "claimed")


class Holds:
    """All keys that are held, by the name that tells them apart over scopes and tenants."""

    def __init__(self, holders: MutableMapping[str, Holder]) -> None:
        self._holders = holders

    def holder(self, name: str, now: datetime) -> Holder | None:
        """Return who holds a key now."""
        return live(self._holders.get(name), now)

    def key_of(self, record: Record, now: datetime) -> HeldKey | None:
        """Return the key that a job holds now, as it goes to another store."""
        hold = record.hold
        holder = None if hold is None else self.holder(hold.name, now)
        if hold is None or holder is None or holder.job_id != record.id:
            return None
        return HeldKey(hold.name, holder.job_id, hold.until, holder.ends_at, holder.digest)

    def take_over(self, key: HeldKey, now: datetime) -> bool:
        """Let a key of another store be held here as it was there; False when it is held already."""
        if self.holder(key.name, now) is not None:
            return False
        self._holders[key.name] = Holder(key.job_id, key.digest, key.expires_at)
        return True

    def timed(self, now: datetime) -> Iterator[HeldKey]:
        """Give the keys that only time frees and whose time is not over."""
        for name, holder in self._holders.items():
            if holder.ends_at is not None and holder.ends_at > now:
                yield HeldKey(name, holder.job_id, "time", holder.ends_at, holder.digest)

    def let_go(self, name: str) -> None:
        """Free a key, whoever holds it."""
        if name in self._holders:
            del self._holders[name]

    def take(self, hold: Hold, job_id: JobId, now: datetime) -> None:
        """Let a job hold a key that is free."""
        self._holders[hold.name] = holder_for(hold, job_id, now)

    def rewrite(self, name: str, holder: Holder, digest: bytes) -> None:
        """Let the holder of a key stand for another payload."""
        self._holders[name] = Holder(holder.job_id, digest, holder.ends_at)

    def free(self, record: Record) -> None:
        """Free the key that a job holds, unless time alone frees it."""
        if record.hold is not None and self.held_by(record) and record.hold.until != "time":
            del self._holders[record.hold.name]

    def held_by(self, record: Record) -> bool:
        """Whether a job is the holder of its key."""
        holder = self._holders.get(record.hold.name) if record.hold else None
        return holder is not None and holder.job_id == record.id

    def free_at_claim(self, record: Record) -> None:
        """Free a key that the first claim frees; the job shows it no more, but could take it back."""
        if record.hold is not None and record.hold.until == "claimed":
            self.free(record)
            record.unique_key = None

    def give_up(self, record: Record) -> None:
        """Forget a key that was freed by the claim: the job will never take it back."""
        if record.unique_key is None:
            record.hold = None

    def take_back(self, record: Record, now: datetime) -> None:
        """Let a job that was released before it started hold its key again, if that is free."""
        if self.may_take_back(record, now) and record.hold is not None:
            self.take(record.hold, record.id, now)
            record.unique_key = record.hold.key
        self.give_up(record)

    def may_take_back(self, record: Record, now: datetime) -> bool:
        """Whether a release of a job that never started would take its key."""
        hold = record.hold
        return hold is not None and record.unique_key is None and self.holder(hold.name, now) is None

    def prune(self, now: datetime) -> None:
        """Forget the keys whose time is over."""
        for name in list(self._holders):
            self.prune_one(name, now)

    def prune_one(self, name: str, now: datetime) -> None:
        """Forget a key if its time is over."""
        holder = self._holders.get(name)
        if holder is not None and live(holder, now) is None:
            del self._holders[name]
