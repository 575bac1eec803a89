"""Queues that do not answer must not stand in the way of those that do."""

from collections.abc import Generator
from contextlib import contextmanager

from windlass.core.errors import StoreUnavailable


class Failures:
    """What went wrong in a round through all queues."""

    def __init__(self) -> None:
        """Know of none."""
        self._first: StoreUnavailable | None = None

    @contextmanager
    def noted(self) -> Generator[None]:
        """Go on after a queue that is not available."""
        try:
            yield
        except StoreUnavailable as error:
            self._first = self._first or error

    def throw_unless(self, done: bool) -> None:  # noqa: FBT001 - it reads well
        """Raise the first one, unless there is something else to tell: the next round shows it again."""
        if self._first is not None and not done:
            raise self._first
