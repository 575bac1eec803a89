"""Schedules that are due and are left alone for a while."""

from collections.abc import Collection
from typing import NamedTuple

from windlass.core.schedule import Schedule


class _Left(NamedTuple):
    revision: int
    until: float
    failures: int


class Aside:
    """Which schedules are not to be touched until when; a change of a schedule ends it."""

    def __init__(self) -> None:
        """Begin with none."""
        self._left: dict[str, _Left] = {}

    def __len__(self) -> int:
        return len(self._left)

    def leave(self, schedule: Schedule, until: float, *, failures: int = 0) -> None:
        """Leave `schedule`, as it is now, alone until then, after so many `failures` in a row."""
        self._left[schedule.id] = _Left(schedule.revision, until, failures)

    def until(self, schedule: Schedule) -> float | None:
        """Return until when `schedule` is left alone, and None when it never was since it was changed."""
        left = self._left.get(schedule.id)
        return left.until if left is not None and left.revision == schedule.revision else None

    def failures(self, schedule: Schedule) -> int:
        """Return how often in a row `schedule`, as it is now, has failed."""
        left = self._left.get(schedule.id)
        return left.failures if left is not None and left.revision == schedule.revision else 0

    def keep(self, ids: Collection[str]) -> None:
        """Forget all but those with these ids."""
        for gone in self._left.keys() - set(ids):
            del self._left[gone]
