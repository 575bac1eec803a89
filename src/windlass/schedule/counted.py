"""Which of the schedules that code declares count for a scheduler."""

from collections.abc import Collection
from datetime import datetime
from typing import Protocol


class Counted(Protocol):
    """The declared schedules that a scheduler fires; whatever was put at run time it fires in any case."""

    @property
    def ids(self) -> Collection[str]:
        """Those that count, as the last look has shown."""
        ...

    @property
    def again_at(self) -> float | None:
        """When to look again at the latest, by the clock that never steps back; None when there is no need to."""
        ...

    def since(self, schedule_id: str) -> datetime | None:
        """Return since when one has counted, by the store's clock; None for as long as the scheduler has watched."""
        ...

    async def look(self) -> None:
        """Find out which count now."""
        ...

    async def uphold(self) -> None:
        """See to it that those that count are as they are declared."""
        ...
