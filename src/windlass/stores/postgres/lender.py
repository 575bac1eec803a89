"""Transactions that are lent: begun here on a connection of the store's own, used by the caller, ended here."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from asyncpg.pool import PoolConnectionProxy
from asyncpg.transaction import Transaction

from windlass.core.errors import InvalidValue, OutcomeUnknown
from windlass.core.ids import JobId
from windlass.core.topics import Topic
from windlass.stores.postgres.connections import Connections
from windlass.stores.postgres.faults import Fault, kind, sqlstate, translate
from windlass.stores.postgres.options import Options
from windlass.stores.postgres.session import Session
from windlass.stores.postgres.settings import search_path
from windlass.stores.postgres.statements import sql, statement

logger = logging.getLogger("windlass.postgres")

IDLE_FOR: Final = "600000"
"""Milliseconds after which the server ends a transaction whose user does nothing: its process may be gone for good."""
_TRY_EVERY: Final = 0.02
_CONSTRAINTS: Final = "23"
_NOT_YOURS: Final = (
    "this transaction is committed at the end of its block: leave the block, or raise an exception to roll it back"
)
_FAILED: Final = (
    "a statement of this transaction had failed, so that it was rolled back and not committed: let the error leave the "
    "block, or run what may fail in a transaction of its own inside it"
)


@dataclass(slots=True)
class Lent:
    """What the end of a transaction that is lent brings: the news to be told, and the job whose claim it settles."""

    news: set[Topic] = field(default_factory=set[Topic])
    settles: JobId | None = None


class Lender:
    """Lends connections of its own, so that whoever keeps one does not keep the store from its work."""

    def __init__(self, options: Options, ring: Callable[[set[Topic]], None]) -> None:
        """Open nothing yet; `ring` is called with the news of a transaction that was committed."""
        self._options = options
        self._ring = ring
        self._turns = asyncio.Semaphore(options.connections)
        self._connections = Connections(replace(options, lent=True))
        self._lent: dict[int, Lent] = {}

    def lent(self, connection: object) -> Lent | None:
        """Return where it is left what the end of a transaction brings, if it is one that is lent now."""
        return self._lent.get(id(connection))

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator["PoolConnectionProxy[Any]"]:
        """Give a connection in a transaction; commit it at the end, or roll back after an error.

        If it settled a claim, and nobody can tell whether it was committed, `OutcomeUnknown` is raised.

        What its user sets for the session, or leaves open in it, is gone before the next one has it; and a user who
        has kept the connection cannot reach into the transaction of the next one. Behind a pooler only what was for the
        transaction alone is gone: the rest stays in a session of the pooler, which is with somebody else by then.
        """
        # to wait for others of our own has no deadline: they are as long as their users make them
        async with self._turns:
            session, transaction = await self._begun()
            lent = Lent()
            try:
                try:
                    with self._stand_in(session, lent) as connection:
                        yield connection
                except BaseException:
                    await self._roll_back(session, transaction)
                    raise
                await self._commit(session, lent)
                if lent.news:
                    self._ring(lent.news)
                await self._clean(session)
            finally:
                self._connections.give(session)

    async def close(self) -> None:
        """Let the transactions that are under way end, then let go of the connections."""
        await self._connections.close()

    def abandon(self) -> None:
        """Let go of what belongs to the parent, in a forked process."""
        self._connections.abandon()

    @contextmanager
    def _stand_in(self, session: Session, lent: Lent) -> Generator["PoolConnectionProxy[Any]"]:
        """Give what stands for the connection as long as the block lasts, as in the driver's own pool."""
        proxy: PoolConnectionProxy[Any] = PoolConnectionProxy(cast("Any", None), session.connection)
        self._lent[id(proxy)] = lent
        try:
            yield proxy
        finally:
            del self._lent[id(proxy)]
            cast("Any", proxy)._detach()  # noqa: SLF001 - its pool does that too, which we are not

    async def _begun(self) -> tuple[Session, Transaction]:
        """Begin a transaction; on a connection that turns out to be lost another one is tried until the deadline."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.timeout
        while True:
            session = await self._connections.take(deadline)
            try:
                return session, await self._begin(session, deadline)
            except BaseException as error:
                session.terminate()
                self._connections.give(session, error)
                if not isinstance(error, Exception):
                    raise
                if kind(error) is Fault.FINAL or loop.time() >= deadline:
                    raise translate(error, self._options.where) from error
            await asyncio.sleep(_TRY_EVERY)

    async def _begin(self, session: Session, deadline: float) -> Transaction:
        # by the driver's own object: its user may then nest others in it, as savepoints
        transaction = session.connection.transaction(isolation="read_committed")
        async with asyncio.timeout_at(deadline):
            await transaction.start()
            text, values = statement("lend")
            path = search_path(self._options)
            await session.connection.fetch(text, *values({"search_path": path, "idle_timeout": IDLE_FOR}))
        return transaction

    async def _commit(self, session: Session, lent: Lent) -> None:
        if not session.closed and not session.connection.is_in_transaction():
            session.terminate()
            raise InvalidValue(_NOT_YOURS)
        try:
            async with asyncio.timeout(self._options.timeout):
                ended = await session.connection.execute("commit")
        except BaseException as error:
            session.terminate()
            if not isinstance(error, Exception) or (sqlstate(error) or "").startswith(_CONSTRAINTS):
                # a constraint of the user's own, which Postgres looks at only now
                raise
            fault = translate(error, self._options.where)
            if lent.settles is not None and kind(error) is Fault.LOST:
                raise OutcomeUnknown(lent.settles) from fault
            raise fault from error
        # the driver's object would not tell how it ended; what is begun next on the connection must not be nested in it
        cast("Any", session.connection)._top_xact = None  # noqa: SLF001
        if ended != "COMMIT":
            await self._clean(session)
            raise InvalidValue(_FAILED)

    async def _roll_back(self, session: Session, transaction: Transaction) -> None:
        try:
            async with asyncio.timeout(self._options.timeout):
                await transaction.rollback()
        except BaseException as error:
            # the server rolls back when the connection ends
            session.terminate()
            if not isinstance(error, Exception):
                raise
            logger.debug("a transaction was rolled back by the end of its connection: %s", error)
        else:
            await self._clean(session)

    async def _clean(self, session: Session) -> None:
        if session.pooled:
            # The server's connection is with somebody else by now. To clean it before the commit would also undo what
            # the pooler itself has set there, of which it is not told.
            return
        try:
            async with asyncio.timeout(self._options.timeout):
                await session.script(sql("lent_back"))
        except Exception as error:  # noqa: BLE001 - nobody waits for it: the next transaction gets another connection
            logger.debug("a lent connection could not be cleaned: %s", error)
            session.terminate()
