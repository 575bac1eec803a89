"""The store over HTTP: each call is one of another process, `windlass serve`, which has the jobs."""

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any, Final, TypeVar, cast

from windlass.api import operations
from windlass.api.calls import Nothing
from windlass.api.operations import CARRIED
from windlass.core.clock import Rng
from windlass.core.commands import COMMANDS, ClaimJobs
from windlass.core.errors import ClientClosed, NotTransactional
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.joined_transaction import BorrowedConnection, JoinedTransaction
from windlass.core.queries import QUERIES
from windlass.core.requests import Claimed, ClaimRequest, Settlement, SettleResult
from windlass.core.store import Features, Store
from windlass.core.store_calls import Command, Query, check_tables
from windlass.core.topics import Hub, Topic
from windlass.kit.reaching import told_when_slow
from windlass.stores.http import commands, queries
from windlass.stores.http.operation_client import OperationClient
from windlass.stores.http.options import Options
from windlass.stores.http.room import Room

R = TypeVar("R")

_KIND: Final = "an http:// store"

check_tables((*COMMANDS, *QUERIES), {*CARRIED, *commands.COMMANDS, *queries.QUERIES})


class HttpStore(Store):
    """Jobs in another process; see `core.store.Store` for what each method promises.

    Belongs to the event loop that opened it. After a fork the child opens connections of its own at its first call.
    """

    def __init__(self, options: Options, *, rng: Rng) -> None:
        """Keep jobs where `options` say; nothing is opened yet. Times are those of whoever serves."""
        self._options = options
        self._rng = rng
        self._hub = Hub()
        self._room: Room | None = None
        self._closed = False
        self._atomic_across_queues = True

    @property
    def features(self) -> Features:
        """What this store can do; whether one call may touch several queues is known when it is open."""
        return Features(
            transactional=False,
            wakes_waiters=True,
            between_processes=True,
            survives_process=True,
            replies_can_be_lost=True,
            atomic_across_queues=self._atomic_across_queues,
            # what serves it may be a store where a job can be locked
            locked_for=timedelta(seconds=self._options.timeout * 0.8),
            served=True,
        )

    async def open(self) -> None:
        """Ask who serves; raises `StoreUnavailable` when that is not Windlass, or does not know our token."""
        if self._room is not None:
            return
        room = Room(self._options, self._rng, self._hub)
        try:
            with told_when_slow(self._options.where, self._options.timeout, lambda: room.runner.met):
                about = await room.client.look(operations.ABOUT, Nothing())
        except BaseException:
            await room.close()
            raise
        self._atomic_across_queues = about.atomic_across_queues
        self._room = room
        self._hear(room)

    async def close(self) -> None:
        """Finish what was handed over and let go of every connection."""
        self._closed = True
        room, self._room = self._room, None
        if room is not None and room.pid == os.getpid():
            await room.close()

    def sibling(self) -> "HttpStore":
        """Return another store on the same server."""
        return HttpStore(self._options, rng=self._rng)

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` at every news on `topics`."""
        stop = self._hub.listen(topics, ring)
        if self._room is not None and self._room.pid == os.getpid():
            self._room.listener.start()
        return stop

    def join(self, borrowed: BorrowedConnection) -> JoinedTransaction:  # noqa: ARG002 - there is none to join
        """Refuse: there are no transactions of callers here."""
        raise NotTransactional(_KIND)

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Refuse: there are no transactions of callers here."""
        raise NotTransactional(_KIND)

    async def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> list[Enqueued]:
        """Put jobs in line."""
        return await self._here().batches.enqueue(jobs, request_id)

    async def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> Claimed:
        """Give ready jobs to the caller."""
        return await commands.claim(self._here().client.named(request_id), ClaimJobs(request))

    async def settle(self, settlements: Sequence[Settlement], *, request_id: str | None = None) -> list[SettleResult]:
        """Write how claims ended."""
        return await self._here().batches.settle(settlements, request_id)

    async def do(self, command: Command[R], *, request_id: str | None = None) -> R:
        """Execute a command."""
        client = self._here().client.named(request_id)
        run = commands.COMMANDS.get(type(command), OperationClient.execute)
        reply: R = await run(client, command)
        return reply

    async def ask(self, query: Query[R]) -> R:
        """Execute a query."""
        room = self._here()
        run = queries.QUERIES.get(type(query))
        return await room.client.execute(query) if run is None else cast("R", await run(room, query))

    def _here(self) -> Room:
        """Return what this process has open."""
        room = self._room
        return room if room is not None and room.pid == os.getpid() else self._reopen()

    def _reopen(self) -> Room:
        """Begin with connections of our own in a forked process."""
        if self._closed or self._room is None:
            raise ClientClosed
        self._room.abandon()
        self._room = Room(self._options, self._rng, self._hub)
        self._hear(self._room)
        return self._room

    def _hear(self, room: Room) -> None:
        if not self._hub.silent:
            room.listener.start()
