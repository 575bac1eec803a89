"""What the commands and queries of this package need of a store whose records are of Python."""

from datetime import datetime
from typing import Protocol

from windlass.kit.house import House
from windlass.kit.keyspace import KeySpace
from windlass.kit.moves.scheduling import Schedules
from windlass.kit.moves.table import Table


class StoreState(Protocol):
    """All that a store keeps, and the time of the atomic step in progress."""

    @property
    def table(self) -> Table:
        """The jobs, in their queues."""
        ...

    @property
    def schedules(self) -> Schedules:
        """The schedules, which enqueue into the table."""
        ...

    @property
    def keyspace(self) -> KeySpace:
        """The caller's own values; `put_values` of the table writes here too."""
        ...

    @property
    def house(self) -> House:
        """What is kept beside jobs."""
        ...

    @property
    def now(self) -> datetime:
        """The time of the step."""
        ...
