"""The SQLite store: commands go to one thread, queries to another, notifications through a small file."""

import logging
import os
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal, TypeVar, cast

from windlass.core.clock import Clock, Rng
from windlass.core.commands import ClaimJobs, EnqueueJobs, SettleClaims
from windlass.core.errors import ClientClosed
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.joined_transaction import BorrowedConnection, JoinedTransaction
from windlass.core.queries import QUERIES
from windlass.core.requests import Claimed, ClaimRequest, Settlement, SettleResult
from windlass.core.store import Features, Store
from windlass.core.store_calls import Command, Query, check_tables
from windlass.core.topics import Hub, Topic
from windlass.kit.request_names import of_kind
from windlass.stores.sqlite import newest_queries, procedures, queries, schedule_queries, store_move_queries
from windlass.stores.sqlite.database import Options, bring_up_within, is_prepared
from windlass.stores.sqlite.joined import SqliteJoined
from windlass.stores.sqlite.reader import Snapshot
from windlass.stores.sqlite.room import Room, in_a_thread, open_room

logger = logging.getLogger("windlass.sqlite")

R = TypeVar("R")

FEATURES: Final = Features(
    transactional=True,
    wakes_waiters=True,
    between_processes=True,
    survives_process=True,
    replies_can_be_lost=False,
)


READS: Final = {
    **queries.QUERIES,
    **newest_queries.QUERIES,
    **schedule_queries.QUERIES,
    **store_move_queries.QUERIES,
}
"""The function that executes each query in one read transaction."""

check_tables(QUERIES, READS, procedures.QUERIES)


class SqliteStore(Store):
    """Jobs in one file.

    Belongs to the event loop that opened it. After a fork the child opens the file anew at its first call.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        rng: Rng,
        synchronous: Literal["full", "normal"] = "full",
        create: bool = True,
        migrate: bool = False,
    ) -> None:
        """Keep jobs at `path`; nothing is opened yet."""
        self._path = path
        self._options = Options(synchronous, create, migrate)
        self._clock = clock
        # for siblings alone: tokens are made by SQLite itself, in the statement that claims
        self._rng = rng
        self._hub = Hub()
        self._room: Room | None = None
        self._closed = False

    @property
    def features(self) -> Features:
        """What this store can do."""
        return FEATURES

    async def open(self) -> None:
        """Open the file, and make it when there is none."""
        if self._room is None:
            self._resolve_path()
            self._room = await open_room(self._path, self._options, self._clock, self._hub)

    async def is_prepared(self) -> bool:
        """Whether the file has the schema and the log that `open` would make."""
        self._resolve_path()
        return self._room is not None or await in_a_thread(lambda: is_prepared(self._path))

    async def close(self) -> None:
        """Finish what was handed over and let go of the file."""
        self._closed = True
        room, self._room = self._room, None
        if room is not None and room.pid == os.getpid():
            await room.close()

    def sibling(self) -> "SqliteStore":
        """Return another store on the same file."""
        synchronous, create, migrate = self._options.synchronous, self._options.create, self._options.migrate
        return SqliteStore(
            self._path, clock=self._clock, rng=self._rng, synchronous=synchronous, create=create, migrate=migrate
        )

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Ring on news from this process and from others."""
        if self._room is not None:
            self._room.watch_news()
        return self._hub.listen(topics, ring)

    def join(self, borrowed: BorrowedConnection) -> JoinedTransaction:
        """Work inside a caller's own transaction; before `open` the schema is made in it where there is none."""
        if self._closed:
            raise ClientClosed
        prepare = self._bring_up_within if self._room is None else None
        return SqliteJoined(self._path, borrowed, self._clock, self._tell, prepare=prepare)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[sqlite3.Connection]:
        """Give a connection in a transaction that may write."""
        room = await self._here()
        async with room.lender.transaction() as connection:
            yield connection

    def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> Awaitable[list[Enqueued]]:
        """Enqueue jobs, all or none."""
        return self._write(EnqueueJobs(jobs), request_id and of_kind("enqueue", request_id))

    def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> Awaitable[Claimed]:
        """Give ready jobs to the caller."""
        return self._write(ClaimJobs(request), request_id and of_kind("claim", request_id))

    def settle(
        self, settlements: Sequence[Settlement], *, request_id: str | None = None
    ) -> Awaitable[list[SettleResult]]:
        """Write how claims ended."""
        return self._write(SettleClaims(settlements), request_id and of_kind("settle", request_id))

    async def do(self, command: Command[R], *, request_id: str | None = None) -> R:
        """Execute a command."""
        procedure = procedures.COMMANDS.get(type(command))
        if procedure is None:
            return await self._write(command, request_id and of_kind(type(command).__name__, request_id))
        return cast("R", await procedure(await self._here(), command))

    async def ask(self, query: Query[R]) -> R:
        """Execute a query."""
        read = READS.get(type(query))
        room = await self._here()
        if read is None:
            return cast("R", await procedures.QUERIES[type(query)](room, query))
        now = self._clock.now()
        return await room.reader.look(lambda cursor: cast("R", read(Snapshot(cursor, now), query)))

    def _write(self, command: Command[R], request_id: str | None) -> Awaitable[R]:
        room = self._room
        if room is None or room.pid != os.getpid():
            return self._write_anew(command, request_id)
        return room.writer.submit(command, request_id)

    async def _write_anew(self, command: Command[R], request_id: str | None) -> R:
        room = await self._reopen()
        return await room.writer.submit(command, request_id)

    async def _here(self) -> Room:
        """Return what this process has open."""
        room = self._room
        return room if room is not None and room.pid == os.getpid() else await self._reopen()

    async def _reopen(self) -> Room:
        """Open the file in a forked process: threads, locks and connections of the parent are of no use here."""
        if self._closed or self._room is None:
            raise ClientClosed
        self._room.abandon()
        self._room = await open_room(self._path, self._options, self._clock, self._hub)
        return self._room

    def _resolve_path(self) -> None:
        """Go by the real path: a process that opens it by a link uses the same side files, in whatever folder it is."""
        if self._room is None:
            self._path = Path(os.path.realpath(self._path))

    def _bring_up_within(self, cursor: sqlite3.Cursor) -> None:
        bring_up_within(cursor, self._path, self._options)

    def _tell(self, topics: set[Topic]) -> None:
        """Spread the news of a caller's own commit; called from any thread."""
        room = self._room
        if room is not None and topics:
            room.wake.bump(topics)
            self._hub.ring(topics)
