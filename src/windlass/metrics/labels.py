"""Which queues and kinds are named in labels: only so many, whatever names there are."""

from typing import Final

from windlass.core.names import MAX_NAME
from windlass.engine.tally import OTHER, Pair

MOST_QUEUES: Final = 100
MOST_KINDS: Final = 200
MOST_PAIRS: Final = 500
RAW: Final = "(raw)"
"""The kind of jobs that have none: no kind can be called so."""


class Labels:
    """Names for queues, kinds and pairs of them; those that come when there are enough are all called `other`.

    A name that was given once stays: else a number would fall in one series when it goes on in another.
    """

    def __init__(self, *, queues: int = MOST_QUEUES, kinds: int = MOST_KINDS, pairs: int = MOST_PAIRS) -> None:
        """Tell apart this many at most, beside `other`."""
        self._queues = _Known(queues)
        self._kinds = _Known(kinds)
        self._pairs: set[Pair] = set()
        self._most_pairs = pairs

    def queue(self, name: str) -> str:
        """Return what a queue is called."""
        return self._queues.label(name)

    def pair(self, queue: str, kind: str) -> Pair:
        """Return what a queue and a kind are called together."""
        named = Pair(self._queues.label(queue), self._kinds.label(kind or RAW))
        if named not in self._pairs and len(self._pairs) >= self._most_pairs:
            return Pair(OTHER, OTHER)
        self._pairs.add(named)
        return named


class _Known:
    def __init__(self, most: int) -> None:
        self._most = most
        self._labels: set[str] = set()

    def label(self, name: str) -> str:
        # whatever a store says: a half of a surrogate pair cannot be written
        shown = name[:MAX_NAME].encode(errors="backslashreplace").decode()
        if shown in self._labels:
            return shown
        if len(self._labels) >= self._most:
            return OTHER
        self._labels.add(shown)
        return shown
