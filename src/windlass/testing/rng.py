"""Chance that repeats: the same seed gives the same ids, tokens and jitter."""

import random
import threading


class SeededRng:
    """Chance from a seed, for tests alone: whoever knows the seed knows every token."""

    def __init__(self, seed: int = 0) -> None:
        """Begin at `seed`."""
        self._random = random.Random(seed)  # noqa: S311 - that it can be foretold is the point
        self._guard = threading.Lock()

    def random(self) -> float:
        """Return a number from 0.0 up to, not including, 1.0."""
        with self._guard:
            return self._random.random()

    def token_bytes(self, count: int) -> bytes:
        """Return `count` bytes, the next ones of this seed."""
        with self._guard:
            return self._random.randbytes(count)
