"""Clocks that are set: by a person, by a time server, or by the end of a machine's sleep."""

from collections.abc import Callable
from datetime import datetime, timedelta

from windlass.core.clock import Timer
from windlass.core.duration import ZERO
from windlass.testing.clock import FakeClock


class SteppedClock(FakeClock):
    """A clock whose wall time can be set: whoever sleeps by it, and `monotonic`, do not notice."""

    def __init__(self) -> None:
        """Stand still."""
        super().__init__()
        self._by = ZERO

    def now(self) -> datetime:
        """Return the wall time in UTC."""
        return super().now() + self._by

    def step(self, by: timedelta) -> None:
        """Set the wall time on, or back."""
        self._by += by


class WrongClock:
    """The clock of a machine that is wrong about the time: it goes as fast as another one and shows another time."""

    goes_by_itself = False

    def __init__(self, clock: FakeClock, by: timedelta) -> None:
        """Be ahead of `clock`, or behind it."""
        self._clock = clock
        self._by = by
        self._stands_at: datetime | None = None

    def now(self) -> datetime:
        """Return what it takes for the wall time."""
        return self._stands_at or self._clock.now() + self._by

    def monotonic(self) -> float:
        """Return the seconds since the other clock was made."""
        return self._clock.monotonic()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` when the other clock was moved by `delay` seconds."""
        return self._clock.call_later(delay, callback)

    async def sleep(self, delay: float) -> None:
        """Return when the other clock was moved by `delay` seconds."""
        await self._clock.sleep(delay)

    def step(self, by: timedelta) -> None:
        """Set the wall time on, or back."""
        self._by += by

    def freeze(self) -> None:
        """Show this wall time for ever."""
        self._stands_at = self.now()
