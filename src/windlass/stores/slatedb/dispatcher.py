"""The dispatcher: it alone executes commands, so that none is in another's way, and many share one durable write."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from windlass.core.clock import Clock
from windlass.core.errors import Fenced, StoreCorrupt, StoreMoved, StoreUnavailable, WindlassError
from windlass.core.failpoint import reach
from windlass.core.topics import Hub, Topic
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.commands import execute
from windlass.stores.slatedb.database import Database
from windlass.stores.slatedb.faults import ENGINE_ERRORS, unexpected
from windlass.stores.slatedb.pending_calls import Answer, PendingCall, answer
from windlass.stores.slatedb.queries import QUERIES
from windlass.stores.slatedb.table import Table
from windlass.stores.slatedb.view import ReadState

MOST_BYTES: Final = 2 << 20
"""What calls bring that share one durable write, about: it has to get through within the deadline of a request."""


class Group:
    """Answers that are given when all that was written before them is durable, and the news that goes with them."""

    __slots__ = ("answers", "durable", "news", "weight")

    def __init__(
        self,
        answers: list[Answer],
        news: set[Topic],
        durable: "asyncio.Future[None] | None" = None,
        *,
        weight: int = 0,
    ) -> None:
        self.answers = answers
        self.news = news
        self.durable = durable
        self.weight = weight


class Dispatcher:
    """Serves calls on one database, group after group; belongs to one event loop.

    `given_up` is told of calls whose caller has gone, with what was done for it, and `in_doubt` of calls that are under
    way still when their caller is told that nobody knows what becomes of them. `broken` is why nothing can be served
    any more.
    """

    def __init__(
        self,
        database: Database,
        table: Table,
        hub: Hub,
        *,
        clock: Clock,
        address: Address,
        given_up: Callable[[PendingCall, Any], None],
        in_doubt: Callable[[PendingCall, Any], None],
        beat: Callable[[Table], None],
    ) -> None:
        self._database = database
        self._table = table
        self._hub = hub
        self._clock = clock
        self._address = address
        self._spacing = address.flush.total_seconds()
        self._given_up = given_up
        self._in_doubt = in_doubt
        self._beat = beat
        self._groups: deque[Group] = deque()
        self._to_flush = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._carried = 0
        """How many groups the flush under way carries."""
        self._serving: list[PendingCall] = []
        self._expired: set[PendingCall] = set()
        """Those of `_serving` whose callers wait no longer."""
        self._looks: dict[asyncio.Task[None], PendingCall] = {}
        self._behind = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._in_haste = asyncio.Event()
        self._flusher = asyncio.create_task(self._flush(), name="windlass slatedb flush")
        self.broken: WindlassError | None = None

    async def room(self) -> None:
        """Return when another group may be served."""
        await self._room.wait()

    async def serve(self, calls: list[PendingCall], weight: int = 0) -> None:
        """Do what these calls, which bring so many bytes, ask for; each is answered when that is durable."""
        self._serving = calls
        answers: list[Answer] = []
        try:
            await self._do(calls, answers)
            await self._table.write()
            self._table.rest()
            await self._begin_looks([call for call in calls if call.is_read])
            for call, result in answers if self._expired else ():
                if call in self._expired:
                    self._in_doubt(call, result)
            news, self._table.news = self._table.news, set()
            self._add(Group(answers, news, weight=weight))
        except Exception as error:  # noqa: BLE001 - every caller is told
            broken = self.break_off(error)
            answer([(call, call.in_doubt(broken)) for call in calls])
            done = dict(answers)
            self._give_up([(call, done.get(call, broken)) for call in calls], broken)
        finally:
            self._serving = []
            self._expired = set()

    async def answered(self) -> None:
        """Return when nothing is under way."""
        if self._looks:
            await asyncio.wait(self._looks)
        await self._idle.wait()

    def hurry(self) -> None:
        """Let no flush wait for its time any more."""
        self._in_haste.set()

    async def close(self) -> None:
        """Answer what is under way."""
        await self.answered()
        self._flusher.cancel()
        await asyncio.wait([self._flusher])

    def break_off(self, error: Exception) -> WindlassError:
        """Serve nothing any more, and tell whoever waits why."""
        if self.broken is None:
            self.broken = error if isinstance(error, WindlassError) else unexpected(error)
        while self._groups:
            self._end(self._groups.popleft(), self.broken)
        self._idle.set()
        self._hub.ring_all()
        return self.broken

    def expire(self, before: float, late: Callable[[], WindlassError]) -> None:
        """Tell those who have waited since before a moment that nobody knows what became of their calls."""
        serving = [call for call in self._serving if call.since < before]
        self._expired.update(serving)
        made = [(call, result) for group in self._groups for call, result in group.answers if call.since < before]
        for call, result in made:
            self._in_doubt(call, result)
        looks = [call for call in self._looks.values() if call.since < before]
        if calls := [*serving, *looks, *(call for call, _ in made)]:
            error = late()
            answer([(call, call.in_doubt(error)) for call in calls])

    @property
    def _durable(self) -> bool:
        """Whether all that was written before is durable, and nothing of it lost."""
        return self.broken is None and self._idle.is_set() and not self._behind and not self._database.unflushed

    async def _do(self, calls: list[PendingCall], answers: list[Answer]) -> None:
        table = self._table
        table.now = self._clock.now()
        steps = [call for call in calls if not call.is_read]
        try:
            # a damaged one is the answer to the call that asks for it
            await table.find(job_id for call in steps for job_id in call.job_ids)
        except StoreUnavailable as error:
            answers += [(call, self._passing(error)) for call in steps]
            return
        for call in steps:
            try:
                answers.append((call, await execute(table, call.value, call.request_id)))
            except StoreMoved as error:
                answers.append((call, error))
            except StoreUnavailable as error:
                # It could not read what it is about, so it has changed nothing. Those that take what they find, as
                # rescue and prune do, may have done a part: each job of it is whole, and goes with this group.
                answers.append((call, self._passing(error)))
            except WindlassError as error:
                answers.append((call, error))
        self._beat(table)

    def _add(self, group: Group) -> None:
        if self.broken is not None or self._durable:
            # what was served while it broke may have seen what is lost
            self._end(group, self.broken)
            return
        self._groups.append(group)
        self._idle.clear()
        # while a flush is under way one more group is made, and what comes then gathers for the next; before it has
        # begun, all groups go with it, as far as one object may hold them
        coming = islice(self._groups, self._carried, None)
        if 0 < self._carried < len(self._groups) or sum(each.weight for each in coming) >= MOST_BYTES:
            self._room.clear()
        self._to_flush.set()

    async def _begin_looks(self, calls: list[PendingCall]) -> None:
        if not calls:
            return
        state = ReadState(await self._table.snapshot(), self._table.now, self._address)
        durable: asyncio.Future[None] | None = None
        if not self._durable:
            durable = asyncio.get_running_loop().create_future()
            # who looks may have failed by then, and hears of it no more
            durable.add_done_callback(_heard)
            self._add(Group([], set(), durable))
        for call in calls:
            task = asyncio.create_task(self._look(call, state, durable), name="windlass slatedb look")
            self._looks[task] = call
            task.add_done_callback(self._looks.pop)

    async def _look(self, call: PendingCall, state: ReadState, durable: "asyncio.Future[None] | None") -> None:
        """Answer a query when all that it may have seen is durable."""
        try:
            result = await QUERIES[type(call.value)](state, call.value)
            if durable is not None:
                await asyncio.shield(durable)
        except Exception as error:  # noqa: BLE001 - the caller is told
            result = error
        answer([(call, result)], self._given_up)

    async def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        last = loop.time() - self._spacing
        while True:
            await self._to_flush.wait()
            if (early := last + self._spacing - loop.time()) > 0:
                await self._space(early)
            self._to_flush.clear()
            last = loop.time()
            try:
                await self._flush_once(list(self._groups))
            except Exception as error:  # noqa: BLE001 - without this task nobody would be answered any more
                self.break_off(error)
            self._carried = 0
            self._room.set()
            if not self._groups:
                self._idle.set()

    async def _space(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._in_haste.wait()

    async def _flush_once(self, groups: list[Group]) -> None:
        """Make what these groups are about durable, and answer them."""
        self._carried = len(groups)
        error: WindlassError | None = None
        try:
            reach("slatedb.before_flush")
            await self._database.flush()
            reach("slatedb.after_flush")
        except Exception as failed:  # noqa: BLE001 - every caller is told
            error = failed if isinstance(failed, WindlassError) else unexpected(failed)
            if not self._passes(error):
                self.break_off(error)
        self._behind = error is not None
        for group in groups:
            if self._groups and self._groups[0] is group:
                self._groups.popleft()
                self._end(group, error)

    def _end(self, group: Group, error: WindlassError | None) -> None:
        if group.durable is not None and not group.durable.done():
            if error is None:
                group.durable.set_result(None)
            else:
                group.durable.set_exception(error)
        if error is None:
            answer(group.answers, self._given_up)
            self._hub.ring(group.news)
            return
        answer([(call, call.in_doubt(error)) for call, _ in group.answers])
        self._give_up(group.answers, error)

    def _give_up(self, answers: list[Answer], error: WindlassError) -> None:
        """Let go of what was done and not told: it may become durable yet, also when the database is opened anew."""
        if not isinstance(error, Fenced):
            for call, result in answers:
                self._given_up(call, result)

    def _passes(self, error: WindlassError) -> bool:
        """Whether the database goes on after this error: only the wait for it was given up, or a record is damaged."""
        if self._table.torn or self._database.closed:
            return False
        of_a_record = isinstance(error, StoreCorrupt) and not isinstance(error.__cause__, ENGINE_ERRORS)
        return of_a_record or (isinstance(error, StoreUnavailable) and error.retryable)

    def _passing(self, error: StoreUnavailable) -> StoreUnavailable:
        """Return an error that one call is told; raise one after which nothing goes on."""
        if not self._passes(error):
            raise error
        return error


def _heard(durable: "asyncio.Future[None]") -> None:
    if not durable.cancelled():
        durable.exception()
