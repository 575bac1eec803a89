"""Chance for tests: one that repeats, and one that takes the middle."""

import os
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


class SteadyRng:
    """Chance that always takes the middle: a retry comes exactly when its policy says. Ids and tokens differ."""

    def random(self) -> float:
        """Return the middle."""
        return 0.5

    def token_bytes(self, count: int) -> bytes:
        """Return `count` bytes that nobody can guess."""
        return os.urandom(count)
