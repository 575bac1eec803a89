"""The store on Redis and Valkey: each move is one script, which decides in the server by the server's clock."""

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar, cast

from windlass.core.clock import Clock, Rng
from windlass.core.errors import ClientClosed, NotTransactional
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.joined_transaction import BorrowedConnection, JoinedTransaction
from windlass.core.looks import Finding
from windlass.core.queries import CheckStore, GetMoved
from windlass.core.requests import Claimed, ClaimRequest, Settlement, SettleResult
from windlass.core.store import Features, Store
from windlass.core.store_calls import Command, Query
from windlass.core.topics import Hub, Topic
from windlass.stores.redis.check import check, of_move, of_news
from windlass.stores.redis.options import Options
from windlass.stores.redis.room import Room, open_room

R = TypeVar("R")

KEEPS_AT_MOST: Final = 100_000
"""Finished records per queue and end, unless somebody says otherwise: they take the memory of the jobs to come."""


class RedisStore(Store):
    """Jobs in a server's memory.

    Belongs to the event loop that opened it. After a fork the child opens connections of its own at its first call.
    """

    def __init__(self, options: Options, *, clock: Clock, rng: Rng) -> None:
        """Keep jobs where `options` say; nothing is opened yet."""
        self._options = options
        self._clock = clock
        self._rng = rng
        self._hub = Hub()
        self._room: Room | None = None
        self._closed = False

    @property
    def features(self) -> Features:
        """What this store can do."""
        return Features(
            transactional=False,
            wakes_waiters=True,
            between_processes=True,
            survives_process=True,
            replies_can_be_lost=True,
            atomic_across_queues=not self._options.spread,
            keeps_at_most=KEEPS_AT_MOST,
        )

    async def open(self) -> None:
        """Connect, and write the layout when there is none."""
        if self._room is None:
            self._room = await self._open_room()

    async def is_prepared(self) -> bool:
        """Return True: there are no transactions of callers here."""
        return True

    async def close(self) -> None:
        """Finish what was handed over and let go of every connection."""
        self._closed = True
        room, self._room = self._room, None
        if room is not None and room.pid == os.getpid():
            await room.close()

    def sibling(self) -> "RedisStore":
        """Return another store on the same server."""
        return RedisStore(self._options, clock=self._clock, rng=self._rng)

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` at every news on `topics`."""
        stop = self._hub.listen(topics, ring)
        if self._room is not None and self._room.pid == os.getpid():
            self._room.listener.start()
        return stop

    def join(self, borrowed: BorrowedConnection) -> JoinedTransaction:  # noqa: ARG002 - there is none to join
        """Refuse: there are no transactions of callers here."""
        raise NotTransactional("redis")

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Refuse: there are no transactions of callers here."""
        raise NotTransactional("redis")

    async def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> list[Enqueued]:
        """Enqueue jobs, all or none."""
        return await (await self._here()).calls.enqueue(jobs, request_id)

    async def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> Claimed:
        """Give ready jobs to the caller."""
        return await (await self._here()).calls.claim(request, request_id)

    async def settle(self, settlements: Sequence[Settlement], *, request_id: str | None = None) -> list[SettleResult]:
        """Write how claims ended."""
        return await (await self._here()).calls.settle(settlements, request_id)

    async def do(self, command: Command[R], *, request_id: str | None = None) -> R:
        """Execute a command."""
        return await (await self._here()).calls.do(command, request_id)

    async def ask(self, query: Query[R]) -> R:
        """Execute a query."""
        room = await self._here()
        if isinstance(query, CheckStore):
            return cast("R", await self._check(room))
        return await room.calls.ask(query)

    async def _check(self, room: Room) -> list[Finding]:
        """Check the server."""
        findings = await check(room.runner, await room.calls.prefixes(), self._options)
        if not self._hub.silent:
            findings.append(of_news(hears=room.listener.connected))
        moved = await room.calls.ask(GetMoved())
        return [*findings, *of_move(moved, everywhere=await room.calls.is_mark_the_same())]

    async def _here(self) -> Room:
        """Return what this process has open."""
        room = self._room
        return room if room is not None and room.pid == os.getpid() else await self._reopen()

    async def _reopen(self) -> Room:
        """Open connections of our own in a forked process."""
        if self._closed or self._room is None:
            raise ClientClosed
        self._room.abandon()
        self._room = await self._open_room()
        return self._room

    async def _open_room(self) -> Room:
        room = await open_room(self._options, self._clock, self._rng, self._hub)
        if not self._hub.silent:
            room.listener.start()
        return room
