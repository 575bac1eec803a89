"""What happened in the minute that runs, by queue and kind."""

from datetime import datetime
from typing import Final

from windlass.stores.slatedb import keys
from windlass.stores.slatedb.damaged import decoded
from windlass.stores.slatedb.records import counts, encode
from windlass.stores.slatedb.view import View

_COUNTS: Final = 6
_MOST: Final = 100_000


class Minutes:
    """The rows of one minute; a clock that steps back counts on in the minute that it came from."""

    def __init__(self, minute: datetime) -> None:
        self._minute = minute
        self._rows: dict[tuple[str, str | None], list[int]] = {}
        self._changed: dict[bytes, list[int]] = {}

    @classmethod
    async def read(cls, view: View, now: datetime) -> "Minutes":
        """Go on where the last owner has stopped."""
        minute = _minute_of(now)
        rows = await view.scan(keys.minute(minute), keys.after(keys.MINUTES), limit=_MOST)
        if rows:
            minute = max(minute, keys.minute_of(rows[-1][0])[0])
        minutes = cls(minute)
        for key, value in rows:
            at, queue, kind = keys.minute_of(key)
            found = decoded(counts, value, f"what happened on {queue!r} in a minute", "it is counted anew")
            if at == minute and found is not None:
                minutes._rows[queue, kind or None] = found
        return minutes

    def row(self, queue: str, kind: str | None, now: datetime) -> list[int]:
        """Return the row of a queue and kind, which will be written."""
        minute = _minute_of(now)
        if minute > self._minute:
            self._minute = minute
            self._rows = {}
        row = self._rows.get((queue, kind))
        if row is None:
            row = self._rows[queue, kind] = [0] * _COUNTS
        self._changed[keys.minute(self._minute, queue, kind)] = row
        return row

    def write(self, changes: dict[bytes, bytes | None]) -> None:
        """Add what was counted to the changes."""
        for key, row in self._changed.items():
            changes[key] = encode(row)
        self._changed = {}


def _minute_of(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)
