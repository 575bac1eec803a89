"""The store: eleven methods over the tables of calls. It may be used by several event loops and threads."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from copy import copy
from threading import Lock
from typing import Any, TypeVar

from examples.dictionary_store.calls import READS, STEPS
from examples.dictionary_store.table import DictionaryState
from windlass.core import commands
from windlass.core.clock import Clock
from windlass.core.errors import NotTransactional, StoreMoved
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.joined_transaction import BorrowedConnection, JoinedTransaction
from windlass.core.requests import Claimed, ClaimRequest, Settlement, SettleResult
from windlass.core.store import Features, Store
from windlass.core.store_calls import Command, Query, RepeatSafety
from windlass.core.topics import Hub, Topic
from windlass.kit.house import Receipt

R = TypeVar("R")


class DictionaryStore(Store):
    """Jobs in dictionaries of this process."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._state = DictionaryState(clock.now())
        self._lock = Lock()
        self._hub = Hub()

    @property
    def features(self) -> Features:
        return Features(
            transactional=False,
            wakes_waiters=True,
            between_processes=False,
            survives_process=False,
            replies_can_be_lost=False,
        )

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def sibling(self) -> "DictionaryStore":
        # it has the same state, lock and hub
        return copy(self)

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        return self._hub.listen(topics, ring)

    def join(self, borrowed: BorrowedConnection) -> JoinedTransaction:
        del borrowed
        raise NotTransactional("a store in dictionaries")

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        raise NotTransactional("a store in dictionaries")

    async def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> list[Enqueued]:
        return await self.do(commands.EnqueueJobs(jobs), request_id=request_id)

    async def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> Claimed:
        return await self.do(commands.ClaimJobs(request), request_id=request_id)

    async def settle(self, settlements: Sequence[Settlement], *, request_id: str | None = None) -> list[SettleResult]:
        return await self.do(commands.SettleClaims(settlements), request_id=request_id)

    async def do(self, command: Command[R], *, request_id: str | None = None) -> R:
        state = self._state
        with self._lock:
            state.now = self._clock.now()
            reply = self._step(command, request_id)
            news, state.table.news = state.table.news, set()
        self._hub.ring(news)
        return reply

    def _step(self, command: Command[R], request_id: str | None) -> R:
        state, receipts = self._state, self._state.house.receipts
        request = None if request_id is None else (type(command), request_id)
        if request is not None and request in receipts:
            first: R = receipts[request].reply
            return first
        if command.begins_work and state.house.moved is not None:
            raise StoreMoved(state.house.moved.to)
        # a function that raises an error has written nothing before
        reply: R = STEPS[type(command)](state, command)
        if request is not None and command.repeat is RepeatSafety.STORE:
            receipts[request] = Receipt(state.now, reply)
        return reply

    async def ask(self, query: Query[R]) -> R:
        with self._lock:
            self._state.now = self._clock.now()
            reply: R = READS[type(query)](self._state, query)
            return reply
