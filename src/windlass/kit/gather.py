"""What gathers while one batch is on its way goes out together."""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from windlass.core.errors import ClientClosed, OutcomeUnknown, StoreUnavailable
from windlass.kit.deadline import EARLY

A = TypeVar("A")
R = TypeVar("R")


class _Asked(NamedTuple, Generic[A, R]):
    argument: A
    answer: "asyncio.Future[R]"
    weight: int
    at: float


class Gather(Generic[A, R]):
    """Batches of many callers' calls, for one event loop; no timer, so that a single call waits for nobody.

    `perform` is given the arguments of a batch and returns an answer, or an error, for each in their order; what it
    raises goes to all of them. A batch weighs at most `most`, or is one call. At most `width` are on their way at once,
    and beside them one call that went by itself. After a batch that nothing was heard of, a call that has waited for
    `patience` seconds already is not sent any more; behind those that are answered it waits for its turn.
    """

    def __init__(
        self,
        perform: Callable[[list[A]], Awaitable[list[R | BaseException]]],
        *,
        most: int = 1_000,
        width: int = 1,
        weight: Callable[[A], int] | None = None,
        patience: float = math.inf,
    ) -> None:
        """Begin with nothing asked; without `weight` each call weighs 1."""
        self._perform = perform
        self._most = most
        self._width = width
        self._weight = weight
        self._patience = patience
        self._in_vain_until = -math.inf
        """When the last batch ended of which nothing was heard, unless one was heard of since."""
        self._waiting: deque[_Asked[A, R]] = deque()
        self._carriers: set[asyncio.Task[None]] = set()
        self._carrying = 0
        self._coming = False
        self._alone = False
        self._closed = False
        self._last: asyncio.Future[None] | None = None

    async def ask(self, argument: A) -> R:
        """Return the answer to `argument`, which goes at once and by itself when no other is on its way.

        Then it needs no task, and ends when its caller is cancelled. Nobody waits behind it.
        """
        if self._alone or self._carrying or self._closed:
            return await self.submit(argument)
        self._alone = True
        try:
            [result] = await self._perform([argument])
        finally:
            self._alone = False
            if self._last is not None:
                self._last.set_result(None)
        if not isinstance(result, BaseException):
            return result
        try:
            raise result
        finally:
            # its traceback has this frame, and with it what was asked
            del result

    def submit(self, argument: A) -> "asyncio.Future[R]":
        """Let `argument` go out with the next batch; cancelling the answer takes it back only while it has not left."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[R] = loop.create_future()
        if self._closed:
            answer.set_exception(ClientClosed())
            return answer
        weight = 1 if self._weight is None else self._weight(argument)
        self._waiting.append(_Asked(argument, answer, weight, loop.time()))
        # one that was started but has taken nothing yet will take this along
        if not self._coming and self._carrying < self._width:
            self._coming = True
            self._carrying += 1
            carrier = loop.create_task(self._carry(), name="windlass gather")
            self._carriers.add(carrier)
            carrier.add_done_callback(self._carriers.discard)
        return answer

    async def close(self) -> None:
        """Finish what was accepted, and take nothing more."""
        self._closed = True
        while self._carriers:
            await asyncio.wait(self._carriers)
        if self._alone:
            self._last = self._last or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._last)

    async def _carry(self) -> None:
        self._coming = False
        try:
            while batch := self._take():
                await self._serve(batch)
                # whoever was answered may ask again at once, and is taken along without another task
                await asyncio.sleep(0)
        finally:
            # at once: somebody may ask before the loop knows that this task is done
            self._carrying -= 1

    def _take(self) -> "list[_Asked[A, R]]":
        batch: list[_Asked[A, R]] = []
        weight = 0
        too_late = self._too_late()
        while self._waiting and (not batch or weight + self._waiting[0].weight <= self._most):
            asked = self._waiting.popleft()
            # a caller who has gone is left out
            if asked.answer.done():
                continue
            if asked.at < too_late:
                asked.answer.set_exception(_not_sent())
                continue
            batch.append(asked)
            weight += asked.weight
        return batch

    def _too_late(self) -> float:
        # the batch before may have met its deadline a moment early, and this one would only meet the next
        waited_enough = asyncio.get_running_loop().time() - self._patience + EARLY
        # whoever came when it had ended has not waited behind it
        return min(self._in_vain_until, waited_enough)

    async def _serve(self, batch: "list[_Asked[A, R]]") -> None:
        try:
            results = await self._perform([asked.argument for asked in batch])
            if len(results) != len(batch):
                message = f"{len(batch)} calls were given {len(results)} answers"
                raise RuntimeError(message)  # noqa: TRY301 - it goes the way of all errors, to the callers
        except Exception as error:  # noqa: BLE001 - every caller is told
            results = [error] * len(batch)
        except BaseException:
            for asked in (*batch, *self._waiting):
                asked.answer.cancel()
            raise
        self._in_vain_until = asyncio.get_running_loop().time() if all(map(_is_unheard, results)) else -math.inf
        for asked, result in zip(batch, results, strict=True):
            _deliver(asked.answer, result)


def _is_unheard(result: object) -> bool:
    """Whether a store did not answer; one that refuses does, by an error of its own or by one that no repeat mends."""
    if isinstance(result, OutcomeUnknown):
        return True
    return type(result) is StoreUnavailable and result.retryable


def _not_sent() -> StoreUnavailable:
    return StoreUnavailable(
        "the store did not answer the calls before this one in time: it was not sent, and nothing was done",
        retryable=True,
    )


def _deliver(answer: "asyncio.Future[R]", result: R | BaseException) -> None:
    if answer.done():
        return
    if isinstance(result, BaseException):
        answer.set_exception(result)
    else:
        answer.set_result(result)
