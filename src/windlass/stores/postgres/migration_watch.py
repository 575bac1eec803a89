"""The connection of a migration: no statement on it waits for ever for an answer that will not come.

What is short ends by the deadline of a call. What works on the tables may take hours: while it does, a second
connection looks now and then whether the server is still at it. Keepalive alone would not do, since a proxy or a load
balancer in between answers it for a server that is gone.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

import asyncpg

from windlass.stores.postgres.options import Options
from windlass.stores.postgres.session import open_session
from windlass.stores.postgres.statements import statement
from windlass.stores.postgres.work import NONE, Parameters

Connection: TypeAlias = "asyncpg.Connection[Any]"
T = TypeVar("T")


class Watched:
    """Runs the statements of a migration; `TimeoutError` when nobody answers, and then the connection is cut off."""

    def __init__(self, connection: Connection, options: Options) -> None:
        """Run them on `connection`, to the database of `options`."""
        self._connection = connection
        self._options = options

    async def fetch(self, name: str, parameters: Parameters = NONE) -> list[Any]:
        """Run `sql/<name>.sql`, which is short, and return its rows."""
        text, values = statement(name)
        return await self._soon(self._connection.fetch(text, *values(parameters)))

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        """Commit what is done within, or roll it back when it raises."""
        await self._soon(self._connection.execute("begin isolation level read committed"))
        try:
            yield
        except BaseException:
            # if not even that works, the first error tells more
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await self._soon(self._connection.execute("rollback"))
            raise
        await self._soon(self._connection.execute("commit"))

    async def work(self, statement: str) -> None:
        """Run a statement that may take as long as it needs."""
        [(pid, started_at)] = await self.fetch("migration_process")
        working = asyncio.ensure_future(self._connection.execute(statement))
        try:
            while not await self._is_done(working) and await self._is_under_way(pid, started_at):
                pass
            # it may have ended just before the look: then its answer is on its way
            if not working.done() and not await self._is_done(working):
                raise TimeoutError  # noqa: TRY301 - it ends as any other error does
        except BaseException:
            self._connection.terminate()
            working.cancel()
            await asyncio.wait({working})
            raise
        await working

    async def _soon(self, statement: Coroutine[Any, Any, T]) -> T:
        late = False

        def give_up() -> None:
            nonlocal late
            late = True
            # cancelling alone would not do: the driver then waits for the server to agree
            self._connection.terminate()

        timer = asyncio.get_running_loop().call_later(self._options.timeout, give_up)
        try:
            return await statement
        except Exception:
            if late:
                raise TimeoutError from None
            raise
        finally:
            timer.cancel()

    async def _is_done(self, working: "asyncio.Future[str]") -> bool:
        return bool((await asyncio.wait({working}, timeout=self._options.timeout))[0])

    async def _is_under_way(self, pid: int, started_at: datetime) -> bool:
        try:
            session = await open_session(self._options, timeout=self._options.timeout)
        except asyncpg.PostgresError:
            # it has no room for another connection, but it is there
            return True
        try:
            session.deadline.set(asyncio.get_running_loop().time() + self._options.timeout)
            [(under_way,)] = await session.fetch("migration_under_way", {"pid": pid, "started_at": started_at})
        except BaseException:
            session.terminate()
            raise
        await session.close()
        return bool(under_way)
