"""The store on SlateDB: commands go to the one dispatcher of this process, queries to a snapshot or to a reader."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar

from windlass.core.clock import Clock, Rng
from windlass.core.commands import COMMANDS, ClaimJobs, EnqueueJobs, PruneRecords, SettleClaims
from windlass.core.errors import ClientClosed, NotTransactional
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.joined_transaction import BorrowedConnection, JoinedTransaction
from windlass.core.queries import QUERIES
from windlass.core.requests import Claimed, ClaimRequest, Settlement, SettleResult
from windlass.core.store import Features, Store
from windlass.core.store_calls import Command, Query, RepeatSafety, check_tables, table_of
from windlass.core.topics import Topic
from windlass.stores.slatedb import commands, queries
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.moves.housekeeping import PruneBeside
from windlass.stores.slatedb.moves.receipts import NAMES
from windlass.stores.slatedb.moves.steer import PruneJobs
from windlass.stores.slatedb.reading import Reading, open_reading
from windlass.stores.slatedb.room import Room, enter, leave

R = TypeVar("R")

MOST_PAGES: Final = 200
"""Pages of records beside jobs that go at once; a store that was not pruned for weeks is done in several rounds."""
MOST_UNSETTLED: Final = 1_000
"""Ends of jobs that a server lets wait: they lie in the one process that also holds what the engine does."""


async def prune(room: Room | Reading, command: PruneRecords) -> int:
    """Delete finished jobs past their retention, then the records beside jobs; count the jobs."""
    gone = await room.submit(PruneJobs(command.retention, command.limit))
    # one step for each page: the calls of others come between
    for _ in range(MOST_PAGES):
        if not await room.submit(PruneBeside()):
            break
    return gone


PROCEDURES: Final = table_of(PruneRecords.by_coroutine(prune))
"""The function that executes each command of several steps."""

_COMMANDS: Final[tuple[type[Command[Any]], ...]] = (EnqueueJobs, ClaimJobs, SettleClaims, *COMMANDS, *commands.INTERNAL)

check_tables((*_COMMANDS, *QUERIES), commands.STEPS, PROCEDURES, queries.QUERIES)
check_tables([each for each in _COMMANDS if each.repeat is RepeatSafety.STORE], NAMES)


class SlateStore(Store):
    """Jobs in a bucket; see `core.store.Store` for what each method promises.

    All stores of one process on one database share its owner, whatever event loop they are used in.
    """

    def __init__(self, address: Address, *, clock: Clock, rng: Rng) -> None:
        """Keep jobs at `address`; nothing is opened yet."""
        self._address = address
        self._clock = clock
        self._rng = rng
        self._room: Room | Reading | None = None
        self._of: SlateStore | None = None

    @property
    def features(self) -> Features:
        """What this store can do."""
        return Features(
            transactional=False,
            wakes_waiters=True,
            between_processes=False,
            survives_process=self._address.kind != "memory",
            replies_can_be_lost=True,
            one_owner=True,
            most_unsettled=MOST_UNSETTLED,
        )

    async def open(self) -> None:
        """Own the database from now on; raises `StoreOwned` while another process does."""
        if self._room is not None:
            return
        if self._address.look:
            self._room = await open_reading(self._address, self._clock)
        else:
            if self._of is not None and isinstance(self._of._room, Room) and self._of._room.lost is not None:  # noqa: SLF001 - of the same class
                # a part of a program that has lost the database does not take it back from the one that has it now
                raise self._of._room.lost  # noqa: SLF001 - as above
            self._room = await enter(self._address, self._clock, self._rng)

    async def close(self) -> None:
        """Let go of the database; the last store of the process waits until all that was accepted is durable."""
        room, self._room = self._room, None
        if isinstance(room, Reading):
            await room.close()
        elif room is not None:
            await leave(room, self._address.place)

    def sibling(self) -> Store:
        """Return another store on the same database, which this process owns once."""
        sibling = SlateStore(self._address, clock=self._clock, rng=self._rng)
        sibling._of = self
        return sibling

    def listen(self, topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` right after news on `topics` is durable; return how to stop."""
        return self._open_room.hub.listen(topics, ring)

    def join(self, borrowed: BorrowedConnection) -> JoinedTransaction:  # noqa: ARG002 - whatever it is, there is nothing to join
        """Raise `NotTransactional`."""
        raise NotTransactional(f"slatedb+{self._address.kind}://")

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Raise `NotTransactional`."""
        raise NotTransactional(f"slatedb+{self._address.kind}://")

    async def enqueue(self, jobs: Sequence[PreparedJob], *, request_id: str | None = None) -> list[Enqueued]:
        """Enqueue jobs, all or none, in their order."""
        return await self._open_room.submit(EnqueueJobs(jobs), request_id)

    async def claim(self, request: ClaimRequest, *, request_id: str | None = None) -> Claimed:
        """Give ready jobs to the caller; a repeat gives those that are still held."""
        return await self._open_room.submit(ClaimJobs(request), request_id)

    async def settle(self, settlements: Sequence[Settlement], *, request_id: str | None = None) -> list[SettleResult]:
        """Write how claims ended, each as one step of its own."""
        return await self._open_room.submit(SettleClaims(settlements), request_id)

    async def do(self, command: Command[R], *, request_id: str | None = None) -> R:
        """Execute a command."""
        procedure = PROCEDURES.get(type(command))
        if procedure is None:
            return await self._open_room.submit(command, request_id)
        reply: R = await procedure(self._open_room, command)
        return reply

    async def ask(self, query: Query[R]) -> R:
        """Execute a query."""
        return await self._open_room.submit(query)

    @property
    def _open_room(self) -> Room | Reading:
        if self._room is None:
            raise ClientClosed
        return self._room
