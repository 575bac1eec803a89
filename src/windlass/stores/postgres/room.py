"""What one process has open on a database: connections, and whoever works through them."""

import asyncio
import logging
import os
from collections.abc import Sequence
from typing import Final

from windlass.core.clock import Clock, Rng
from windlass.core.job import Claim
from windlass.core.joined_transaction import BorrowedConnection, JoinedTransaction
from windlass.core.topics import Hub, Topic
from windlass.kit.reaching import told_when_slow
from windlass.kit.request_names import RequestNames
from windlass.stores.postgres.adder import Adder
from windlass.stores.postgres.claimer import Claimer
from windlass.stores.postgres.commit_receipts import CommitReceipts
from windlass.stores.postgres.connections import Connections
from windlass.stores.postgres.enqueuer import Enqueuer
from windlass.stores.postgres.faults import translate
from windlass.stores.postgres.joined import PostgresJoined
from windlass.stores.postgres.lender import Lender
from windlass.stores.postgres.listener import Listener
from windlass.stores.postgres.migrate import prepare
from windlass.stores.postgres.notifier import Notifier
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.pruner import Pruner
from windlass.stores.postgres.runner import Runner
from windlass.stores.postgres.settler import Settler
from windlass.stores.postgres.survey import Survey

logger = logging.getLogger("windlass.postgres")

_warned: Final = set[str]()
"""Where it was said in this process that commits may be lost."""


class Room:
    """Everything that one store has open in one process."""

    def __init__(
        self,
        connections: Connections,
        options: Options,
        clock: Clock,
        rng: Rng,
        hub: Hub,
        *,
        store_id: str,
        pooled: bool,
    ) -> None:
        """Work through `connections`; `open_room` has looked at the database."""
        self.pid = os.getpid()
        self.pooled = pooled
        self.new_request_id = RequestNames(rng).new
        self._clock = clock
        self.options = options
        self._hub = hub
        self.store_id = store_id
        self.connections = connections
        self.listener = Listener(options, hub, store_id=store_id, pooled=pooled)
        self.notifier = Notifier(options, self.connections, self.listener, store_id=store_id)
        self.runner = Runner(self.connections, hub, self, clock, options)
        self.adder = Adder(self.runner)
        self.survey = Survey(self.runner, on=clock.goes_by_itself)
        self.enqueuer = Enqueuer(self.runner, self.new_request_id, timeout=options.timeout)
        self.claimer = Claimer(self.runner, self._claimed, self.new_request_id)
        self.pruner = Pruner(self.runner, self.adder, remembers=clock.goes_by_itself)
        self.settler = Settler(self.runner, self.new_request_id, timeout=options.timeout)
        self._receipts = CommitReceipts(self.runner, self.new_request_id)
        self.lender = Lender(options, self._ring)
        self.packed_from: dict[str, int] = {}
        """The number of the first job of the last parcel of each queue."""

    @property
    def hears(self) -> bool | None:
        """Whether notifications come; None while this process listens to none."""
        return None if self._hub.silent else self.listener.connected

    def join(self, borrowed: BorrowedConnection) -> JoinedTransaction:
        """Work inside a caller's own transaction, or in one that we lent."""
        return PostgresJoined(
            self.options,
            borrowed,
            self._clock,
            self._ring,
            store_id=self.store_id,
            receipts=self._receipts,
            lent=self.lender.lent(borrowed.owner),
        )

    def tell(self, topics: set[Topic]) -> None:
        """Tell other processes of what was committed here."""
        self.adder.committed()
        self.notifier.tell(topics)

    def _claimed(self, claims: Sequence[Claim]) -> None:
        if claims:
            self.adder.committed()
        self.survey.claimed(claims)

    def _ring(self, topics: set[Topic]) -> None:
        self._hub.ring(topics)
        self.tell(topics)

    async def close(self) -> None:
        """Finish what was handed over and let go of every connection."""
        await self.enqueuer.close()
        await self.settler.close()
        await self.survey.close()
        await self.adder.close()
        await self.lender.close()
        await self.listener.close()
        await self.notifier.close()
        await self.connections.close()

    def abandon(self) -> None:
        """Let go of what belongs to the parent, in a forked process."""
        self.listener.abandon()
        self.lender.abandon()
        self.connections.abandon()


async def open_room(options: Options, clock: Clock, rng: Rng, hub: Hub) -> Room:
    """Look at the database, make the schema if it has none and may, and open what is needed."""
    connections = Connections(options)
    try:
        deadline = asyncio.get_running_loop().time() + options.timeout
        with told_when_slow(options.where, options.timeout, lambda: connections.met):
            session = await connections.take(deadline)
        with connections.lent(session):
            await prepare(session.connection, options)
            [(store_id, synchronous_commit, encoding)] = await session.fetch("opened")
            pooled = session.pooled
    except BaseException as error:
        await connections.close()
        if isinstance(error, Exception):
            raise translate(error, options.where) from error
        raise
    if synchronous_commit == "off" and options.where not in _warned:
        _warned.add(options.where)
        logger.warning(
            "synchronous_commit=off in our sessions on %s: what was enqueued or settled last may be lost when the "
            "server crashes; alter role ... set synchronous_commit = on",
            options.where,
        )
    if encoding == "SQL_ASCII" and f"{options.where} {encoding}" not in _warned:
        _warned.add(f"{options.where} {encoding}")
        logger.warning(
            "the encoding of %s is SQL_ASCII, so other programs can store texts there that are not UTF-8. A call that "
            "reads one fails: run windlass move to a database with the encoding UTF8",
            options.where,
        )
    return Room(connections, options, clock, rng, hub, store_id=store_id, pooled=pooled)
