"""Runs moves on our own connections, and repeats them where that is right."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from windlass.core.clock import Clock
from windlass.core.errors import StoreCorrupt, StoreUnavailable, WindlassError
from windlass.core.failpoint import reach
from windlass.core.topics import Hub, Topic
from windlass.kit.doubt import in_doubt
from windlass.stores.postgres.connections import Connections
from windlass.stores.postgres.faults import Fault, is_already_done, kind, translate
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.session import Session
from windlass.stores.postgres.work import Changes, Many, Rows, Statement, Work

T = TypeVar("T")

_MOST_TRANSIENT: Final = 10
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 1.0
_NO_TIME: Final = 0.001


class Tells(Protocol):
    """Whoever tells other processes of news."""

    def tell(self, topics: set[Topic]) -> None:
        """Tell them soon; never raises."""
        ...


class Runner:
    """Runs the moves of one store; every call ends at its deadline, whatever the network does."""

    def __init__(
        self, connections: Connections, hub: Hub, notifier: Tells | None, clock: Clock, options: Options
    ) -> None:
        """Run on `connections`; after a commit ring `hub`, and let `notifier` tell other processes."""
        self._connections = connections
        self._hub = hub
        self._notifier = notifier
        self._clock = clock
        self._options = options

    def run(
        self,
        make: Callable[[Changes], Work[T]],
        *,
        whole: bool = True,
        again: Callable[[], Work[T]] | None = None,
        timeout: float | None = None,
        doubt: str | None = None,
    ) -> Coroutine[Any, Any, T]:
        """Run the move that `make` makes, in one transaction or (not `whole`) as its only statement; return its answer.

        After a deadlock, or when a connection was lost, the move is made and run anew until the deadline. That happens
        also when it is not known whether it was done, since the reply to its commit was lost. So it must be harmless
        when it is done twice, or end by writing a receipt: then the second one fails as a whole, and `again` reads what
        the first one was answered. If it is still not known at the deadline, `OutcomeUnknown(doubt)` is raised, or
        without a `doubt` a `StoreUnavailable` that is retryable.
        """
        return self._finish(_Call(make, _in_a_transaction if whole else _by_itself, again, doubt), timeout)

    def look(
        self, make: Callable[[Changes], Work[T]], *, whole: bool = False, timeout: float | None = None
    ) -> Coroutine[Any, Any, T]:
        """Run what only reads: each statement by itself, or (`whole`) all in a transaction that sees one moment."""
        return self._finish(_Call(make, _at_one_moment if whole else _one_by_one), timeout)

    async def _finish(self, call: "_Call[T]", timeout: float | None) -> T:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self._options.timeout if timeout is None else timeout)
        pause = _FIRST_PAUSE
        while True:
            try:
                answer = await self._try(call, deadline, timeout)
            except Exception as error:  # noqa: BLE001 - judged below, where nothing holds on to its frames
                met = error
            else:
                self._spread(call.news)
                return answer
            left = deadline - loop.time()
            if call.again is not None and is_already_done(met):
                self._spread(call.news)
                return await self._finish(_reading(call.again, call.doubt), max(left, _NO_TIME))
            if left < _NO_TIME or not call.is_worth_repeating(met):
                raise self._verdict(call, met)
            await asyncio.sleep(min(left, pause * random.random()))  # noqa: S311 - spreads load, nobody has to guess it
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _try(self, call: "_Call[T]", deadline: float, timeout: float | None) -> T:
        now = None if self._clock.goes_by_itself else self._clock.now()
        work = call.make(Changes(now, call.in_doubt, call.news))
        steps = _Steps(work, timeout if timeout and timeout > self._options.timeout else None)
        try:
            if steps.wanted is None:
                return steps.answer()
            connections = self._connections
            with connections.lent(connections.take_idle() or await connections.take(deadline)) as session:
                # by the session's own timer: one of asyncio's for each call would be a tenth of its processor time
                session.deadline.set(deadline)
                try:
                    return await call.way(session, steps)
                finally:
                    session.deadline.clear()
        except Exception as error:
            call.in_doubt |= steps.sent and kind(error) is Fault.LOST
            raise
        finally:
            work.close()

    def _spread(self, topics: set[Topic]) -> None:
        if topics:
            self._hub.ring(topics)
            if self._notifier is not None:
                self._notifier.tell(topics)

    def _verdict(self, call: "_Call[T]", error: Exception) -> WindlassError:
        fault = translate(error, self._options.where)
        # a receipt that is there but cannot be read leaves no doubt that the call was done
        if not call.in_doubt or not isinstance(fault, StoreUnavailable) or isinstance(error, StoreCorrupt):
            return fault
        self._spread(call.news)
        return in_doubt(fault, call.doubt)


class _Steps(Generic[T]):
    """A move under way: what it wants next, None at its end; `sent` once what it did may have been committed."""

    __slots__ = ("_answer", "_work", "sent", "timeout", "wanted")

    def __init__(self, work: Work[T], timeout: float | None) -> None:
        self._work = work
        self._answer: list[T] = []
        self.sent = False
        self.timeout = timeout
        self.wanted: Statement | Many | None = None
        self.go_on(None)

    def answer(self) -> T:
        return self._answer[0]

    def go_on(self, rows: Rows | None) -> None:
        """Let the move go on, with the rows that it wanted, to what it wants next."""
        try:
            self.wanted = next(self._work) if rows is None else self._work.send(rows)
        except StopIteration as end:
            self.wanted = None
            self._answer.append(end.value)


@dataclass(slots=True)
class _Call(Generic[T]):
    """What was asked for, and what became of it so far."""

    make: Callable[[Changes], Work[T]]
    way: Callable[[Session, _Steps[T]], Awaitable[T]]
    again: Callable[[], Work[T]] | None = None
    doubt: str | None = None
    in_doubt: bool = False
    news: set[Topic] = field(default_factory=set[Topic])
    transients: int = 0

    def is_worth_repeating(self, error: Exception) -> bool:
        fault = kind(error)
        self.transients += fault is Fault.TRANSIENT
        return fault is not Fault.FINAL and self.transients <= _MOST_TRANSIENT


async def _in_a_transaction(session: Session, steps: _Steps[T]) -> T:
    await session.begin(timeout=steps.timeout)
    await _all(session, steps)
    reach("postgres.before_commit")
    steps.sent = True
    await session.commit()
    reach("postgres.after_commit")
    return steps.answer()


async def _at_one_moment(session: Session, steps: _Steps[T]) -> T:
    await session.begin(look=True, timeout=steps.timeout)
    await _all(session, steps)
    await session.commit()
    return steps.answer()


async def _by_itself(session: Session, steps: _Steps[T]) -> T:
    only = steps.wanted
    assert only is not None  # noqa: S101 - for the type checker: no session is taken for a move without a statement
    steps.sent = True
    steps.go_on(await _rows(session, only))
    reach("postgres.after_commit")
    if steps.wanted is not None:
        message = f"a move that is not whole has a second statement: {steps.wanted}"
        raise RuntimeError(message)
    return steps.answer()


async def _one_by_one(session: Session, steps: _Steps[T]) -> T:
    while steps.wanted is not None:
        steps.go_on(await _rows(session, steps.wanted))
    return steps.answer()


async def _all(session: Session, steps: _Steps[T]) -> None:
    try:
        while steps.wanted is not None:
            steps.go_on(await _rows(session, steps.wanted))
    except Exception:
        # if not even that works, the session is of no use to anybody, and is cut off
        with contextlib.suppress(Exception):
            await session.roll_back()
        raise


def _rows(session: Session, wanted: Statement | Many) -> Coroutine[Any, Any, Rows]:
    """Run what a move wants."""
    if isinstance(wanted, Many):
        return session.many(wanted.name, wanted.parameters)
    return session.fetch(wanted.name, wanted.parameters)


def _reading(again: Callable[[], Work[T]], doubt: str | None) -> _Call[T]:
    """Return the reading of what was done before: it is told only when the replicas of a commit have it too."""

    def read(_: Changes) -> Work[T]:
        yield Statement("reach_replicas")
        return (yield from again())

    return _Call(read, _in_a_transaction, doubt=doubt, in_doubt=True)
