"""Writes on their way to a commit."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from windlass.core.errors import WindlassError
from windlass.core.topics import Topic
from windlass.stores.sqlite.transaction import Transaction

A = TypeVar("A")
R = TypeVar("R")

MOST_CALLS: Final = 2_000


class Move(Generic[A, R]):
    """A kind of write: takes the calls of many callers at once and answers each, with a value or an error."""

    __slots__ = ("rank", "run")

    def __init__(self, rank: int, run: Callable[[Transaction, list[A]], Sequence[R | WindlassError]]) -> None:
        """Run in the order of `rank` among the calls of one commit."""
        self.rank = rank
        self.run = run


class Call:
    """One caller's write, waiting for its commit."""

    __slots__ = ("argument", "future", "move", "since")

    def __init__(self, move: Move[Any, Any], argument: object, future: "asyncio.Future[Any]", since: float) -> None:
        """Wait since `since`, by the loop's clock."""
        self.move = move
        self.argument = argument
        self.future = future
        self.since = since

    @property
    def rank(self) -> int:
        """The place of its kind in a commit."""
        return self.move.rank


Waiting: TypeAlias = deque[Call]
"""Calls that no commit has taken yet; one thread adds at the end, any may take from the front."""


class Committed(NamedTuple):
    """Calls that were served, what each is answered, and the news they bring."""

    calls: list[Call]
    results: list[Any]
    topics: set[Topic]


def take_calls(waiting: Waiting) -> list[Call]:
    """Take what has gathered, in the order in which it is written; a caller who has gone is left out."""
    calls: list[Call] = []
    while waiting and len(calls) < MOST_CALLS:
        call = waiting.popleft()
        if not call.future.cancelled():
            calls.append(call)
    calls.sort(key=attrgetter("rank"))
    return calls
