"""Queues that do not answer must not stand in the way of those that do."""

import asyncio
from collections.abc import Awaitable, Generator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from windlass.core.errors import StoreUnavailable

T = TypeVar("T")


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

    async def gather(self, calls: Sequence[Awaitable[T]]) -> list[T]:
        """Return, in their order, the answers to those calls whose queue is available."""
        answers: list[T] = []
        for answer in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(answer, BaseException):
                with self.noted():
                    raise answer
            else:
                answers.append(answer)
        return answers

    def throw_unless(self, done: bool) -> None:  # noqa: FBT001 - it reads well
        """Raise the first one, unless there is something else to tell: the next round shows it again."""
        if self._first is not None and not done:
            raise self._first
