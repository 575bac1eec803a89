"""The store behind `memory://`."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from copy import copy
from typing import Any, Final, TypeVar, cast

from windlass.core.clock import Clock, Rng
from windlass.core.commands import COMMANDS, ClaimJobs, EnqueueJobs, SettleClaims
from windlass.core.errors import NotTransactional, StoreMoved
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.joined_transaction import BorrowedConnection, JoinedTransaction
from windlass.core.queries import QUERIES
from windlass.core.requests import Claimed, ClaimRequest, Settlement, SettleResult
from windlass.core.store import Features, Store
from windlass.core.store_calls import Command, Query, RepeatSafety, check_tables
from windlass.core.topics import Hub, Topic
from windlass.kit.house import Receipt
from windlass.kit.moves import commands as moves
from windlass.stores.memory import commands, queries
from windlass.stores.memory.atomic_step import AtomicStep, MemoryState

C = TypeVar("C", bound=Command[Any])
R = TypeVar("R")

FEATURES = Features(
    transactional=False,
    wakes_waiters=True,
    between_processes=False,
    survives_process=False,
    replies_can_be_lost=False,
)

_INSTEAD: Final = (
    "use a SQL store: a test puts the app on one by in_database(app), or with the fixtures of pytest by "
    'windlass_store = "sqlite"'
)

check_tables(COMMANDS, commands.COMMANDS)
check_tables(QUERIES, queries.QUERIES, queries.LONG_QUERIES)


def _copy(state: MemoryState, reply: R) -> R:
    """Return a reply that its caller may change."""
    del state
    return copy(reply)


class MemoryStore(Store):
    """Jobs in the memory of this process: for tests, and the model that every other store is compared with.

    It may be shared by threads and event loops. `close` leaves the jobs where they are, since others may hold the
    same store.
    """

    def __init__(self, *, clock: Clock, rng: Rng) -> None:
        self._hub = Hub()
        self._step = AtomicStep(MemoryState(rng, clock.now()), clock, self._hub)

    @property
    def features(self) -> Features:
        """What this store can do."""
        return FEATURES

    async def open(self) -> None:
        """Do nothing: there is nothing to connect to."""

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def sibling(self) -> Store:
        """Return this store: it may be used by every event loop, and a close of one leaves it to the others."""
        return self

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` right after news on `topics`; return how to stop."""
        return self._hub.listen(topics, ring)

    def join(self, borrowed: BorrowedConnection) -> JoinedTransaction:  # noqa: ARG002 - there is nothing to join
        """Raise `NotTransactional`."""
        raise NotTransactional("memory://", _INSTEAD)

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Raise `NotTransactional`."""
        raise NotTransactional("memory://", _INSTEAD)

    async def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> list[Enqueued]:
        """Enqueue jobs, all or none."""
        return self._execute(moves.enqueue, EnqueueJobs(jobs), request_id)

    async def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> Claimed:
        """Give ready jobs to the caller; a repeat gives those that are still held."""
        return self._execute(commands.claim, ClaimJobs(request), request_id, commands.claim_again)

    async def settle(self, settlements: Sequence[Settlement], *, request_id: str | None = None) -> list[SettleResult]:
        """Write how claims ended."""
        return self._execute(moves.settle, SettleClaims(settlements), request_id)

    async def do(self, command: Command[R], *, request_id: str | None = None) -> R:
        """Execute a command."""
        run: Callable[[MemoryState, Command[R]], R] = commands.COMMANDS[type(command)]
        return self._execute(run, command, request_id if command.repeat is RepeatSafety.STORE else None)

    async def ask(self, query: Query[R]) -> R:
        """Execute a query."""
        long_query = queries.LONG_QUERIES.get(type(query))
        if long_query is not None:
            return cast("R", await long_query(self._step, query))
        with self._step as state:
            return cast("R", queries.QUERIES[type(query)](state, query))

    def _execute(
        self,
        run: Callable[[MemoryState, C], R],
        command: C,
        request_id: str | None,
        again: Callable[[MemoryState, R], R] = _copy,
    ) -> R:
        """Execute a command in an atomic step; a repeat of its request id gets the first reply, as `again` gives it."""
        with self._step as state:
            house = state.house
            key = None if request_id is None else (type(command), request_id)
            if key is not None and key in house.receipts:
                return again(state, house.receipts[key].reply)
            if house.moved is not None and command.begins_work:
                raise StoreMoved(house.moved.to)
            reply = run(state, command)
            if key is not None:
                house.receipts[key] = Receipt(state.now, again(state, reply))
            return reply
