"""Store as a token that is limited to some queues may use it."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from windlass.core.commands import ClaimJobs, EnqueueJobs, SettleClaims
from windlass.core.errors import NotTransactional
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.joined_transaction import BorrowedConnection, JoinedTransaction
from windlass.core.requests import Claimed, ClaimRequest, Settlement, SettleResult
from windlass.core.store import Features, Store
from windlass.core.store_calls import Command, Query, StoreCall
from windlass.core.topics import Topic, queue_topic
from windlass.http.scope_rules import RULES, Rule, Scope, refuse_unruled

R = TypeVar("R")


class ScopedStore(Store):
    """Executes each call by its rule, so that it is about some queues alone.

    A job, schedule or server of another queue is answered as one that is not there; a call that names another queue,
    or that is about the whole store, raises `NotAllowed`. News that tells of all queues at once is not heard: whoever
    waits looks again each `poll_interval`, and learns nothing of when others work.
    """

    def __init__(self, store: Store, queues: Collection[str]) -> None:
        """See only `queues` of `store`, which is opened and closed elsewhere."""
        self._store = store
        self._queues = frozenset(queues)
        self._topics = frozenset(queue_topic(queue) for queue in queues)

    @property
    def features(self) -> Features:
        """What the store can do."""
        return self._store.features

    async def open(self) -> None:
        """Do nothing: it is open."""

    async def close(self) -> None:
        """Do nothing: others use it."""

    def sibling(self) -> "ScopedStore":
        """Return the same view of another store on the same jobs."""
        return ScopedStore(self._store.sibling(), self._queues)

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Listen to news of these queues alone."""
        return self._store.listen(self._topics.intersection(topics), ring)

    def join(self, borrowed: BorrowedConnection) -> JoinedTransaction:
        """Refuse: a caller's transaction is not here."""
        del borrowed
        raise NotTransactional("a store over HTTP")

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Refuse: transactions do not go over HTTP."""
        raise NotTransactional("a store over HTTP")

    async def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> list[Enqueued]:
        """Enqueue jobs of these queues."""
        return await self._execute(EnqueueJobs(jobs), request_id)

    async def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> Claimed:
        """Claim from these queues."""
        return await self._execute(ClaimJobs(request), request_id)

    async def settle(self, settlements: Sequence[Settlement], *, request_id: str | None = None) -> list[SettleResult]:
        """Write how claims of these queues ended."""
        return await self._execute(SettleClaims(settlements), request_id)

    async def do(self, command: Command[R], *, request_id: str | None = None) -> R:
        """Execute a command by its rule."""
        return await self._execute(command, request_id)

    async def ask(self, query: Query[R]) -> R:
        """Execute a query by its rule."""
        return await self._execute(query, None)

    async def _execute(self, call: StoreCall[R], request_id: str | None) -> R:
        rule: Rule = RULES.get(type(call), refuse_unruled)
        reply: R = await rule(Scope(self._queues, self._store, request_id), call)
        return reply
