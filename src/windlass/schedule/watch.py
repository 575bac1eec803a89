"""Since when a server has had an eye on the schedules."""

from datetime import datetime, timedelta


class Watch:
    """Since when somebody has looked without a break, by the store's clock.

    What came due before passed in down time: nobody was there, or the machine slept, or the store was away.
    """

    def __init__(self, longest: timedelta) -> None:
        """Take it for a break when two looks lie further apart than `longest`."""
        self._longest = longest
        self._last: datetime | None = None
        self._since: datetime | None = None

    def look(self, now: datetime) -> datetime:
        """Note a look at the store's time `now`, and return since when there was no break."""
        last, since = self._last, self._since
        self._last = now
        if last is None or since is None or now - last > self._longest:
            self._since = now
        else:
            # a clock that was set back has seen all that is to come, too
            self._since = min(since, now)
        return self._since

    def end(self) -> None:
        """Look no more: the next look is the first again."""
        self._last = self._since = None
