"""Calls on their way to the dispatcher, and answers on their way back."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable
from datetime import datetime
from typing import Any, Generic, TypeAlias, TypeVar

from windlass.core.errors import Fenced, OutcomeUnknown, StoreUnavailable, WindlassError
from windlass.core.ids import JobId
from windlass.stores.slatedb.table import Table
from windlass.stores.slatedb.view import View

A = TypeVar("A")
R = TypeVar("R")

Look: TypeAlias = Callable[[View, datetime], Awaitable[R]]
"""A look at the database as it is at one moment, and at the time of that moment."""


class Move(Generic[A, R]):
    """A kind of call: what it does, its rank among the calls that are served together, and the jobs it is about."""

    __slots__ = ("doubt", "ids", "rank", "run", "weigh")

    def __init__(
        self,
        rank: int,
        run: Callable[[Table, A], Awaitable[R]],
        ids: Callable[[A], Iterable[JobId]] | None = None,
        doubt: Callable[[A], JobId | None] | None = None,
        weigh: Callable[[A], int] | None = None,
    ) -> None:
        """With `ids` the jobs of all calls are read together, and `weigh` tells the bytes that a large call brings.

        `doubt` names the job that `OutcomeUnknown` speaks of, where the caller can repeat the call.
        """
        self.rank = rank
        self.run = run
        self.ids = ids
        self.doubt = doubt
        self.weigh = weigh


class Call:
    """One call that waits: a move with its argument, or a look without a move. Without a future nobody waits for it."""

    __slots__ = ("argument", "future", "loop", "move", "since", "tries")

    def __init__(
        self,
        move: Move[Any, Any] | None,
        argument: Any,  # noqa: ANN401 - what the move takes
        future: "asyncio.Future[Any] | None",
        *,
        tries: int = 0,
    ) -> None:
        """Wait since now; made in vain `tries` times before."""
        self.move = move
        self.argument = argument
        self.future = future
        self.loop = None if future is None else future.get_loop()
        self.since = time.monotonic()
        self.tries = tries

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.future is not None and self.future.cancelled()

    def was_in_vain(self, result: Any) -> bool:  # noqa: ANN401 - as of any call
        """Whether nobody waits for it, and it was not done this time although it can be later."""
        return self.future is None and isinstance(result, StoreUnavailable) and result.retryable

    def in_doubt(self, error: WindlassError) -> WindlassError:
        """Return the error of a caller whose call was made, and may become durable yet."""
        doubt = None if self.move is None or self.move.doubt is None else self.move.doubt(self.argument)
        if doubt is None or isinstance(error, Fenced):
            return error
        unknown = OutcomeUnknown(doubt)
        unknown.__cause__ = error
        return unknown

    @property
    def weight(self) -> int:
        """The bytes that it brings, about; none for one that brings but a few."""
        return 0 if self.move is None or self.move.weigh is None else self.move.weigh(self.argument)

    @property
    def rank(self) -> int:
        """The place of its kind among the calls that are served together."""
        return LAST if self.move is None else self.move.rank


LAST = 1_000

Answer: TypeAlias = tuple[Call, Any]


def _nothing(call: Call, result: Any) -> None:  # noqa: ANN401 - as of any call
    """Do nothing for a caller who has gone."""


def answer(answers: Collection[Answer], given_up: Callable[[Call, Any], None] = _nothing) -> None:
    """Give each caller its answer, in the event loop that it waits in; `given_up` is told of what is for nobody."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[Answer]] = defaultdict(list)
    for one in answers:
        call, result = one
        if call.cancelled or call.was_in_vain(result):
            given_up(call, result)
        elif call.loop is not None:
            by_loop[call.loop].append(one)
    for loop, those in by_loop.items():
        try:
            loop.call_soon_threadsafe(_deliver, those, given_up)
        except RuntimeError:
            # that loop was closed meanwhile, with whoever waited in it
            for call, result in those:
                given_up(call, result)


def _deliver(answers: list[Answer], given_up: Callable[[Call, Any], None]) -> None:
    for call, result in answers:
        future = call.future
        if future is None or future.done():
            given_up(call, result)
        elif isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
