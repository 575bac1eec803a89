"""The callers' own key space in the model, and their locks."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from windlass.core.duration import later
from windlass.core.requests import KvAny, KvWrite


@dataclass
class KvModel:
    """Every value by its key, and who has which lock until when."""

    values: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    locks: dict[str, tuple[str, datetime]] = field(default_factory=dict[str, tuple[str, datetime]])

    def copy(self) -> "KvModel":
        """Return another one that knows the same."""
        return replace(self, values=dict(self.values), locks=dict(self.locks))

    def write(self, write: KvWrite) -> bool:
        """Write if the condition holds."""
        if write.expected is not KvAny.ANY and self.values.get(write.key) != write.expected:
            return False
        self.put({write.key: write.value})
        return True

    def put(self, pairs: Mapping[bytes, bytes | None]) -> None:
        """Write values, and delete where there is none."""
        for key, value in pairs.items():
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = value

    def lock(self, name: str, holder: str, ttl: timedelta, now: datetime) -> bool:
        """Take or renew a lock."""
        if self._locked_by(name, now) not in {None, holder}:
            return False
        self.locks[name] = (holder, later(now, ttl))
        return True

    def unlock(self, name: str, holder: str, now: datetime) -> bool:
        """Let go of a lock."""
        if self._locked_by(name, now) != holder:
            return False
        del self.locks[name]
        return True

    def _locked_by(self, name: str, now: datetime) -> str | None:
        holder, ends_at = self.locks.get(name, (None, now))
        return holder if ends_at > now else None
