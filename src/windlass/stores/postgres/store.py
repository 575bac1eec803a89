"""The Postgres store: moves are statements that decide in the database, by the database's clock."""

import os
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final, TypeVar, cast

from windlass.core.clock import Clock, Rng
from windlass.core.commands import COMMANDS
from windlass.core.errors import ClientClosed
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.joined_transaction import BorrowedConnection, JoinedTransaction
from windlass.core.queries import QUERIES
from windlass.core.requests import Claimed, ClaimRequest, Settlement, SettleResult
from windlass.core.store import Features, Store
from windlass.core.store_calls import Command, Query, check_tables
from windlass.core.topics import Hub, Topic
from windlass.kit.request_names import of_kind
from windlass.stores.postgres import newest_queries, procedures, queries, schedule_queries
from windlass.stores.postgres.commands import STEPS, execute
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.room import Room, open_room
from windlass.stores.postgres.settings import limits

R = TypeVar("R")

READS: Final = queries.READS
"""The generator that executes each query, by statements that each see a moment of their own."""
SNAPSHOT_READS: Final = {**queries.SNAPSHOT_READS, **newest_queries.SNAPSHOT_READS, **schedule_queries.SNAPSHOT_READS}
"""The generator that executes each query, in a read transaction: all its statements see one moment."""

check_tables(COMMANDS, STEPS, procedures.COMMANDS)
check_tables(QUERIES, READS, SNAPSHOT_READS, procedures.QUERIES)


class PostgresStore(Store):
    """Jobs in a database.

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
        """What this store can do; behind a pooler no process can be notified."""
        pooled = self._room is not None and self._room.pooled
        return Features(
            transactional=True,
            wakes_waiters=self._options.notify and not pooled,
            between_processes=True,
            survives_process=True,
            replies_can_be_lost=True,
            locked_for=timedelta(milliseconds=int(limits(self._options.timeout).lock)),
        )

    async def open(self) -> None:
        """Connect, and make the schema when there is none."""
        if self._room is None:
            self._room = await self._open_room()

    async def close(self) -> None:
        """Finish what was handed over and let go of every connection."""
        self._closed = True
        room, self._room = self._room, None
        if room is not None and room.pid == os.getpid():
            await room.close()

    def sibling(self) -> "PostgresStore":
        """Return another store on the same database."""
        return PostgresStore(self._options, clock=self._clock, rng=self._rng)

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Ring on news from this process and from others."""
        stop = self._hub.listen(topics, ring)
        if self._room is not None:
            self._room.listener.start()
        return stop

    def join(self, borrowed: BorrowedConnection) -> JoinedTransaction:
        """Work inside a caller's own transaction."""
        if self._room is None:
            raise ClientClosed
        return self._room.join(borrowed)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Any]:
        """Give a connection in a transaction."""
        room = self._here() or await self._reopen()
        async with room.lender.transaction() as connection:
            yield connection

    async def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> list[Enqueued]:
        """Enqueue jobs, all or none."""
        room = self._here() or await self._reopen()
        return await room.enqueuer.enqueue(jobs, of_kind("enqueue", request_id))

    async def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> Claimed:
        """Give ready jobs to the caller."""
        room = self._here() or await self._reopen()
        return await room.claimer.claim(request, of_kind("claim", request_id))

    async def settle(self, settlements: Sequence[Settlement], *, request_id: str | None = None) -> list[SettleResult]:
        """Write how claims ended."""
        room = self._here() or await self._reopen()
        return await room.settler.settle(settlements, of_kind("settle", request_id))

    async def do(self, command: Command[R], *, request_id: str | None = None) -> R:
        """Execute a command."""
        room = self._here() or await self._reopen()
        procedure = procedures.COMMANDS.get(type(command))
        if procedure is not None:
            return cast("R", await procedure(room, command))
        return cast("R", await execute(room, STEPS[type(command)], command, request_id=request_id))

    async def ask(self, query: Query[R]) -> R:
        """Execute a query."""
        room = self._here() or await self._reopen()
        kind = type(query)
        if kind in procedures.QUERIES:
            return cast("R", await procedures.QUERIES[kind](room, query))
        sees_one_moment = kind in SNAPSHOT_READS
        read = SNAPSHOT_READS[kind] if sees_one_moment else READS[kind]
        return cast("R", await room.runner.look(lambda changes: read(changes, query), whole=sees_one_moment))

    def _here(self) -> Room | None:
        """Return what this process has open, if it has: a coroutine less, for calls that many make."""
        room = self._room
        return room if room is not None and room.pid == os.getpid() else None

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
