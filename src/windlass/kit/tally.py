"""What happened on a queue, in all and in each minute."""

from datetime import UTC, datetime, timedelta

MINUTE = timedelta(minutes=1)
NEVER = datetime.max.replace(tzinfo=UTC)


class Tally:
    """Counts in rows: `totals` is one, `minutes` has one for each minute and kind in which something happened."""

    __slots__ = ("_minute", "_minute_over", "_rows", "minutes", "totals")

    def __init__(self) -> None:
        self.totals = [0] * 6
        self.minutes: dict[tuple[datetime, str], list[int]] = {}
        self._minute = self._minute_over = NEVER
        self._rows: dict[str | None, list[int]] = {}

    def count(self, what: int, kind: str | None, now: datetime) -> None:
        """Count `what` in the totals and in the minute of `now`."""
        self.totals[what] += 1
        self.minute(kind, now)[what] += 1

    def minute(self, kind: str | None, now: datetime) -> list[int]:
        """Return the row of a kind for the minute of `now`."""
        if not self._minute <= now < self._minute_over:
            self._begin_minute(now)
        row = self._rows.get(kind)
        if row is None:
            row = self._rows[kind] = self.minutes.setdefault((self._minute, kind or ""), [0] * 6)
        return row

    def forget(self, until: datetime) -> None:
        """Forget the minutes up to `until`."""
        self.minutes = {key: row for key, row in self.minutes.items() if key[0] > until}

    def _begin_minute(self, now: datetime) -> None:
        self._minute = now.replace(second=0, microsecond=0)
        self._minute_over = self._minute + MINUTE
        self._rows = {}
