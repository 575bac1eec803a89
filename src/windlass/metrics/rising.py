"""Numbers that are read from a store and never fall in the process that tells them."""

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

S = TypeVar("S", bound=Hashable)
K = TypeVar("K", bound=Hashable)


class Added(Generic[S, K]):
    """The sums of counts that a store keeps for some time, such as those of each minute, by series.

    A count that is read again is added as far as it has grown. What was there at the first look is not added: the sums
    begin with the process, as those of every counter do.
    """

    def __init__(self) -> None:
        self._seen: dict[K, int] | None = None
        self.sums: dict[S, int] = {}

    def look(self, counts: Mapping[K, tuple[S, int]]) -> None:
        """Take what a look found: for each count its series and its number. What it leaves out never comes again."""
        before = self._seen
        for key, (series, count) in counts.items():
            new = 0 if before is None else count - before.get(key, 0)
            self.sums[series] = self.sums.get(series, 0) + max(0, new)
        self._seen = {key: count for key, (_, count) in counts.items()}


class Highest(Generic[S]):
    """The highest that each number ever was."""

    def __init__(self) -> None:
        self.values: dict[S, int] = {}

    def look(self, values: Mapping[S, int]) -> None:
        """Take what a look found."""
        for series, value in values.items():
            self.values[series] = max(value, self.values.get(series, 0))
