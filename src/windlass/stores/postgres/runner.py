"""Runs moves on our own connections, and repeats them where that is right."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

from windlass.core.clock import Clock
from windlass.core.errors import OutcomeUnknown, StoreUnavailable, WindlassError
from windlass.core.failpoint import reach
from windlass.core.topics import Hub, Topic
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

    async def run(
        self,
        make: Callable[[Changes], Work[T]],
        *,
        whole: bool = True,
        again: Callable[[], Work[T]] | None = None,
        timeout: float | None = None,
        doubt: str | None = None,
    ) -> T:
        """Run the move that `make` makes, in one transaction or (not `whole`) as its only statement; return its answer.

        After a deadlock, or when a connection was lost, the move is made and run anew until the deadline. That happens
        also when it is not known whether it was done, since the reply to its commit was lost. So it must be harmless
        when it is done twice, or end by writing a receipt: then the second one fails as a whole, and `again` reads what
        the first one was answered. If it is still not known at the deadline, `OutcomeUnknown(doubt)` is raised, or
        without a `doubt` a `StoreUnavailable` that is retryable.
        """
        return await self._finish(_Call(make, _in_a_transaction if whole else _by_itself, again, doubt), timeout)

    async def look(self, make: Callable[[Changes], Work[T]], *, whole: bool = False, timeout: float | None = None) -> T:
        """Run what only reads: each statement by itself, or (`whole`) all in a transaction that sees one moment."""
        return await self._finish(_Call(make, _at_one_moment if whole else _one_by_one), timeout)

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
        changes = Changes(None if self._clock.goes_by_itself else self._clock.now(), repeated=call.in_doubt)
        steps = _Steps(call.make(changes), timeout if timeout and timeout > self._options.timeout else None)
        try:
            if steps.ended():
                return steps.answer()
            return await self._on_a_session(call, steps, deadline)
        except Exception as error:
            call.in_doubt |= steps.sent and kind(error) is Fault.LOST
            raise
        finally:
            call.news |= changes.topics
            steps.close()

    async def _on_a_session(self, call: "_Call[T]", steps: "_Steps[T]", deadline: float) -> T:
        session = await self._connections.take(deadline)
        met: BaseException | None = None
        try:
            # by the session's own timer: one of asyncio's for each call would be a tenth of its processor time
            session.give_up_at(deadline)
            return await call.way(session, steps)
        except BaseException as error:
            met = error
            raise
        finally:
            session.give_up_at(None)
            self._connections.give(session, met)
            # an error that holds itself by its frames would keep the session
            del met

    def _spread(self, topics: set[Topic]) -> None:
        if topics:
            self._hub.ring(topics)
            if self._notifier is not None:
                self._notifier.tell(topics)

    def _verdict(self, call: "_Call[T]", error: Exception) -> WindlassError:
        fault = translate(error, self._options.where)
        if not call.in_doubt or not isinstance(fault, StoreUnavailable):
            return fault
        self._spread(call.news)
        if call.doubt is None:
            return fault
        unknown = OutcomeUnknown(call.doubt)
        unknown.__cause__ = fault
        return unknown


class _Steps(Generic[T]):
    """A move under way: what it wants next; `sent` once what it did may have been committed."""

    __slots__ = ("_answer", "_work", "sent", "timeout", "wanted")

    def __init__(self, work: Work[T], timeout: float | None) -> None:
        self._work = work
        self._answer: list[T] = []
        self.sent = False
        self.timeout = timeout
        self.wanted: Statement | Many | None = None
        self._go(None)

    def ended(self) -> bool:
        return self.wanted is None

    def answer(self) -> T:
        return self._answer[0]

    async def step(self, session: Session) -> None:
        """Run what is wanted, and let the move go on."""
        rows: Rows = ()
        if isinstance(self.wanted, Many):
            await session.many(self.wanted.name, self.wanted.parameters)
        elif self.wanted is not None:
            rows = await session.fetch(self.wanted.name, self.wanted.parameters)
        self._go(rows)

    def close(self) -> None:
        self._work.close()

    def _go(self, rows: Rows | None) -> None:
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
    steps.sent = True
    await steps.step(session)
    reach("postgres.after_commit")
    if not steps.ended():
        message = f"a move that is not whole has a second statement: {steps.wanted}"
        raise RuntimeError(message)
    return steps.answer()


async def _one_by_one(session: Session, steps: _Steps[T]) -> T:
    while not steps.ended():
        await steps.step(session)
    return steps.answer()


async def _all(session: Session, steps: _Steps[T]) -> None:
    try:
        while not steps.ended():
            await steps.step(session)
    except Exception:
        # if not even that works, the session is of no use to anybody, and is cut off
        with contextlib.suppress(Exception):
            await session.roll_back()
        raise


def _reading(again: Callable[[], Work[T]], doubt: str | None) -> _Call[T]:
    """Return the reading of what was done before: it is told only when the replicas of a commit have it too."""

    def read(_: Changes) -> Work[T]:
        yield Statement("reach_replicas")
        return (yield from again())

    return _Call(read, _in_a_transaction, doubt=doubt, in_doubt=True)
